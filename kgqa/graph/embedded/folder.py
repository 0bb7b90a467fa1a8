"""The graph folder: numbered generations of the data, and a file with the number of the current generation.

    mygraph/
      graph.json          number of the published generation, hashes of its graphs, schema, settings; replaced whole
      schema-*.toml       only if the user gave a schema file
      unpublished.log     the sizes of the edits that are not published yet
      write.lock          held by the one process that loads or edits
      gen-3/store/        the engine's files
      gen-3/read.lock     held (shared) by all readers of this generation
      gen-4/loading.json  the journal of a running or interrupted load, in the generation that it makes

A load builds the next generation from hard links to the files of the published generation, and so does a process that
edits. Readers are not affected, and whatever is interrupted or fails leaves the published generation unchanged.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import structs, to_builtins

from kgqa.errors import StoreBusy, StoreError, StoreIncomplete, StoreUnavailable
from kgqa.graph.embedded.records import GraphMeta
from kgqa.graph.embedded.workers import Worker
from kgqa.storage.atomic_files import cannot_create, sync_to_disk, write_json
from kgqa.storage.foreign import refuse_links
from kgqa.storage.loading import load, read_bytes
from kgqa.storage.lock_files import held
from kgqa.text.hints import Command
from kgqa.text.words import counted

_HALF_WRITTEN = re.compile(r"\.graph\.json\.[0-9-]+")
"""Matches the temporary file that `write_json` leaves if the process is killed."""
_GENERATION = re.compile(r"gen-(0|[1-9][0-9]{0,9})")
_OWN_FILES = re.compile(
    rf"write\.lock|unpublished\.log|\.?schema-\w+\.toml(?:\.[0-9-]+)?|{_HALF_WRITTEN.pattern}|{_GENERATION.pattern}"
)
_EDIT = re.compile(r"^([0-9]{1,10}) ([0-9]{1,12}) ([0-9]{1,12})$", re.MULTILINE)


def system_error(path: Path, error: Exception) -> StoreUnavailable | None:
    """Return the error for a full disk or too few open files, which the engine reports as text; None for others."""
    text = str(error)
    if any(os.strerror(code) in text for code in (errno.ENOSPC, errno.EDQUOT)):
        return StoreUnavailable(f"No space left on the disk of {path}.", "Free some space and try again.")
    if "file descriptors" in text or any(os.strerror(code) in text for code in (errno.EMFILE, errno.ENFILE)):
        return StoreUnavailable(
            "The graph needs more open files than the system allows.", "Raise the limit: ulimit -n 4096"
        )
    return None


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Convert errors of the operating system to StoreUnavailable."""
    try:
        yield
    except StoreError as error:
        raise system_error(path, error) or error from error.__cause__
    except OSError as error:
        if problem := system_error(path, error):
            raise problem from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StoreUnavailable(
                f"No permission to write to {path} ({error.strerror}).",
                "Make the folder writable for the user who runs kgqa.",
            ) from error
        raise StoreUnavailable(cannot_create(path, error), "Choose another folder for the graph.") from error


def take_lock(path: Path, *, exclusive: bool) -> BinaryIO:
    """Take an advisory lock on a file, and return the open file; closing it releases the lock.

    The lock is held while any process has the file open. A worker process that inherits the file descriptor keeps the
    lock, and the locks of a killed process are released.

    Raises:
        BlockingIOError: the lock is held already.
        OSError: the file cannot be opened.
    """
    flags = os.O_RDWR | os.O_CREAT if exclusive else os.O_RDONLY | os.O_NONBLOCK
    file = open(os.open(path, flags | os.O_CLOEXEC, 0o666), "rb")  # noqa: SIM115 - closed by the caller
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    if exclusive:
        with suppress(OSError):  # the process id is only used in messages; on a full disk it is left out
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), str(os.getpid()).encode())
    return file


