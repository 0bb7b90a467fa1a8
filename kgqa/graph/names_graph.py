"""The graph of names: what kgqa puts beside a graph on a Virtuoso server to find entities by name there.

    <entity>  #label / #alias  "k4x7abcwadolf k4x7abcwhitler k4x7abci2ah k4x7abcl2"   a name, in the full-text index
    <entity>  #key             98234...         what else a name may be written as, see `names.loose_keys`, as a number
    <...in:17>  #word          48239...         a word, as a number, that stands in 17 names
    <...begins:hit>  #words    "hitler 2 hinton 1"   words that begin so, most frequent first, and in how many names
    <the graph>  #names, ...   "13812"          counts; written last, so that a graph with them is whole

The names themselves are not repeated: they are read from the graph they stand in, by entity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from kgqa.graph.names_text import coded
from kgqa.graph.queries import render
from kgqa.graph.store import Store
from kgqa.model import Entity, Literal
from kgqa.schema import Schema

VERSION = 1
"""Goes up when a graph of names changes its shape, so that an old one is not misread."""
_VOCABULARY = "urn:kgqa:names#"
_GRAPHS = "urn:kgqa:names:"
TEXTS = {"label": f"{_VOCABULARY}label", "alias": f"{_VOCABULARY}alias"}
KEY = f"{_VOCABULARY}key"
WORD = f"{_VOCABULARY}word"
WORDS = f"{_VOCABULARY}words"
_COUNT = "urn:kgqa:names:in:"
LISTED_WORDS = {1: 20_000, 2: 5_000, 3: 1_000, 4: 1_000}
"""How many words are listed of a beginning of so many letters."""


@dataclass(frozen=True, slots=True)
class NamesFacts:
    """Counts of a graph of names: `triples` that gave names when it was made, `names` that are not empty, `tokens` of all
    their words, and the most words of one, `longest`."""

    triples: int
    names: int
    tokens: int
    longest: int


def names_graph_iri(schema: Schema, view: Sequence[Entity]) -> str:
    """The IRI of the graph of names of some graphs, by their IRIs and the predicates that name things there."""
    facts = [VERSION, sorted(entity.iri for entity in view), schema.label, schema.alias]
    return f"{_GRAPHS}{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]}"


def is_names_graph(iri: str) -> bool:
    """Whether a named graph is one of ours and not the user's."""
    return iri.startswith(_GRAPHS)


def names_facts(store: Store, graph: str) -> NamesFacts | None:
    """What a graph of names says of itself; None where there is none, or one that was not finished."""
    rows = store.select(render("names_facts", graph=Entity(graph)), fresh=True)
    found = {row[0].iri: row[1].value for row in rows if isinstance(row[0], Entity) and isinstance(row[1], Literal)}
    try:
        return NamesFacts(**{name: int(found[_VOCABULARY + name]) for name in NamesFacts.__slots__})
    except (KeyError, ValueError):
        return None


def facts_lines(graph: str, facts: NamesFacts) -> list[str]:
    """What `names_facts` reads, as N-Triples."""
    return [f'<{graph}> <{_VOCABULARY}{name}> "{value}" .' for name, value in asdict(facts).items()]


def count_node(names: int) -> str:
    """The IRI that stands for being in so many names."""
    return f"{_COUNT}{names}"


def count_of(node: str) -> int:
    """The number in an IRI of `count_node`."""
    return int(node.removeprefix(_COUNT))


def beginning_node(beginning: str) -> str:
    """The IRI that stands for beginning so."""
    return f"urn:kgqa:names:begins:{coded(beginning)}"
