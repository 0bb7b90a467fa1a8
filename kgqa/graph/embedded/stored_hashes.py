"""Hashes of everything a store holds, read back from the engine: after updates nobody kept count of."""

from __future__ import annotations

import numpy as np
import pyoxigraph as ox

from kgqa.graph.rdf.lines import hashes


class _HashingWriter:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._rest = b""

    def write(self, data: bytes) -> int:
        data = bytes(data)
        whole = self._rest + data
        cut = whole.rfind(b"\n") + 1
        self._rest = whole[cut:]
        if cut:
            self.parts.append(hashes(whole[:cut].splitlines(keepends=True)))
        return len(data)

    def flush(self) -> None:
        pass


def stored_hashes(store: ox.Store) -> bytes:
    """Sorted little-endian uint64 hashes of all quads, as `GraphFolder.save_hashes` keeps them."""
    writer = _HashingWriter()
    store.dump(writer, format=ox.RdfFormat.N_QUADS)
    return np.unique(np.frombuffer(b"".join(writer.parts), dtype="<u8")).tobytes()