@dataclass(frozen=True)
class GraphFolder:
    """Reads and writes the records, locks and generations of one graph folder."""

    path: Path

    def create(self) -> None:
        """Create the folder, if needed.

        Raises:
            StoreUnavailable: the path is a file, or a folder that contains other files or is not writable.
        """
        path = self.path
        with disk_errors(path):
            if str(path.absolute()).encode("utf-8", "replace") != os.fsencode(path.absolute()):
                raise StoreUnavailable(
                    f"The path {path} is not valid UTF-8, which the engine needs.",
                    "Choose another folder for the graph.",
                )
            if path.exists() and not path.is_dir():
                raise StoreUnavailable(f"{path} is a file.", "Choose a new folder for the graph.")
            present = path.iterdir() if path.is_dir() and not self.exists() else ()
            if any(not _OWN_FILES.fullmatch(each.name) for each in present):
                raise StoreUnavailable(f"{path} contains other files.", "Choose a new folder for the graph.")
            path.mkdir(parents=True, exist_ok=True)

    # --- records

    def exists(self) -> bool:
        """Return whether a load into this folder has been published."""
        return (self.path / "graph.json").exists()

    def current(self) -> int:
        """Return the number of the published generation; 0 before the first load is complete.

        Raises:
            StoreUnavailable: graph.json is damaged.
        """
        return self._read_meta().generation if self.exists() else 0

    def meta(self) -> GraphMeta:
        """Read graph.json.

        Raises:
            StoreUnavailable: there is no graph in this folder.
            StoreIncomplete: the first load was interrupted.
            StoreBusy: the first load is running.
        """
        if not self.path.exists():
            raise StoreUnavailable(
                f"There is no graph at {self.path}.", "Create it: ", Command("graph load", "FILE", into=self.path)
            )
        if not self.path.is_dir():
            raise StoreUnavailable(
                f"{self.path} is a file, not a graph folder.",
                "Load the file into a graph folder: ",
                Command("graph load", self.path, into="GRAPH"),
            )
        if not self.exists():
            if not self.journal_file.exists():
                raise StoreUnavailable(
                    f"{self.path} is not a graph folder: it has no graph.json.",
                    "Load a graph into a new folder: ",
                    Command("graph load", "FILE", into="GRAPH"),
                )
            if self.is_being_written():
                raise StoreBusy(
                    f"Another process is loading data into {self.path}.", "Wait until that load is complete."
                )
            raise StoreIncomplete(
                f"The load into {self.path} was interrupted before it was complete.",
                "Resume the load: ",
                Command("graph load", resume=True, into=self.path),
            )
        meta = self._read_meta()
        if not self.store_dir(meta.generation).is_dir():
            if self.current() != meta.generation:  # another process has just published and removed it
                return self.meta()
            raise StoreUnavailable(
                f"The data of {self.path} is missing (gen-{meta.generation}).", "Load the data again."
            )
        return meta

    def _read_meta(self) -> GraphMeta:
        hint = "Make it readable for the user who runs kgqa, or load the data again."
        return load(self.path / "graph.json", GraphMeta, error=StoreUnavailable, hint=hint)

    def update_meta(self, **changes: Any) -> GraphMeta:
        """Change entries of graph.json."""
        meta = structs.replace(self.meta(), **changes)
        write_json(self.path / "graph.json", to_builtins(meta))
        return meta

    @property
    def journal_file(self) -> Path:
        """The path of the journal of a load. A load that has been published has none."""
        return self.path / f"gen-{self.current() + 1}" / "loading.json"

    @property
    def edit_log(self) -> Path:
        """The path of the log of edits that are not published yet; see `log_edit`."""
        return self.path / "unpublished.log"

    def log_edit(self, published: int, added: int, removed: int) -> None:
        """Note an edit of a published generation, so that the next process knows what a killed one has lost."""
        with suppress(OSError), open(self.edit_log, "a", encoding="ascii") as log:
            log.write(f"{published} {added} {removed}\n")

    def lost_edits(self) -> str:
        """Return a sentence about the edits that a killed process left, or ""."""
        text = ""
        with suppress(OSError, ValueError):
            text = read_bytes(self.edit_log).decode("ascii", "replace")
        edits = [tuple(map(int, match)) for match in _EDIT.findall(text) if int(match[0]) == self.current()]
        if not edits:
            return ""
        _, added, removed = map(sum, zip(*edits))
        return (
            f"The last process that edited {self.path} ended without publishing {counted(len(edits), 'edit')}: "
            f"{added:,} added and {removed:,} removed {'triple is' if added + removed == 1 else 'triples are'} lost. "
            "The graph is as it was before these edits."
        )

    def notice(self) -> str:
        """Return a warning if a later load or a process that edited was interrupted, else an empty string."""
        if self.is_being_written():
            return ""
        if self.journal_file.exists():
            resume = f"Resume the load: {Command('graph load', resume=True, into=self.path)}"
            return f"The last load into {self.path} was interrupted, and its data is not part of the graph. {resume}"
        return self.lost_edits()

    # --- generations

    def store_dir(self, generation: int) -> Path:
        """Return the folder of the engine's files in a generation."""
        return self.path / f"gen-{generation}" / "store"

    def _generations(self) -> dict[int, Path]:
        names = ((_GENERATION.fullmatch(each.name), each) for each in self.path.iterdir())
        return {int(match[1]): each for match, each in names if match}

    def next_generation(self) -> int:
        """Return a number greater than those of all generations in the folder."""
        return 1 + max(self._generations(), default=0)

    def create_generation(self, generation: int, base: int = 0) -> None:
        """Create a new generation: empty, or with hard links to the files of generation `base`."""
        self.remove_generation(generation)
        self.store_dir(generation).mkdir(parents=True)
        (self.path / f"gen-{generation}" / "read.lock").touch()
        for file in self.store_dir(base).iterdir() if base else ():
            # the engine never changes an .sst file, so links to it are safe
            (_link if file.suffix == ".sst" else shutil.copy2)(file, self.store_dir(generation) / file.name)

    def create_working_copy(self, published: int) -> int:
        """Create a generation made of hard links to the published one, and return its number.

        The caller holds the lock for writing. What a killed process has left is removed.

        Raises:
            StoreIncomplete: a load was interrupted, and must be resumed or discarded first.
            StoreUnavailable: the folder is not writable, or the disk is full.
        """
        if self.journal_file.exists():
            raise StoreIncomplete(
                f"The last load into {self.path} was interrupted. It must be resumed or discarded before the graph "
                "can be edited.",
                "Resume the load: ",
                Command("graph load", resume=True, into=self.path),
            )
        with disk_errors(self.path):
            self.remove_unused(published)
            generation = self.next_generation()
            try:
                self.create_generation(generation, published)
            except OSError:
                self.remove_generation(generation)
                raise
        return generation

    @contextmanager
    def copied(self, worker: Worker, generation: int) -> Iterator[None]:
        """Copy the store of the worker into a new generation, which is removed after an error.

        Raises:
            StoreUnavailable: the disk is full or not writable.
            StoreCrashed: the worker died.
        """
        try:
            with disk_errors(self.path):
                self.create_generation(generation)
                self.store_dir(generation).rmdir()  # the engine creates it
                worker.call({"op": "copy", "target": str(self.store_dir(generation))})
                yield
        except BaseException:
            self.remove_generation(generation)
            raise

    def remove_generation(self, generation: int) -> None:
        """Remove a generation unless it is published. Raises StoreUnavailable if graph.json is damaged."""
        path = self.path / f"gen-{generation}"
        if generation != self.current():
            with suppress(OSError):
                # first, because a journal must not name lines that the store no longer has
                (path / "loading.json").unlink(missing_ok=True)
                shutil.rmtree(path, ignore_errors=True)

    def publish(self, meta: GraphMeta, *keep: int) -> None:
        """Make the generation `meta.generation` the published one, atomically, and remove unused ones not in `keep`."""
        for path in (self.store_dir(meta.generation), self.path / f"gen-{meta.generation}"):
            sync_to_disk(path)  # the engine has written its own files to the disk
        write_json(self.path / "graph.json", to_builtins(meta))
        self.remove_unused(meta.generation, *keep)

    def remove_unused(self, *keep: int) -> None:
        """Remove the log of edits, which are published or lost, and the generations without readers not in `keep`."""
        self.edit_log.unlink(missing_ok=True)
        for number, path in self._generations().items():
            if number not in keep:
                # a generation with readers is left to the next process that writes
                with suppress(OSError), take_lock(path / "read.lock", exclusive=True):
                    shutil.rmtree(path, ignore_errors=True)

    # --- locks

    def write_lock(self) -> BinaryIO:
        """Take the lock for loading and editing.

        Raises:
            StoreBusy: another process holds the lock.
            StoreUnavailable: the folder is not writable, the disk is full, or the folder contains symbolic links.
        """
        refuse_links(self.path, StoreUnavailable)
        with disk_errors(self.path):
            try:
                lock = take_lock(self.path / "write.lock", exclusive=True)
            except BlockingIOError:
                raise StoreBusy(
                    f"Another process{self._holder()} is writing to {self.path}.",
                    "Wait until that process is done and try again.",
                ) from None
            for item in self.path.iterdir():
                if _HALF_WRITTEN.fullmatch(item.name):
                    item.unlink()
        return lock

    def _holder(self) -> str:
        with suppress(OSError, ValueError), open(self.path / "write.lock", encoding="ascii") as file:
            return f" ({int(file.read(20))})"
        return ""

    def is_being_written(self) -> bool:
        """Return whether a process is loading or editing."""
        return held(self.path / "write.lock")

    def read_lock(self, generation: int) -> BinaryIO:
        """Take the lock for reading a generation.

        Raises:
            BlockingIOError: the generation is being removed, because a later one has been published.
            OSError: locking is not possible, e.g. on a read-only disk.
        """
        return take_lock(self.path / f"gen-{generation}" / "read.lock", exclusive=False)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target)
