"""The content of graph.json, and order-independent hashes of graphs, kept as triples come and go."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, structs

SchemaName = Annotated[str, Meta(pattern=r"\A(?:[\w-][\w.-]{0,199})?\Z")]
"""The name of a schema, or of a file in the graph folder."""
GraphSettings = dict[str, str | int | float | None]
Digests = npt.NDArray[np.bytes_]
"""The 256-bit hashes of some lines."""
MAX_GRAPHS = 10_000
"""Maximum number of named graphs that have a hash of their own."""
OTHER_GRAPHS = "*"
"""The key under which all named graphs are hashed together if there are more than MAX_GRAPHS."""


class GraphHash(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The number of triples of a graph, and the sum of their hashes modulo 2^256, in hexadecimal digits."""

    triples: Annotated[int, Meta(ge=0, le=1 << 53)] = 0
    sum: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")] = "0" * 64

    @classmethod
    def of(cls, *parts: Digests) -> GraphHash:
        """Return the hash of the set of triples with these digests, among which the same may occur more than once."""
        digests = np.concatenate([np.empty(0, "S32"), *parts])
        digests.sort()
        first = np.append(True, digests[1:] != digests[:-1])[: len(digests)]
        parts = digests.view(np.uint32).reshape(-1, 8).sum(axis=0, dtype=np.uint64, where=first[:, None])
        return cls(int(first.sum())).plus(0, sum(int(part) << 32 * place for place, part in enumerate(parts)))

    def plus(self, triples: int, value: int) -> GraphHash:
        """Return the hash with a number of triples and a sum of hashes added."""
        return GraphHash(self.triples + triples, f"{(int(self.sum, 16) + value) % (1 << 256):064x}")

    def __add__(self, other: GraphHash) -> GraphHash:
        return self.plus(other.triples, int(other.sum, 16))

    def __sub__(self, other: GraphHash) -> GraphHash:
        return self.plus(-other.triples, -int(other.sum, 16))

    @property
    def fingerprint(self) -> str:
        """The hash as 16 hexadecimal digits."""
        return hashlib.sha256(f"{self.triples} {int(self.sum, 16)}".encode()).hexdigest()[:16]


def digests_of(lines: Iterable[bytes]) -> Digests:
    """Hash canonical N-Quads lines, each with the IRI of its graph."""
    blake2b = hashlib.blake2b
    return np.frombuffer(b"".join([blake2b(line, digest_size=32).digest() for line in lines]), "S32")


class LoadedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that was loaded. `sha256`: its hash, in hexadecimal digits."""

    path: str
    sha256: str


class GraphMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of graph.json, whose sizes, types and ranges are checked when it is read.

    Attributes:
        id: a random name of the folder, the same in all generations.
        graphs: the hashes of all graphs that are not empty, by IRI; "" is the default graph.
        settings: the graph's own settings, such as its walk rule.
        files: the files that were loaded. prefixes: what these declare.
    """

    generation: Annotated[int, Meta(ge=0, le=10**9)]
    id: Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    graphs: dict[str, GraphHash] = {}
    schema: SchemaName = ""
    settings: GraphSettings = {}
    files: tuple[LoadedFile, ...] = ()
    prefixes: dict[str, str] = {}

    @property
    def triples(self) -> int:
        """The number of triples in all graphs."""
        return sum(hash.triples for hash in self.graphs.values())

    @property
    def fingerprint(self) -> str:
        """The hash of all graphs together, as 16 hexadecimal digits."""
        return sum(self.graphs.values(), GraphHash()).fingerprint

    def view(self, graphs: Iterable[str] = ()) -> GraphHash:
        """Return the hash of some named graphs together; without any, of the default graph."""
        keys = {self._key(graph) for graph in graphs} or {""}
        return sum((self.graphs.get(key, GraphHash()) for key in keys), GraphHash())

    def changed(self, changes: Mapping[str, GraphHash]) -> GraphMeta:
        """Return the record after changes: for each graph, the hash of its added triples minus that of the removed.

        Too many named graphs are hashed together; see OTHER_GRAPHS.
        """
        after = dict(self.graphs)
        for graph, change in changes.items():
            key = self._key(graph)
            after[key] = after.get(key, GraphHash()) + change
        after = {graph: hash for graph, hash in after.items() if hash.triples}
        if len(after) > MAX_GRAPHS:
            named = sum((hash for graph, hash in after.items() if graph), GraphHash())
            after = {graph: hash for graph, hash in after.items() if not graph} | {OTHER_GRAPHS: named}
        return structs.replace(self, graphs=after)

    def _key(self, graph: str) -> str:
        return OTHER_GRAPHS if graph and OTHER_GRAPHS in self.graphs else graph
