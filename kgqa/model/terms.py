"""RDF terms, and the steps of relation paths between them. `kgqa.model` re-exports them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

import msgspec

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
RDF_LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"

Direction = OneOf["out", "in"]


class Entity(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="entity"):
    """A node named by an IRI."""

    iri: str


class Literal(msgspec.Struct, frozen=True, gc=False, tag_field="kind", tag="literal"):
    """A literal: a string with a datatype IRI or a language tag; if there is a tag, the datatype is rdf:langString."""

    value: str
    datatype: str = XSD_STRING
    language: str = ""

    def __post_init__(self) -> None:
        if self.language and self.datatype == XSD_STRING:
            msgspec.structs.force_setattr(self, "datatype", RDF_LANG_STRING)
        if self.language and self.datatype != RDF_LANG_STRING:
            raise ValueError("a literal has a language or a datatype, not both")


Value = Entity | Literal


@dataclass(frozen=True, slots=True)
class Step:
    """A relation and its direction in a path: `out` from subject to object, `in` from object to subject."""

    relation: str
    direction: Direction = "out"

    def reversed(self) -> Step:
        return Step(self.relation, "in" if self.direction == "out" else "out")
