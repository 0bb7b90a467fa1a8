"""The content of graph.json, order-independent hashes of graphs, and the changes that edits make to both."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, structs

from kgqa.errors import InvalidTerm
from kgqa.graph.editing import batches, terms
from kgqa.graph.embedded.workers import Worker
from kgqa.graph.query.text import decode_term, render_term
from kgqa.graph.rdf.lines import stored_line
from kgqa.model import Entity, Triple

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


MAX_TRANSACTION = 50_000
"""Number of triples in the largest edit that is one transaction of the engine, which keeps it in memory."""
PART = 10_000
"""Number of triples in one of several requests to the worker."""


@dataclass(frozen=True)
class Change:
    """What an edit changes in one graph: the added and removed triples, by their N-Quads lines."""

    graph: str
    adds: dict[bytes, Triple]
    removes: dict[bytes, Triple]

    def make(self, worker: Worker) -> None:
        """Make the change. If the worker dies or an exception is raised, it may have been made; see `was_made`."""
        worker.call({"op": "edit", "adds": b"".join(self.adds).decode(), "removes": b"".join(self.removes).decode()})

    def was_made(self, worker: Worker) -> bool:
        """Return whether the store of a worker contains the change."""
        line = next(iter(self.adds or self.removes))
        return bool(contained(worker, [line])) == (line in self.adds)

    def hash(self) -> GraphHash:
        """Return the hash of the added triples minus that of the removed ones."""
        return GraphHash.of(digests_of(self.adds)) - GraphHash.of(digests_of(self.removes))


def stored_triples(graph: str, triples: Iterable[Triple]) -> dict[bytes, Triple]:
    """Return triples by their N-Quads lines. Lines and triples have the form in which the engine stores them.

    Raises:
        InvalidTerm: a term is not valid RDF, or is a blank node.
    """
    end = f" {render_term(Entity(graph))} .\n" if graph else " .\n"
    stored = {}
    for triple in triples:
        subject, relation, object = map(render_term, terms(triple))
        written = f"{subject} {relation} {object}{end}"
        try:
            line = stored_line(written.encode())
        except (SyntaxError, ValueError) as error:
            raise InvalidTerm(
                f"{written[:200].rstrip()} is not valid RDF: {getattr(error, 'msg', '') or error}"
            ) from error
        stored[line] = triple
        if line != written.encode():
            value = decode_term(line.decode()[len(subject) + len(relation) + 2 : -len(end)])
            assert value is not None, "a line has an object"
            stored[line] = replace(triple, object=value)
    return stored


def contained(worker: Worker, lines: Sequence[bytes]) -> set[bytes]:
    """Return those of the lines that the store of a worker contains."""
    flags = (flag for part in parts(lines) for flag in worker.call({"op": "contained", "lines": part}))
    return {line for line, there in zip(lines, flags) if there}


def parts(lines: Sequence[bytes]) -> Iterator[str]:
    """Split N-Quads lines into texts of at most PART lines."""
    return (b"".join(part).decode() for part in batches(lines, PART))
