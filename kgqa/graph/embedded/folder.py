"""The graph folder: numbered generations of the data, and a file with the number of the current generation.

    mygraph/
      graph.json        number of the published generation; hashes of its graphs, schema, settings; replaced atomically
      schema-*.toml     only if the user gave a schema file
      loading.json      the journal of a running or interrupted load
      unpublished.log   the sizes of the edits that are not published yet
      write.lock        held by the one process that loads or edits
      gen-3/store/      the engine's files
      gen-3/read.lock   held (shared) by all readers of this generation

A load builds the next generation from hard links to the files of the published generation, and so does a process that
edits. Readers are not affected, and whatever is interrupted or fails leaves the published generation unchanged.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import structs, to_builtins

from kgqa.errors import StoreBusy, StoreError, StoreIncomplete, StoreUnavailable
from kgqa.graph.embedded.records import GraphMeta, is_generation_name
from kgqa.graph.embedded.unpublished import UnpublishedLog
from kgqa.schema import usable_prefixes
from kgqa.storage.atomic_files import cannot_create, sync_to_disk, write_json
from kgqa.storage.foreign import refuse_links
from kgqa.storage.loading import parse_json, read_bytes
from kgqa.storage.lock_files import held
from kgqa.text.hints import Command

HALF_WRITTEN = re.compile(r"\.(?:graph|loading)\.json\.[0-9-]+")
"""Matches the temporary files that `write_json` leaves if the process is killed."""


def system_error(path: Path, error: Exception) -> StoreUnavailable | None:
    """Return the error for a full disk or too few open files, which the engine reports as text; None for others."""

    def is_any(*codes: int) -> bool:
        return getattr(error, "errno", None) in codes or any(os.strerror(code) in str(error) for code in codes)

    if is_any(errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable(f"No space left on the disk of {path}.", "Free some space and try again.")
    if is_any(errno.EMFILE, errno.ENFILE) or "file descriptors" in str(error):
        return StoreUnavailable(
            "The graph needs more open files than the system allows.", "Raise the limit: ulimit -n 4096"
        )
    return None


def write_error(path: Path, error: OSError) -> StoreUnavailable:
    """Return the error for a graph folder that cannot be written."""
    if found := system_error(path, error):
        return found
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreUnavailable(cannot_create(path, error), "Choose another folder for the graph.")
    return StoreUnavailable(
        f"No permission to write to {path} ({error.strerror}).", "Make the folder writable for the user who runs kgqa."
    )


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Convert errors of the operating system to StoreUnavailable."""
    try:
        yield
    except OSError as error:
        raise write_error(path, error) from error
    except StoreError as error:
        raise system_error(path, error) or error from error.__cause__


