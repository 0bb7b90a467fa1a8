"""Detection of a store's schema, its mediators, its named graphs and its default view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

from kgqa.errors import PartialResult, StoreError, StoreTimeout, StoreUnavailable
from kgqa.graph.editing import batches
from kgqa.graph.query.text import render
from kgqa.graph.store import Store
from kgqa.graph.tables.declarations import listed_mediators
from kgqa.model import Entity, Literal
from kgqa.schema import BUNDLED, DIRECT_CLAIM, WIKIBASE_LABELS, Schema, bundled_schema, wikibase_schema
from kgqa.text.hints import Command, Option
from kgqa.text.words import clean


class SchemaFit(NamedTuple):
    """How many of a schema's characteristic predicates a graph has: `hits` out of `of`."""

    schema: Schema
    hits: int
    of: int

    @property
    def share(self) -> float:
        """`hits` divided by `of`; 0 if the schema has no characteristic predicates."""
        return self.hits / max(1, self.of)


def schema_fits(store: Store, view: Sequence[str], schemas: Iterable[Schema]) -> list[SchemaFit]:
    """Count how many characteristic predicates of each schema a graph has.

    A fallback schema has no characteristic predicates, so its label predicates are counted instead.
    """
    graphs = tuple(Entity(iri) for iri in view)

    @cache
    def has(predicate: str) -> bool:
        return store.ask(render("has_predicate", view=graphs, predicate=Entity(predicate)))

    telling = [(schema, schema.label if schema.fallback else schema.detect) for schema in schemas]
    return [SchemaFit(schema, sum(map(has, predicates)), len(predicates)) for schema, predicates in telling]


def best_schema(fits: Iterable[SchemaFit]) -> Schema:
    """Return the first schema with the largest share of its predicates in the graph; `rdfs` if all are 0."""
    telling = [fit for fit in fits if fit.hits and not fit.schema.fallback]
    return max(telling, key=lambda fit: fit.share).schema if telling else bundled_schema("rdfs")


def detect_schema(store: Store, view: Sequence[str] = ()) -> Schema:
    """Return the bundled schema with the largest share of its `detect` predicates in a store.

    If none fits, return the schema of another Wikibase if the graph is one, or else `rdfs`.
    """
    schemas = map(bundled_schema, BUNDLED)
    best = best_schema(schema_fits(store, view, [schema for schema in schemas if not schema.fallback]))
    return (best.fallback and other_wikibase(store, view)) or best


def other_wikibase(store: Store, view: Sequence[str]) -> Schema | None:
    """Return the schema of a graph in which properties declare their predicates as in a Wikibase; None if none does."""
    names = [Literal(label, language=language) for label in WIKIBASE_LABELS for language in ("en", "")]
    query = render("wikibase_properties", view=tuple(map(Entity, view)), declared_by=Entity(DIRECT_CLAIM), names=names)
    found = [(predicate.iri, label) for _, predicate, label in store.select(query) if isinstance(predicate, Entity)]
    roots = {root for root, direct, _ in (iri.partition("prop/direct/") for iri, _ in found) if direct}
    if len(roots) != 1:
        return None
    return wikibase_schema(roots.pop(), {label.value: iri for iri, label in found if isinstance(label, Literal)})


RELATION_BATCH = 500
"""How many relations are looked up in one query; Virtuoso rejects queries with some thousand values."""
MEDIATOR_REMEDY = (
    "Load the triples that describe types and relations too, or name the mediators in a schema file: docs/schemas.md, "
    "Mediators."
)


