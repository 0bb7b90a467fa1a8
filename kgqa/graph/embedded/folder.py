"""A graph on disk: one folder, numbered generations inside, one file that says which of them counts.

    mygraph/
      graph.json        which generation is current, its fingerprint, schema and settings; replaced atomically
      schema-*.toml     only when the user gave a schema of their own
      loading.json      only while a load runs, or after one was interrupted
      write.lock        held by the one process that loads or updates
      gen-3/store/      the engine's files
      gen-3/triples.u64 sorted hashes of all triples: duplicates, counts and the fingerprint come from it
      gen-3/read.lock   held (shared) by everyone who reads this generation

A load builds the next generation from hard links to the current one, so readers are not disturbed, and an
interrupted or failed load leaves the graph as it was.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kgqa.errors import StoreBusy, StoreIncomplete, StoreUnavailable
from kgqa.graph.embedded.records import FORMAT, is_generation_name, read_graph_record, read_journal_record

HALF_WRITTEN = re.compile(r"\.(?:graph|loading)\.json\.[0-9]+")
"""What `write_json` leaves of a record when it is killed."""


@dataclass(frozen=True)
class GraphMeta:
    """The content of graph.json. `settings` holds what belongs to the graph, such as its walk rule."""

    generation: int
    fingerprint: str
    triples: int
    schema: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    files: tuple[dict[str, Any], ...] = ()
    stale: bool = False
    format: int = FORMAT


class Lock:
    """An advisory lock on an open file. It lives as long as any process has the file open, so a worker that
    is given the descriptor keeps it, and a killed process leaves none behind.
    """

    def __init__(self, path: Path, *, exclusive: bool) -> None:
        """Raises BlockingIOError when somebody else holds it, OSError when the file cannot be opened."""
        # never through a link: the lock of a folder from elsewhere could be any file of the user's
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW if exclusive else os.O_RDONLY | os.O_NONBLOCK
        self.fd = os.open(path, flags | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self.fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError:
            os.close(self.fd)
            raise
        if exclusive:
            with suppress(OSError):  # a full disk has no room for it, and it is only told to people
                os.ftruncate(self.fd, 0)
                os.write(self.fd, str(os.getpid()).encode())

    def release(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class GraphFolder:
    """Reads and writes the bookkeeping of one graph folder; knows nothing of the engine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def store_dir(self, generation: int) -> Path:
        return self.path / f"gen-{generation}" / "store"

    @property
    def journal_file(self) -> Path:
        return self.path / "loading.json"

    def exists(self) -> bool:
        return (self.path / "graph.json").is_file()

    def meta(self) -> GraphMeta:
        """What graph.json says.

        Raises:
            StoreUnavailable: there is no graph here; the message says what to do.
            StoreIncomplete: the very first load was interrupted.
        """
        if not self.path.exists():
            raise StoreUnavailable(
                f"There is no graph at {self.path}. Make one: kgqa graph load FILE --into {self.path}"
            )
        if not self.path.is_dir():
            raise StoreUnavailable(
                f"{self.path} is a file, not a graph folder. Load it first: kgqa graph load {self.path} --into GRAPH"
            )
        try:
            meta = self._recorded()
        except FileNotFoundError:
            if self.journal_file.exists():
                if self.is_being_written():
                    raise StoreBusy(f"{self.path} is being loaded right now. Wait until that is done.") from None
                raise StoreIncomplete(
                    f"The load into {self.path} was interrupted before it was complete. "
                    f"Go on with it: kgqa graph load --resume --into {self.path}"
                ) from None
            raise StoreUnavailable(
                f"{self.path} is a folder but no graph: it has no graph.json. "
                f"Make one in a folder of its own: kgqa graph load FILE --into GRAPH"
            ) from None
        if not self.store_dir(meta.generation).is_dir():
            raise StoreUnavailable(f"{self.path} has lost its data (gen-{meta.generation}). Load it again.")
        return meta

    def _recorded(self) -> GraphMeta:
        """What graph.json says, whether or not the data is there. Raises StoreUnavailable, FileNotFoundError."""
        try:
            data = read_graph_record(self.path / "graph.json")
        except FileNotFoundError:
            raise
        except PermissionError as error:
            raise StoreUnavailable(f"No permission to read {self.path}: {error.strerror}.") from error
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise StoreUnavailable(f"{self.path / 'graph.json'} is damaged ({why}). Load the data again.") from error
        if data["format"] != FORMAT:
            raise StoreUnavailable(
                f"{self.path} was written by another version of kgqa (format {data['format']}). Load the data again."
            )
        return GraphMeta(**{**data, "files": tuple(data["files"])})

    def current_generation(self) -> int | None:
        """The generation that is published, None before the first load is done.

        Raises:
            StoreUnavailable: graph.json is damaged, so nobody knows.
        """
        try:
            return self._recorded().generation
        except FileNotFoundError:
            return None

    def is_journal_published(self) -> bool:
        """Whether the load that the journal tells of has been published, and only the journal is left of it."""
        try:
            return read_journal_record(self.journal_file)["generation"] == self.current_generation()
        except (OSError, ValueError, StoreUnavailable):
            return False

    def is_being_written(self) -> bool:
        """Whether some process is loading or updating right now."""
        try:
            Lock(self.path / "write.lock", exclusive=True).release()
        except BlockingIOError:
            return True
        except OSError:
            return False  # not for us to write, so nobody knows
        return False

    def interrupted(self) -> str:
        """What to tell whoever opens a graph that a later load left unfinished; empty when there is none."""
        if not self.journal_file.exists() or self.is_being_written() or self.is_journal_published():
            return ""
        return (
            f"A later load into {self.path} was interrupted and is not part of the graph. "
            f"Go on with it: kgqa graph load --resume --into {self.path}"
        )

    def publish(self, meta: GraphMeta) -> None:
        """Make this generation the graph, atomically, and remove what nobody reads any more."""
        write_json(self.path / "graph.json", asdict(meta))
        self.finish_publishing(meta.generation)

    def finish_publishing(self, current: int) -> None:
        """Remove the journal of the load that made the current generation, and generations that nobody reads."""
        self.journal_file.unlink(missing_ok=True)
        for old in self.path.iterdir():
            if is_generation_name(old.name) and old.name != f"gen-{current}":
                self._remove_if_unused(old)

    def remove_generation(self, generation: int) -> None:
        """Remove a generation that is not published. Raises StoreUnavailable where nobody knows which one is."""
        if generation != self.current_generation():
            shutil.rmtree(self.path / f"gen-{generation}", ignore_errors=True)

    def update_meta(self, **changes: Any) -> GraphMeta:
        """Change single entries of graph.json (schema, settings, fingerprint after an update)."""
        meta = replace(self.meta(), **changes)
        write_json(self.path / "graph.json", asdict(meta))
        return meta

    def _remove_if_unused(self, generation: Path) -> None:
        try:
            lock = Lock(generation / "read.lock", exclusive=True)
        except BlockingIOError:
            return  # somebody still reads it; the next load tries again
        except OSError:
            lock = None
        shutil.rmtree(generation, ignore_errors=True)
        if lock:
            lock.release()

    def write_lock(self) -> Lock:
        """The lock for loading and updating.

        Raises:
            StoreBusy: another process has it.
            StoreUnavailable: no permission, a full disk, or links in the folder that lead out of it.
        """
        try:
            lock = Lock(self.path / "write.lock", exclusive=True)
        except BlockingIOError:
            raise StoreBusy(
                f"Another process{self._holder()} is writing to {self.path}. Wait until it is done and try again."
            ) from None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise _is_link(self.path / "write.lock") from error
            raise write_error(self.path, error) from error
        try:
            self._tidy()
        except BaseException:
            lock.release()
            raise
        return lock

    def _tidy(self) -> None:
        """Remove records that were half written; refuse generations with links in them, which could lead anywhere."""
        for item in os.scandir(self.path):
            if HALF_WRITTEN.fullmatch(item.name):
                with suppress(OSError):
                    os.unlink(item.path)
            elif is_generation_name(item.name):
                if item.is_symlink():
                    raise _is_link(item.path)
                for folder, below, files in os.walk(item.path):
                    for name in (*below, *files):
                        if os.path.islink(os.path.join(folder, name)):
                            raise _is_link(os.path.join(folder, name))

    def read_lock(self, generation: int, *, exclusive: bool = False) -> Lock | None:
        """The lock for reading a generation; None where locks cannot be had (a read-only medium).

        Raises:
            StoreBusy: it is being updated, or, for `exclusive`, it is being read.
        """
        try:
            return Lock(self.path / f"gen-{generation}" / "read.lock", exclusive=exclusive)
        except BlockingIOError:
            doing = "is reading" if exclusive else "is updating"
            raise StoreBusy(f"Another process {doing} {self.path}. Wait until it is done and try again.") from None
        except OSError as error:
            if exclusive:
                raise StoreUnavailable(f"No permission to write to {self.path}: {error.strerror}.") from error
            if error.errno in (errno.ENOENT, errno.EACCES, errno.EROFS, errno.ENOLCK, errno.ENOTSUP):
                return None
            raise

    def _holder(self) -> str:
        try:
            with open(self.path / "write.lock", encoding="ascii") as file:
                return f" ({int(file.read(20))})"
        except (OSError, ValueError):
            return ""

    def create_generation(self, generation: int, base: int | None) -> None:
        """Make a new generation, from hard links to `base` where there is one."""
        target = self.path / f"gen-{generation}"
        shutil.rmtree(target, ignore_errors=True)
        (target / "store").mkdir(parents=True)
        (target / "read.lock").touch()
        if base is None:
            return
        source = self.path / f"gen-{base}"
        for file in (source / "store").iterdir():
            # the engine never changes an .sst file, only makes new ones: those may be shared
            (_link if file.suffix == ".sst" else shutil.copy2)(file, target / "store" / file.name)

    def created_ns(self, generation: int) -> int:
        """When a generation was made, in nanoseconds since the epoch; 0 where that cannot be told."""
        try:
            return (self.path / f"gen-{generation}").stat().st_mtime_ns
        except OSError:
            return 0

    def triples_file(self, generation: int) -> Path:
        return self.path / f"gen-{generation}" / "triples.u64"

    def load_hashes(self, generation: int) -> np.ndarray:
        """The sorted uint64 hashes of all triples of a generation."""
        return np.fromfile(self.triples_file(generation), dtype="<u8")

    def save_hashes(self, generation: int, sorted_hashes: np.ndarray) -> None:
        # not by numpy, which does not say that a disk is full
        with open(self.triples_file(generation), "wb") as file:
            file.write(memoryview(np.ascontiguousarray(sorted_hashes, dtype="<u8")).cast("B"))