class Lock:
    """An advisory lock on an open file.

    The lock is held while any process has the file open. A worker process that inherits the file descriptor keeps the
    lock, and the locks of a killed process are released.
    """

    def __init__(self, path: Path, *, exclusive: bool) -> None:
        """Take the lock. Raises BlockingIOError if the lock is held already, OSError if the file cannot be opened."""
        flags = os.O_RDWR | os.O_CREAT if exclusive else os.O_RDONLY | os.O_NONBLOCK
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self.fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError:
            os.close(self.fd)
            raise
        if exclusive:
            with suppress(OSError):  # the process id is only used in messages; on a full disk it is left out
                os.ftruncate(self.fd, 0)
                os.write(self.fd, str(os.getpid()).encode())

    def release(self) -> None:
        """Release the lock. Releasing twice does no harm."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class GraphFolder:
    """Reads and writes the records, locks and generations of one graph folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def store_dir(self, generation: int) -> Path:
        """Return the folder of the engine's files in a generation."""
        return self.path / f"gen-{generation}" / "store"

    @property
    def journal_file(self) -> Path:
        """The path of a load's journal."""
        return self.path / "loading.json"

    def exists(self) -> bool:
        """Return whether a load into this folder has been published."""
        return (self.path / "graph.json").is_file()

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
        try:
            meta = self._read_meta()
        except FileNotFoundError:
            if self.journal_file.exists():
                if self.is_being_written():
                    raise StoreBusy(
                        f"Another process is loading data into {self.path}.", "Wait until that load is complete."
                    ) from None
                raise StoreIncomplete(
                    f"The load into {self.path} was interrupted before it was complete.",
                    "Resume the load: ",
                    Command("graph load", resume=True, into=self.path),
                ) from None
            raise StoreUnavailable(
                f"{self.path} is not a graph folder: it has no graph.json.",
                "Load a graph into a new folder: ",
                Command("graph load", "FILE", into="GRAPH"),
            ) from None
        if not self.store_dir(meta.generation).is_dir():
            if self._read_meta().generation != meta.generation:  # another process has just published and removed it
                return self.meta()
            raise StoreUnavailable(
                f"The data of {self.path} is missing (gen-{meta.generation}).", "Load the data again."
            )
        return meta

    def _read_meta(self) -> GraphMeta:
        """Read graph.json without checking that the data exists. Raises StoreUnavailable or FileNotFoundError."""
        try:
            meta: GraphMeta = parse_json(read_bytes(self.path / "graph.json"), GraphMeta)
        except FileNotFoundError:
            raise
        except PermissionError as error:
            raise StoreUnavailable(
                f"No permission to read {self.path} ({error.strerror}).",
                "Make the folder readable for the user who runs kgqa.",
            ) from error
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise StoreUnavailable(f"{self.path / 'graph.json'} is damaged ({why}).", "Load the data again.") from error
        return structs.replace(meta, prefixes=usable_prefixes(meta.prefixes))

    def current_generation(self) -> int | None:
        """Return the number of the published generation; None before the first load is complete.

        Raises:
            StoreUnavailable: graph.json is damaged.
        """
        try:
            return self._read_meta().generation
        except FileNotFoundError:
            return None

    def is_journal_published(self) -> bool:
        """Return whether the load in the journal has been published; if so, only the journal is left to remove."""
        with suppress(OSError, ValueError, StoreUnavailable):
            loaded = parse_json(read_bytes(self.journal_file), dict[str, Any])
            return bool(loaded.get("generation") == self.current_generation())
        return False

    def is_being_written(self) -> bool:
        """Return whether a process is loading or editing."""
        return held(self.path / "write.lock")

    def interruption_notice(self) -> str:
        """Return a warning if a later load or a process that edited was interrupted, else an empty string."""
        if not (self.journal_file.exists() or self.unpublished.path.exists()) or self.is_being_written():
            return ""
        if self.journal_file.exists() and not self.is_journal_published():
            resume = f"Resume the load: {Command('graph load', resume=True, into=self.path)}"
            return f"The last load into {self.path} was interrupted, and its data is not part of the graph. {resume}"
        return self.unpublished.notice(self.current_generation())

    @property
    def unpublished(self) -> UnpublishedLog:
        """The log of edits that are not published yet."""
        return UnpublishedLog(self.path / "unpublished.log")

    def next_generation(self) -> int:
        """Return a number greater than those of all generations in the folder."""
        return 1 + max((int(item.name[4:]) for item in self.path.iterdir() if is_generation_name(item.name)), default=0)

    def publish(self, meta: GraphMeta, *, keep: Collection[int] = ()) -> None:
        """Make the generation `meta.generation` the published one, atomically, and remove unused ones not in `keep`."""
        write_json(self.path / "graph.json", to_builtins(meta))
        self.finish_publishing({meta.generation, *keep})

    def finish_publishing(self, keep: Collection[int]) -> None:
        """Remove what a published load or edit leaves: its journal or log, and generations without readers."""
        self.journal_file.unlink(missing_ok=True)
        self.unpublished.remove()
        self.remove_unused(keep)

    def remove_unused(self, keep: Collection[int]) -> None:
        """Remove the generations that have no readers, except those in `keep`."""
        names = {f"gen-{generation}" for generation in keep}
        for item in self.path.iterdir():
            if is_generation_name(item.name) and item.name not in names:
                self._remove_if_unused(item)

    def remove_generation(self, generation: int) -> None:
        """Remove a generation that is not published. Raises StoreUnavailable if graph.json is damaged."""
        if generation != self.current_generation():
            shutil.rmtree(self.path / f"gen-{generation}", ignore_errors=True)

    def update_meta(self, **changes: Any) -> GraphMeta:
        """Change entries of graph.json."""
        meta = structs.replace(self.meta(), **changes)
        write_json(self.path / "graph.json", to_builtins(meta))
        return meta

    def _remove_if_unused(self, generation: Path) -> None:
        try:
            lock: Lock | None = Lock(generation / "read.lock", exclusive=True)
        except BlockingIOError:
            return  # the generation has readers; the next process that writes tries to remove it again
        except OSError:
            lock = None
        shutil.rmtree(generation, ignore_errors=True)
        if lock:
            lock.release()

    def write_lock(self) -> Lock:
        """Take the lock for loading and editing.

        Raises:
            StoreBusy: another process holds the lock.
            StoreUnavailable: the folder is not writable, the disk is full, or the folder contains symbolic links.
        """
        refuse_links(self.path, StoreUnavailable)
        try:
            lock = Lock(self.path / "write.lock", exclusive=True)
        except BlockingIOError:
            raise StoreBusy(
                f"Another process{self._holder()} is writing to {self.path}.",
                "Wait until that process is done and try again.",
            ) from None
        except OSError as error:
            raise write_error(self.path, error) from error
        for item in self.path.iterdir():
            if HALF_WRITTEN.fullmatch(item.name):
                with suppress(OSError):
                    item.unlink()
        return lock

    def read_lock(self, generation: int) -> Lock | None:
        """Take the lock for reading a generation. Returns None if locking is not possible, e.g. on a read-only disk.

        Raises:
            BlockingIOError: the generation is being removed, because a later one has been published.
        """
        try:
            return Lock(self.path / f"gen-{generation}" / "read.lock", exclusive=False)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EACCES, errno.EROFS, errno.ENOLCK, errno.ENOTSUP):
                return None
            raise

    def _holder(self) -> str:
        with suppress(OSError, ValueError), open(self.path / "write.lock", encoding="ascii") as file:
            return f" ({int(file.read(20))})"
        return ""

    def create_generation(self, generation: int, base: int | None) -> None:
        """Create a new generation: empty, or with hard links to the files of generation `base`."""
        target = self.path / f"gen-{generation}"
        shutil.rmtree(target, ignore_errors=True)
        (target / "store").mkdir(parents=True)
        (target / "read.lock").touch()
        if base is None:
            return
        source = self.path / f"gen-{base}"
        for file in (source / "store").iterdir():
            # the engine never changes an .sst file, so links to it are safe
            (_link if file.suffix == ".sst" else shutil.copy2)(file, target / "store" / file.name)

    def sync(self, generation: int) -> None:
        """Wait until the files of a generation are on the disk. The engine has written its own files that way."""
        for path in (self.store_dir(generation), self.path / f"gen-{generation}"):
            sync_to_disk(path)

    def create_copy_target(self, generation: int) -> Path:
        """Create a new generation without a store, and return the path of its store."""
        (self.path / f"gen-{generation}").mkdir()
        (self.path / f"gen-{generation}" / "read.lock").touch()
        return self.store_dir(generation)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target)
