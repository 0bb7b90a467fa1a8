"""Folders of arrays: raw files, memory-mapped, with a manifest that says what each file contains.

A folder may come from elsewhere, so nothing in it is trusted: names, types and sizes are checked before a file is used,
and nothing is unpickled.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kgqa.errors import CorpusError
from kgqa.storage.atomic_files import replace_file, sync_to_disk

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 1 << 20
_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*\Z")
_TYPES = frozenset(("float16", "float32", "float64", "int32", "int64", "uint8"))


class DamagedIndex(CorpusError, ValueError):
    """Part of an index is found to be damaged while it is searched. The message ends with what is damaged."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"The index of the corpus is damaged: {what}.", "Remove the folder `index` of the corpus; it is made anew."
        )


class ArrayWriter:
    """Writes a new folder of arrays. The folder is complete once `finish` has returned."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self._arrays: dict[str, dict[str, Any]] = {}

    def add(self, name: str, array: np.ndarray) -> None:
        """Write one array."""
        self.add_parts(name, array.dtype, array.shape[1:], [array])

    def add_parts(
        self, name: str, dtype: np.dtype[Any] | str, row: tuple[int, ...], parts: Iterable[np.ndarray]
    ) -> None:
        """Write one array from parts of its first axis; `row` is the shape of what the first axis counts."""
        dtype = np.dtype(dtype).newbyteorder("<")
        count = 0
        with open(self.folder / name, "xb") as file:
            for part in parts:
                if part.shape[1:] != row:
                    raise ValueError(f"a part of {name} has rows of the shape {part.shape[1:]}, not {row}")
                file.write(np.ascontiguousarray(part, dtype=dtype).data)
                count += len(part)
        sync_to_disk(self.folder / name)
        self._arrays[name] = {"dtype": np.dtype(dtype).name, "shape": [count, *row]}

    def add_texts(self, name: str, texts: Iterable[str]) -> None:
        """Write texts: an array of bytes and one of the positions at which each text begins."""
        ends = [0]

        def parts() -> Iterable[np.ndarray]:
            batch: list[bytes] = []
            size = 0
            for text in texts:
                data = text.encode("utf-8", "surrogatepass")
                ends.append(ends[-1] + len(data))
                batch.append(data)
                size += len(data)
                if size > 1 << 22:
                    yield np.frombuffer(b"".join(batch), dtype=np.uint8)
                    batch, size = [], 0
            yield np.frombuffer(b"".join(batch), dtype=np.uint8)

        self.add_parts(name, "uint8", (), parts())
        self.add(f"{name}.ends", np.array(ends, dtype=np.int64))

    def finish(self, about: Mapping[str, Any] = {}) -> None:
        """Write the manifest, with any values in `about`."""
        text = json.dumps({"about": dict(about), "arrays": self._arrays}, ensure_ascii=False, indent=1)
        replace_file(self.folder / MANIFEST, [text.encode()])
        sync_to_disk(self.folder)


class ArrayFolder:
    """A finished folder of arrays, opened for reading.

    Raises:
        ValueError: The folder is not complete, or something in it is not as the manifest says.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            with open(folder / MANIFEST, "rb") as file:
                data = json.loads(file.read(MAX_MANIFEST_BYTES))
            self.about: dict[str, Any] = dict(data["about"])
            arrays = {name: (each["dtype"], tuple(each["shape"])) for name, each in data["arrays"].items()}
            for name, (dtype, shape) in arrays.items():
                if not _NAME.match(name) or dtype not in _TYPES or not shape or not all(map(_is_size, shape)):
                    raise ValueError(f"{name!r:.80} cannot be an array")
                size = (folder / name).stat().st_size
                if size != math.prod(shape) * np.dtype(dtype).itemsize:
                    raise ValueError(f"the file {name} has {size} bytes, which is not its shape")
        except (OSError, KeyError, TypeError, AttributeError, RecursionError, UnicodeDecodeError) as error:
            raise ValueError(f"not a folder of arrays: {error!r:.200}") from error
        self._arrays = arrays

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def array(self, name: str, dtype: str, *row: int | None) -> np.ndarray:
        """Map an array into memory, read-only.

        Args:
            name: Its name.
            dtype: The type that it must have.
            row: The shape that each of its rows must have; None for any size.

        Raises:
            ValueError: There is no such array.
        """
        if name not in self._arrays:
            raise ValueError(f"there is no array {name}")
        found, shape = self._arrays[name]
        if found != dtype or len(shape) != 1 + len(row) or any(a not in (b, None) for a, b in zip(row, shape[1:])):
            raise ValueError(f"the array {name} has the type {found} and the shape {shape}")
        if not math.prod(shape):
            return np.empty(shape, dtype=dtype)
        try:
            mapped = np.memmap(self.folder / name, dtype=np.dtype(dtype).newbyteorder("<"), mode="r", shape=shape)
            return np.asarray(mapped)  # slices of a plain array are faster
        except (OSError, OverflowError) as error:
            raise ValueError(f"the array {name} cannot be read: {error}") from error

    def texts(self, name: str) -> Texts:
        """Open texts that `ArrayWriter.add_texts` wrote. Raises the same errors as `array`."""
        data, ends = self.array(name, "uint8"), self.array(f"{name}.ends", "int64")
        if not len(ends) or ends[0] != 0 or ends[-1] != len(data) or (np.diff(ends) < 0).any():
            raise ValueError(f"the positions of the texts {name} are wrong")
        return Texts(data, ends)


class Texts:
    """A sequence of texts in a file, read one by one."""

    def __init__(self, data: np.ndarray, ends: np.ndarray) -> None:
        self._data = data
        self._ends = ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> str:
        """Return a text. Raises DamagedIndex if it is not UTF-8."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        data: bytes = self._data[self._ends[index] : self._ends[index + 1]].tobytes()
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise DamagedIndex("a text is not UTF-8") from error

    def find(self, text: str) -> int | None:
        """Return the position of a text, by binary search; the texts must be sorted. None if it is not there."""
        data, ends = self._data, self._ends
        wanted = text.encode("utf-8", "surrogatepass")  # sorted like code points
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if data[ends[middle] : ends[middle + 1]].tobytes() < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and data[ends[low] : ends[low + 1]].tobytes() == wanted else None


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 48
