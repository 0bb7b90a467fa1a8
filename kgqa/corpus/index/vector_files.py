"""Vectors in memory-mapped files, searched exactly with numpy; for up to a million vectors.

    vectors/
      pending.vectors, pending.keys    vectors that were put since the last version
      v<number>/                       a version: for each kind the vectors in the order of the IRIs

A version is complete once its manifest is written, and is never changed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from kgqa.corpus.index.array_folder import ArrayFolder, ArrayWriter
from kgqa.corpus.index.best_rows import best_rows
from kgqa.corpus.index.vector_store import VectorRows
from kgqa.model import PieceKind

BLOCK = 1 << 16
"""Vectors that are compared at a time; with 384 numbers each, they take 100 MB."""
_DIGEST = 16
_DECIMALS = 6
"""Cosines are rounded, so that equal vectors have equal cosines wherever they stand in a block."""


class VectorFiles:
    """A `VectorStore` in a folder. One process may write."""

    def __init__(self, folder: Path, size: int) -> None:
        """Open the store, which need not exist.

        Args:
            folder: Its folder.
            size: The length of a vector.
        """
        self._folder = folder
        self._size = size
        self._where: dict[bytes, np.ndarray] | None = None

    @property
    def location(self) -> str:
        return str(self._folder)

    def known(self, digests: Sequence[str]) -> set[str]:
        """Return those digests whose vectors were put."""
        where = self._vectors()
        return {each for each in digests if bytes.fromhex(each) in where}

    def put(self, vectors: Sequence[tuple[str, np.ndarray]]) -> None:
        """Keep vectors. They are on the disk when this returns."""
        where = self._vectors()
        self._folder.mkdir(parents=True, exist_ok=True)
        if not vectors:
            return
        arrays = [np.ascontiguousarray(each, dtype="<f4").reshape(-1, self._size) for _, each in vectors]
        file = self._folder / "pending.vectors"
        begin = _append(file, (each.tobytes() for each in arrays))
        lines = (f"{digest} {len(each)}\n".encode() for (digest, _), each in zip(vectors, arrays))
        _append(self._folder / "pending.keys", lines)
        written = np.asarray(np.memmap(file, "<f4", "r", begin, (sum(map(len, arrays)), self._size)))
        at = 0
        for (digest, _), each in zip(vectors, arrays):
            where[bytes.fromhex(digest)] = written[at : at + len(each)]
            at += len(each)

    def publish(self, rows: VectorRows) -> str:
        """Write a new version; see `VectorStore`."""
        where = self._vectors()
        name = f"v{max(self._versions(), default=0) + 1}"
        writer = ArrayWriter(self._folder / name)
        for kind, entries in rows.items():
            found = [where.get(bytes.fromhex(digest)) for _, digest in entries]
            if any(each is None for each in found):
                raise ValueError(f"the vectors of some pieces of the kind {kind} were not put")
            arrays = [each for each in found if each is not None]
            writer.add_parts(f"{kind}.vectors", "float32", (self._size,), _batched(arrays))
            starts = np.concatenate(([0], np.cumsum([len(each) for each in arrays], dtype=np.int64)))
            writer.add(f"{kind}.starts", starts.astype(np.int64))
            writer.add_texts(f"{kind}.iris", (iri for iri, _ in entries))
            digests = b"".join(bytes.fromhex(digest) for _, digest in entries)
            writer.add(f"{kind}.digests", np.frombuffer(digests, dtype=np.uint8).reshape(-1, _DIGEST))
        writer.finish({"kinds": list(rows)})
        return name

    def snapshot(self, version: str) -> VectorFilesSnapshot:
        """Open a published version; see `VectorStore`."""
        if version not in {f"v{number}" for number in self._versions()}:
            raise ValueError(f"there is no version {version!r:.40} of the vectors")
        return VectorFilesSnapshot(ArrayFolder(self._folder / version), self._size)

    def discard(self, keep: str) -> None:
        """Remove all other versions and what was put since."""
        for number in self._versions():
            if f"v{number}" != keep:
                shutil.rmtree(self._folder / f"v{number}", ignore_errors=True)
        for name in ("pending.keys", "pending.vectors"):  # without its key, a vector is ignored
            (self._folder / name).unlink(missing_ok=True)
        self._where = None

    def close(self) -> None:
        self._where = None

    def _versions(self) -> list[int]:
        with suppress(OSError):
            names = [each.name for each in self._folder.iterdir() if each.is_dir() and each.name.startswith("v")]
            return sorted(int(name[1:]) for name in names if name[1:].isascii() and name[1:].isdigit())
        return []

    def _vectors(self) -> dict[bytes, np.ndarray]:
        """Return the vectors of every text, by digest."""
        if self._where is None:
            found: dict[bytes, np.ndarray] = {}
            for number in self._versions():
                with suppress(ValueError):  # not complete, because its writer was killed
                    snapshot = VectorFilesSnapshot(ArrayFolder(self._folder / f"v{number}"), self._size)
                    found.update(snapshot.by_digest())
            found.update(self._pending())
            self._where = found
        return self._where

    def _pending(self) -> Iterator[tuple[bytes, np.ndarray]]:
        """Read what was put since the last version. What a killed writer left incomplete is cut off."""
        keys, vectors = self._folder / "pending.keys", self._folder / "pending.vectors"
        try:
            lines = keys.read_bytes().splitlines(keepends=True)
            data = np.asarray(np.memmap(vectors, dtype=np.uint8, mode="r"))
        except (OSError, ValueError):  # there are none, or they are empty
            lines, data = [], np.empty(0, dtype=np.uint8)
        row = 4 * self._size
        array = data[: len(data) // row * row].view("<f4").reshape(-1, self._size)
        at = length = 0
        for line in lines:
            digest, _, count = line.decode("ascii", "replace").partition(" ")
            rows = int(count) if count.endswith("\n") and count.strip().isdigit() else 0
            if not 0 < rows <= len(array) - at or len(digest) != 2 * _DIGEST:
                break
            try:
                yield bytes.fromhex(digest), array[at : at + rows]
            except ValueError:
                break
            at += rows
            length += len(line)
        if keys.exists() or vectors.exists():
            with suppress(OSError):
                _truncate(keys, length)
                _truncate(vectors, at * row)


class VectorFilesSnapshot:
    """One version of the vectors.

    Raises:
        ValueError: The version is damaged.
    """

    def __init__(self, folder: ArrayFolder, size: int) -> None:
        self._kinds: dict[str, _Kind] = {}
        for kind in folder.about.get("kinds", ()):
            self._kinds[str(kind)] = _Kind(folder, str(kind), size)

    def search(self, kind: PieceKind, queries: np.ndarray, k: int) -> list[list[tuple[str, float]]]:
        """Find the closest pieces; see `VectorSnapshot`."""
        found = self._kinds.get(kind)
        if found is None or not len(found.iris):
            return [[] for _ in queries]
        return [[(found.iris[row], score) for row, score in rows] for rows in found.search(queries, k)]

    def vectors(self, kind: PieceKind) -> tuple[Sequence[str], np.ndarray]:
        """Return all vectors of one kind; see `VectorSnapshot`."""
        found = self._kinds.get(kind)
        if found is None:
            return [], np.empty((0, 0), dtype=np.float32)
        counts = np.diff(found.starts)
        return [found.iris[int(row)] for row in np.repeat(np.arange(len(counts)), counts)], found.vectors

    def by_digest(self) -> Iterator[tuple[bytes, np.ndarray]]:
        """Yield the vectors of each text with its digest."""
        for found in self._kinds.values():
            for row, (begin, end) in enumerate(zip(found.starts, found.starts[1:])):
                yield found.digests[row].tobytes(), found.vectors[begin:end]

    def close(self) -> None:
        self._kinds = {}


class _Kind:
    """The vectors of one kind. `starts`: the first vector of each piece."""

    def __init__(self, folder: ArrayFolder, kind: str, size: int) -> None:
        self.vectors = folder.array(f"{kind}.vectors", "float32", size)
        self.starts = folder.array(f"{kind}.starts", "int64")
        self.iris = folder.texts(f"{kind}.iris")
        self.digests = folder.array(f"{kind}.digests", "uint8", _DIGEST)
        count = len(self.iris)
        if (
            len(self.starts) != count + 1
            or len(self.digests) != count
            or self.starts[0] != 0
            or self.starts[-1] != len(self.vectors)
            or (np.diff(self.starts) <= 0).any()
        ):
            raise ValueError(f"the vectors of the kind {kind} are damaged")

    def search(self, queries: np.ndarray, k: int) -> list[list[tuple[int, float]]]:
        """Return the best rows of each query with their cosines."""
        found: list[list[tuple[int, float]]] = [[] for _ in queries]
        for first, last in self._blocks():
            begin, end = self.starts[first], self.starts[last]
            cosines = queries.astype(np.float32) @ self.vectors[begin:end].T
            if end - begin > last - first:
                cosines = np.maximum.reduceat(cosines, self.starts[first:last] - begin, axis=1)
            for best, row in zip(found, np.round(cosines, _DECIMALS)):
                best += [(first + at, score) for at, score in best_rows(row, k)]
        return [sorted(best, key=lambda each: (-each[1], each[0]))[:k] for best in found]

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of pieces that have about `BLOCK` vectors."""
        first = 0
        while first < len(self.iris):
            last = int(np.searchsorted(self.starts, self.starts[first] + BLOCK, side="right")) - 1
            last = max(last, first + 1)
            yield first, last
            first = last


def _batched(arrays: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    for start in range(0, len(arrays), 4096):
        yield np.concatenate(arrays[start : start + 4096])


def _append(path: Path, parts: Iterable[bytes]) -> int:
    """Append to a file and wait until it is on the disk; return where the new part begins."""
    with open(path, "ab") as file:
        begin = file.tell()
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    return begin


def _truncate(path: Path, length: int) -> None:
    if path.stat().st_size > length:
        os.truncate(path, length)
