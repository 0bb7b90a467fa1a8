"""The content of graph.json, whose sizes, types and ranges are checked when it is read."""

from __future__ import annotations

import os
import re
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, structs

from kgqa.graph.embedded.graph_hashes import DatasetHash, GraphHash

Generation = Annotated[int, Meta(ge=0, le=10**9)]
Triples = Annotated[int, Meta(ge=0, le=1 << 53)]
SchemaName = Annotated[str, Meta(pattern=r"\A(?:[\w-][\w.-]{0,199})?\Z")]
"""The name of a schema, or of a file in the graph folder."""
GraphSettings = dict[str, str | int | float | None]
Hex16 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")]
Hex64 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
Hex32 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]
_GENERATION = re.compile(r"gen-(0|[1-9][0-9]{0,9})")


def is_generation_name(name: str) -> bool:
    """Return whether a file name is the name of a generation, such as `gen-3`."""
    return _GENERATION.fullmatch(name) is not None


class LoadedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that was loaded. `sha256`: its hash, in hexadecimal digits."""

    path: str
    sha256: str


class HashRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The hash of a named graph; see `GraphHash`. `sum` is in hexadecimal digits."""

    triples: Triples
    sum: Hex64


class GraphMeta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """The content of graph.json.

    Attributes:
        graphs: the hashes of the named graphs, as text; `hashes` are the same.
        settings: the graph's own settings, such as its walk rule.
        files: the files that were loaded. prefixes: what these declare.
        id: a random name of the folder, the same in all generations.
    """

    generation: Generation
    graphs: dict[str, HashRecord]
    fingerprint: Hex16
    id: Hex32
    triples: Triples = 0
    schema: SchemaName = ""
    settings: GraphSettings = {}
    files: tuple[LoadedFile, ...] = ()
    prefixes: dict[str, str] = {}
    format: Literal[3] = 3

    @classmethod
    def of(cls, generation: int, hashes: DatasetHash, **values: Any) -> GraphMeta:
        """Return the record of a new folder."""
        empty = cls(generation, {}, GraphHash().fingerprint, os.urandom(16).hex())
        return empty.with_hashes(generation, hashes, **values)

    @cached_property
    def hashes(self) -> DatasetHash:
        """The hashes by named graph."""
        return DatasetHash({graph: GraphHash(each.triples, int(each.sum, 16)) for graph, each in self.graphs.items()})

    def with_hashes(self, generation: int, hashes: DatasetHash, **changes: Any) -> GraphMeta:
        """Return the record of a later generation."""
        total = hashes.total
        graphs = {graph: HashRecord(hash.triples, f"{hash.sum:064x}") for graph, hash in hashes.graphs.items()}
        counted = structs.replace(self, fingerprint=total.fingerprint, triples=total.triples, graphs=graphs)
        return structs.replace(counted, generation=generation, **changes)
