"""The graph of names: what kgqa puts beside a graph on a Virtuoso server to find entities by name there.

    <name:ENTITY>  #label / #alias  "k4x7abcwadolf k4x7abcwhitler k4x7abci2ah k4x7abcl2"   a name, in the full-text index
    <name:ENTITY>  #key        98234...         what else a name may be written as, see `names.loose_keys`, as a number
    <...in:17>  #word          48239...         a word, as a number, that stands in 17 names
    <...begins:hit>  #words    "hitler 2 hinton 1"   words that begin so, most frequent first, and in how many names
    <the graph>  #facts        "{...}"          counts, as JSON; written last, so that a graph with them is whole

No triple has a node of the data as its subject or object: a client that names no graph is answered from all graphs of the
server, and would take the predicates here for relations of the entity. `name_node` makes the IRI that stands for an entity.
The names themselves are not repeated: they are read from the graph they stand in, by entity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from kgqa.graph.names.text import coded
from kgqa.graph.query.templates import render, render_term
from kgqa.graph.store import Store
from kgqa.model import Entity, Literal
from kgqa.schema import Schema

VERSION = 2
"""Goes up when a graph of names changes its shape, so that an old one is not misread. Version 1 had the entities themselves
as subjects, and its counts in triples of their own."""
_VOCABULARY = "urn:kgqa:names#"
_GRAPHS = "urn:kgqa:names:"
_NODES = "urn:kgqa:name:"
TEXTS = {"label": f"{_VOCABULARY}label", "alias": f"{_VOCABULARY}alias"}
KEY = f"{_VOCABULARY}key"
WORD = f"{_VOCABULARY}word"
WORDS = f"{_VOCABULARY}words"
_FACTS = f"{_VOCABULARY}facts"
_COUNT = "urn:kgqa:names:in:"
LISTED_WORDS = {1: 20_000, 2: 5_000, 3: 1_000, 4: 1_000}
"""How many words are listed of a beginning of so many letters."""


@dataclass(frozen=True, slots=True)
class NamesFacts:
    """What a graph of names says of itself: `triples` that gave names when it was made, `names` that are not empty,
    `tokens` of all their words, the most words of one, `longest`, and whose names they are: the IRIs of `graphs`.
    """

    triples: int
    names: int
    tokens: int
    longest: int
    graphs: tuple[str, ...] = ()


def names_graph_iri(schema: Schema, view: Sequence[Entity], *, version: int = VERSION) -> str:
    """The IRI of the graph of names of some graphs, by their IRIs and the predicates that name things there."""
    facts = [version, sorted(entity.iri for entity in view), schema.label, schema.alias]
    return f"{_GRAPHS}{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]}"


def outdated_graphs(schema: Schema, view: Sequence[Entity]) -> list[str]:
    """The IRIs that the graph of names of some graphs had in earlier versions."""
    return [names_graph_iri(schema, view, version=version) for version in range(1, VERSION)]


def is_names_graph(iri: str) -> bool:
    """Whether a named graph is one of ours and not the user's."""
    return iri.startswith(_GRAPHS)


def names_facts(store: Store, graph: str, *, timeout: float | None = None) -> NamesFacts | None:
    """What a graph of names says of itself; None where there is none, one that was not finished, or an outdated one."""
    rows = store.select(facts_query(graph), timeout=timeout, fresh=True)
    texts = [row[0].value for row in rows if isinstance(row[0], Literal)]
    return read_facts(texts[0]) if len(texts) == 1 else None


def read_facts(text: str) -> NamesFacts | None:
    """The facts in the text that `facts_lines` writes, None where it is not one."""
    try:
        found = json.loads(text)
        counts = {name: int(found[name]) for name in ("triples", "names", "tokens", "longest")}
        return NamesFacts(**counts, graphs=tuple(map(str, found["graphs"])))
    except (KeyError, ValueError, TypeError):
        return None


def facts_query(graph: str) -> str:
    """The query for the text that `read_facts` reads."""
    return render("names_facts", graph=Entity(graph), fact=Entity(_FACTS))


def facts_lines(graph: str, facts: NamesFacts) -> list[str]:
    """What `names_facts` reads, as N-Triples."""
    return [f"<{graph}> <{_FACTS}> {render_term(Literal(json.dumps(asdict(facts))))} ."]


def name_node(entity: str) -> str:
    """The IRI that stands for the entity with this IRI. A server splits it as it splits that one, and keeps it as short."""
    return f"{_NODES}{entity}"


def entity_of(node: str) -> str:
    """The IRI of the entity that an IRI of `name_node` stands for."""
    return node.removeprefix(_NODES)


def count_node(names: int) -> str:
    """The IRI that stands for being in so many names."""
    return f"{_COUNT}{names}"


def count_of(node: str) -> int:
    """The number in an IRI of `count_node`."""
    return int(node.removeprefix(_COUNT))


def beginning_node(beginning: str) -> str:
    """The IRI that stands for beginning so."""
    return f"urn:kgqa:names:begins:{coded(beginning)}"
