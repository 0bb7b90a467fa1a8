"""Hashes of all triples in the engine's store, computed after updates."""

from __future__ import annotations

import io
from typing import IO, Any, cast

import numpy as np
import pyoxigraph as ox

from kgqa.graph.rdf.lines import hashes


class _HashingWriter(io.RawIOBase):
    """A file-like object that hashes the lines written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self._rest = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        data = bytes(data)
        whole = self._rest + data
        cut = whole.rfind(b"\n") + 1
        self._rest = whole[cut:]
        if cut:
            self.parts.append(hashes(whole[:cut].splitlines(keepends=True)))
        return len(data)


def stored_hashes(store: ox.Store) -> bytes:
    """Return the sorted hashes of all quads as little-endian uint64, the format of `save_hashes`."""
    writer = _HashingWriter()
    store.dump(cast(IO[bytes], writer), format=ox.RdfFormat.N_QUADS)
    return np.unique(np.frombuffer(b"".join(writer.parts), dtype="<u8")).tobytes()
