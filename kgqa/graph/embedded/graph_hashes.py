"""Additive hashes of named graphs: kept as triples come and go, and equal for equal sets of triples."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt
import pyoxigraph as ox

from kgqa.graph.rdf.lines import hashes_by_graph

Hashes = npt.NDArray[np.uint64]
MAX_GRAPHS = 10_000
"""Maximum number of named graphs that have a hash of their own."""
OTHER_GRAPHS = "*"
"""The key under which all named graphs are hashed together if there are more than MAX_GRAPHS."""
_MODULUS = 1 << 128
_LOW = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class GraphHash:
    """The number of triples of a graph, and the sum (modulo 2^128) and XOR of their 64-bit hashes.

    In the sum, the two halves of a hash count 64 bits apart: `(hash >> 32) << 64 | hash & 0xFFFFFFFF`.
    """

    triples: int = 0
    sum: int = 0
    xor: int = 0

    @classmethod
    def of(cls, hashes: Hashes) -> GraphHash:
        """Return the hash of the set of triples with these distinct hashes."""
        if not hashes.size:
            return cls()
        low = int((hashes & np.uint64(0xFFFFFFFF)).sum(dtype=np.uint64))
        high = int((hashes >> np.uint64(32)).sum(dtype=np.uint64))
        return cls(int(hashes.size), (high << 64) + low, int(np.bitwise_xor.reduce(hashes)))

    def __add__(self, other: GraphHash) -> GraphHash:
        return GraphHash(self.triples + other.triples, (self.sum + other.sum) % _MODULUS, self.xor ^ other.xor)

    def __sub__(self, other: GraphHash) -> GraphHash:
        return GraphHash(self.triples - other.triples, (self.sum - other.sum) % _MODULUS, self.xor ^ other.xor)

    @property
    def fingerprint(self) -> str:
        """The hash as 16 hexadecimal digits."""
        text = f"{self.triples} {self.sum & _LOW} {self.sum >> 64} {self.xor}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class DatasetHash:
    """The hashes of all graphs of a dataset, by IRI; "" is the default graph. Empty graphs are left out."""

    graphs: Mapping[str, GraphHash]

    @classmethod
    def of(cls, graphs: Mapping[str, GraphHash]) -> DatasetHash:
        """Return the hash of a dataset. Too many named graphs are hashed together; see OTHER_GRAPHS."""
        kept = {graph: hash for graph, hash in graphs.items() if hash.triples}
        if len(kept) > MAX_GRAPHS:
            named = sum((hash for graph, hash in kept.items() if graph), GraphHash())
            kept = {graph: hash for graph, hash in kept.items() if not graph} | {OTHER_GRAPHS: named}
        return cls(kept)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> DatasetHash:
        """Return the hash that `record` wrote."""
        return cls({g: GraphHash(h["triples"], int(h["sum"], 16), int(h["xor"], 16)) for g, h in record.items()})

    def record(self) -> dict[str, Any]:
        """Return the hash as an object for JSON."""
        return {
            graph: {"triples": hash.triples, "sum": f"{hash.sum:032x}", "xor": f"{hash.xor:016x}"}
            for graph, hash in self.graphs.items()
        }

    def key(self, graph: str) -> str:
        """Return the key in `graphs` under which a graph is hashed."""
        return OTHER_GRAPHS if graph and OTHER_GRAPHS in self.graphs else graph

    def view(self, graphs: Iterable[str] = ()) -> GraphHash:
        """Return the hash of some named graphs together; without any, of the default graph."""
        keys = {self.key(graph) for graph in graphs} or {""}
        return sum((self.graphs.get(key, GraphHash()) for key in keys), GraphHash())

    @property
    def total(self) -> GraphHash:
        """The hash of all graphs together."""
        return sum(self.graphs.values(), GraphHash())

    def plus(self, changes: Mapping[str, GraphHash]) -> DatasetHash:
        """Return the hash after changes: for each graph, the hash of its added triples minus that of the removed."""
        after = dict(self.graphs)
        for graph, change in changes.items():
            key = self.key(graph)
            after[key] = after.get(key, GraphHash()) + change
        return DatasetHash.of(after)


def stored_hashes(store: ox.Store) -> dict[str, Hashes]:
    """Return the sorted hashes of all triples in the engine's store, by named graph."""
    writer = _HashingWriter()
    store.dump(cast(IO[bytes], writer), format=ox.RdfFormat.N_QUADS)
    return {graph: np.unique(np.frombuffer(b"".join(parts), dtype="<u8")) for graph, parts in writer.parts.items()}


class _HashingWriter(io.RawIOBase):
    """A file-like object that hashes the lines written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[str, list[bytes]] = {}
        self._rest = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        data = bytes(data)
        whole = self._rest + data
        cut = whole.rfind(b"\n") + 1
        self._rest = whole[cut:]
        for graph, found in hashes_by_graph(whole[:cut].splitlines(keepends=True)).items():
            self.parts.setdefault(graph, []).append(found)
        return len(data)