def fingerprint(sorted_hashes: np.ndarray) -> str:
    """A 16-digit hexadecimal hash of a set of triples: count, sum and exclusive or of their hashes."""
    count = int(sorted_hashes.size)
    low = int((sorted_hashes & np.uint64(0xFFFFFFFF)).sum(dtype=np.uint64)) if count else 0
    high = int((sorted_hashes >> np.uint64(32)).sum(dtype=np.uint64)) if count else 0
    mixed = int(np.bitwise_xor.reduce(sorted_hashes)) if count else 0
    return hashlib.sha256(f"{count} {low} {high} {mixed}".encode()).hexdigest()[:16]


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file as `write_atomically` writes it."""
    write_atomically(path, json.dumps(data, indent=1, ensure_ascii=False))


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees either the old or the new one, never half of it. A link is replaced.

    Raises:
        OSError: it cannot be written; the old one is as it was. `filename` is the path.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # a file name that is no UTF-8 has lone surrogates, which are written as escapes of JSON
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace", opener=_open_no_link) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_error(path: Path, error: OSError) -> StoreUnavailable:
    """The error of a graph folder that cannot be written, and what helps."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable(f"There is no space left on the disk of {path}. Make room and try again.")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StoreUnavailable(f"Too many files are open to write to {path}. Allow more: ulimit -n 4096")
    return StoreUnavailable(f"No permission to write to {path}: {error.strerror}.")


def _is_link(path: Path | str) -> StoreUnavailable:
    return StoreUnavailable(
        f"{path} is a link, and a graph folder that is written to may hold none. Remove it, or load the data into "
        "another folder."
    )


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, target)