def missing_mediators(store: Store, view: Sequence[str], schema: Schema) -> str:
    """Return a sentence that says why the mediators of a graph cannot be recognised; empty if they can.

    They cannot if the schema expects the graph to mark mediator types, but the graph marks none and has none of the
    relations that the schema lists. Two to seven queries, none of which reads the whole graph.

    Raises:
        StoreTimeout, PartialResult, StoreUnavailable: see `Store.select`.
    """
    if schema.mediator_marked_by is None:
        return ""
    graphs, marker = tuple(Entity(iri) for iri in view), Entity(schema.mediator_marked_by[0])
    if store.ask(render("has_predicate", view=graphs, predicate=marker)):
        return ""
    relations = [Entity(iri) for iri in sorted(listed_mediators(schema.mediator_list, schema.id_base)[1])]
    parts = batches(relations, RELATION_BATCH)
    if any(store.ask(render("any_relation", view=graphs, relations=part)) for part in parts):
        return ""
    unlisted = f", and has no relation that is known to lead to mediators in {schema.title}" if relations else ""
    return (
        f"Mediators cannot be recognised: the graph marks no type by {schema.short_id(marker.iri)}{unlisted}. "
        "Questions whose path leads through a mediator, such as a marriage, get no answer or a node without a name."
    )


def load_warnings(store: Store, view: Sequence[str], schema: Schema) -> list[str]:
    """Return sentences about what questions will lack in a graph that was just loaded; empty if the check fails."""
    with suppress(StoreError):
        if missing := missing_mediators(store, view, schema):
            return [f"{missing} {MEDIATOR_REMEDY}"]
    return []


MAX_NAMED_GRAPHS = 100
EDIT_GRAPHS = "urn:kgqa:edit:"
"""IRI prefix of the named graphs that hold the triples of a large edit until it is done; see `send_edit`."""


def default_view(store: Store) -> tuple[str, ...]:
    """Return the IRIs of the graphs to query if the user chooses no graph.

    The result is the default graph (returned as an empty tuple), or all named graphs if the default graph is empty. On
    a server whose default graph includes the server's own system graphs (Virtuoso), the result is the only named graph
    with data.

    Raises:
        StoreUnavailable: a server with system graphs has no named graph with data, or has several, or did not list its
            graphs in time.
    """
    if not store.capabilities.system_graphs:
        if store.ask(render("any_triple", view=()), fresh=True):
            return ()
        return named_graphs(store)
    try:
        found = named_graphs(store)
    except StoreTimeout as error:
        raise StoreUnavailable(
            f"{store.location} did not list its graphs in time.",
            "Name the graph to query: ",
            Option("graph-iri", "IRI"),
        ) from error
    if not found:
        raise StoreUnavailable(
            f"{store.location} has no graph yet.",
            "Load data into a graph: ",
            Command("graph load", "FILE", into=store.location, graph_iri="IRI"),
        )
    if len(found) > 1:
        names = ", ".join(map(clean, found[:10])) + (", ..." if len(found) > 10 else "")
        raise StoreUnavailable(
            f"{store.location} has {len(found)} graphs.", "Choose one with ", Option("graph-iri", "IRI"), f": {names}"
        )
    return found


def named_graphs(store: Store, *, complete: bool = True) -> tuple[str, ...]:
    """Return the named graphs that hold data, without the server's own graphs and kgqa's own graphs.

    Args:
        complete: whether to raise PartialResult if there are more than MAX_NAMED_GRAPHS, with the server's and kgqa's
            own; if not, some of the first MAX_NAMED_GRAPHS are returned.

    Raises:
        StoreError: see `Store.select`.
    """
    own = store.capabilities.system_graphs
    # filtered in Python: a FILTER in the query makes a server read every triple
    rows = store.select(render("named_graphs", limit=MAX_NAMED_GRAPHS + complete), fresh=True)
    if len(rows) > MAX_NAMED_GRAPHS:
        raise PartialResult(
            f"{store.location} has more than {MAX_NAMED_GRAPHS} named graphs.",
            "Name the graph to query: ",
            Option("graph-iri", "IRI"),
        )
    named = (row[0].iri for row in rows if isinstance(row[0], Entity))
    return tuple(sorted(iri for iri in named if iri not in own and not iri.startswith(EDIT_GRAPHS)))
