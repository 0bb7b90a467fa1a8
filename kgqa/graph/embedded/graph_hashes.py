"""Order-independent hashes of named graphs: sums of the hashes of their triples, kept as triples come and go."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Digests = npt.NDArray[np.uint64]
"""The 256-bit hashes of some lines, as an array of four columns."""
MAX_GRAPHS = 10_000
"""Maximum number of named graphs that have a hash of their own."""
OTHER_GRAPHS = "*"
"""The key under which all named graphs are hashed together if there are more than MAX_GRAPHS."""
_MODULUS = 1 << 256


@dataclass(frozen=True, slots=True)
class GraphHash:
    """The number of triples of a graph, and the sum of their hashes modulo 2^256."""

    triples: int = 0
    sum: int = 0

    @classmethod
    def of(cls, digests: Digests) -> GraphHash:
        """Return the hash of the set of triples with these digests, all of which differ."""
        parts = digests.view(np.uint32).sum(axis=0, dtype=np.uint64)
        return cls(len(digests), sum(int(part) << 32 * place for place, part in enumerate(parts)) % _MODULUS)

    def __add__(self, other: GraphHash) -> GraphHash:
        return GraphHash(self.triples + other.triples, (self.sum + other.sum) % _MODULUS)

    def __sub__(self, other: GraphHash) -> GraphHash:
        return GraphHash(self.triples - other.triples, (self.sum - other.sum) % _MODULUS)

    @property
    def fingerprint(self) -> str:
        """The hash as 16 hexadecimal digits."""
        return hashlib.sha256(f"{self.triples} {self.sum}".encode()).hexdigest()[:16]


def digests_of(lines: Iterable[bytes]) -> Digests:
    """Hash canonical N-Quads lines, each with the IRI of its graph."""
    blake2b = hashlib.blake2b
    return np.frombuffer(b"".join([blake2b(line, digest_size=32).digest() for line in lines]), "<u8").reshape(-1, 4)


def distinct_hashes(parts: Sequence[tuple[str, Digests]]) -> dict[str, GraphHash]:
    """Return the hash of each graph from the digests of its lines, among which the same may occur more than once."""
    columns = [[digests[:, column] for _, digests in parts] for column in range(4)]
    order = np.argsort(np.concatenate([np.empty(0, "<u8"), *columns[0]]), kind="stable")

    def follows_its_like(column: list[npt.NDArray[np.uint64]]) -> npt.NDArray[np.bool_]:
        ordered = np.concatenate([np.empty(0, "<u8"), *column])[order]
        same: npt.NDArray[np.bool_] = ordered[1:] == ordered[:-1]
        return same

    first = np.ones(order.size, dtype=bool)
    first[order[1:][np.all([follows_its_like(column) for column in columns], axis=0)]] = False
    found: dict[str, GraphHash] = {}
    start = 0
    for graph, digests in parts:
        found[graph] = found.get(graph, GraphHash()) + GraphHash.of(digests[first[start : start + len(digests)]])
        start += len(digests)
    return found


@dataclass(frozen=True, slots=True)
class DatasetHash:
    """The hashes of all graphs of a dataset, by IRI; "" is the default graph. Empty graphs are left out."""

    graphs: Mapping[str, GraphHash]

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
        """Return the hash after changes: for each graph, the hash of its added triples minus that of the removed.

        Too many named graphs are hashed together; see OTHER_GRAPHS.
        """
        after = dict(self.graphs)
        for graph, change in changes.items():
            key = self.key(graph)
            after[key] = after.get(key, GraphHash()) + change
        after = {graph: hash for graph, hash in after.items() if hash.triples}
        if len(after) > MAX_GRAPHS:
            named = sum((hash for graph, hash in after.items() if graph), GraphHash())
            after = {graph: hash for graph, hash in after.items() if not graph} | {OTHER_GRAPHS: named}
        return DatasetHash(after)
