"""The graph of names: the index that kgqa stores beside a graph on a Virtuoso server.

    <name:ENTITY>  #label / #alias  "k4x7abcwadolf k4x7abcwhitler k4x7abci2ah k4x7abcl2"   a name, full-text indexed
    <name:ENTITY>  #key        98234...         hash of another spelling of a name, see `spellings`
    <...in:17>  #word          48239...         hash of a word that is in 17 names
    <...begins:hit>  #words    "hitler 2 hinton 1"   frequent words with a prefix, each with its number of names
    <the graph>  #facts        "{...}"          counts, as JSON; written last, so a graph without them is incomplete

No triple has an entity of the data as its subject or object. Otherwise, a client that queries all graphs of the server,
because it specifies none, would mistake the predicates above for relations of the entity. Instead, `name_node` makes an
IRI that stands for the entity. The texts of the names are read from the graph of the data, by entity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from kgqa.graph.names.server.name_tokens import encode
from kgqa.graph.query.templates import render, render_term
from kgqa.graph.store import Store
from kgqa.model import Entity, Literal
from kgqa.schema import Schema

VERSION = 2
"""The version of this format. In version 1, the subjects were the entities, and each count had its own triple."""
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
"""The largest number of words listed for a prefix, by the length of the prefix."""


@dataclass(frozen=True, slots=True)
class NamesFacts:
    """The counts stored in a graph of names.

    Attributes:
        triples: number of triples of the data that gave names to entities when the graph of names was built.
        names: number of names that are not empty. tokens: number of words in all names.
        longest: number of words in the longest name.
        graphs: IRIs of the data's graphs.
    """

    triples: int
    names: int
    tokens: int
    longest: int
    graphs: tuple[str, ...] = ()


def names_graph_iri(schema: Schema, view: Sequence[Entity], *, version: int = VERSION) -> str:
    """Return the IRI of the graph of names for a view.

    The IRI depends on the graphs in the view and on the label and alias predicates of the schema.
    """
    facts = [version, sorted(entity.iri for entity in view), schema.label, schema.alias]
    return f"{_GRAPHS}{hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]}"


def outdated_graphs(schema: Schema, view: Sequence[Entity]) -> list[str]:
    """Return the IRIs of the graphs of names that earlier versions of kgqa built for a view."""
    return [names_graph_iri(schema, view, version=version) for version in range(1, VERSION)]


def is_names_graph(iri: str) -> bool:
    """Return whether a named graph is a graph of names."""
    return iri.startswith(_GRAPHS)


def names_facts(store: Store, graph: str, *, timeout: float | None = None) -> NamesFacts | None:
    """Read the counts of a graph of names; return None if the graph is missing, incomplete or outdated."""
    rows = store.select(facts_query(graph), timeout=timeout, fresh=True)
    texts = [row[0].value for row in rows if isinstance(row[0], Literal)]
    return read_facts(texts[0]) if len(texts) == 1 else None


def read_facts(text: str) -> NamesFacts | None:
    """Parse the text written by `facts_lines`; return None for any other text."""
    try:
        found = json.loads(text)
        counts = {name: int(found[name]) for name in ("triples", "names", "tokens", "longest")}
        return NamesFacts(**counts, graphs=tuple(map(str, found["graphs"])))
    except (KeyError, ValueError, TypeError):
        return None


def facts_query(graph: str) -> str:
    """Return the query for the text that `read_facts` parses."""
    return render("names_facts", graph=Entity(graph), fact=Entity(_FACTS))


def facts_lines(graph: str, facts: NamesFacts) -> list[str]:
    """Return the counts as lines of N-Triples."""
    return [f"<{graph}> <{_FACTS}> {render_term(Literal(json.dumps(asdict(facts))))} ."]


def name_node(entity: str) -> str:
    """Return the IRI that stands for an entity. Its end is the entity's IRI, so that servers store it compactly."""
    return f"{_NODES}{entity}"


def entity_of(node: str) -> str:
    """Return the entity for which `name_node` made an IRI."""
    return node.removeprefix(_NODES)


def count_node(names: int) -> str:
    """Return the IRI that stands for a number of names."""
    return f"{_COUNT}{names}"


def count_of(node: str) -> int:
    """Return the number for which `count_node` made an IRI."""
    return int(node.removeprefix(_COUNT))


def prefix_node(prefix: str) -> str:
    """Return the IRI that stands for a prefix of words."""
    return f"urn:kgqa:names:begins:{encode(prefix)}"
