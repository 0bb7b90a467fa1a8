"""What a store holds: the schema that fits, the graphs with data, the graphs to look at."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.errors import PartialResult, StoreTimeout, StoreUnavailable
from kgqa.graph.query.templates import render
from kgqa.graph.store import Store
from kgqa.model import Entity
from kgqa.schema import BUNDLED, Schema, bundled_schema
from kgqa.words import clean


def detect_schema(store: Store, view: Sequence[str] = ()) -> Schema:
    """The bundled schema that fits a store: the one with most of its telling predicates there."""
    graphs = tuple(Entity(iri) for iri in view)
    best, best_share = None, 0.0
    for name in BUNDLED:
        schema = bundled_schema(name)
        hits = sum(store.ask(render("has_predicate", view=graphs, predicate=Entity(p))) for p in schema.detect)
        share = hits / len(schema.detect)
        if share > best_share and not schema.fallback:
            best, best_share = schema, share
    return best or bundled_schema("rdfs")


MAX_NAMED_GRAPHS = 100
NAMES_GRAPHS = "urn:kgqa:names:"
"""What the IRIs of graphs of names begin with, see `names_graph`."""


def default_view(store: Store) -> tuple[str, ...]:
    """What to look at when nobody says: the default graph, or, where that is empty, all named graphs together.

    On a server whose default graph is not the user's (Virtuoso answers from its own system graphs as well): the one
    named graph that is not the server's own.

    Raises:
        StoreUnavailable: such a server has no graph, or several, or too many triples to tell.
    """
    profile = getattr(store, "profile", None)
    if not (profile and profile.needs_graph):
        if store.ask(render("any_triple", view=()), fresh=True):
            return ()
        return user_graphs(store)
    try:
        found = user_graphs(store)
    except StoreTimeout as error:
        raise StoreUnavailable(
            f"Which graphs {store.location} has could not be told in time: name one, --graph-iri IRI."
        ) from error
    if not found:
        raise StoreUnavailable(
            f"{store.location} has no graph yet. Load one: kgqa graph load FILE --into {store.location} --graph-iri IRI"
        )
    if len(found) > 1:
        raise StoreUnavailable(
            f"{store.location} has {len(found)} graphs: say which with --graph-iri. {', '.join(map(clean, found[:10]))}"
            + (", ..." if len(found) > 10 else "")
        )
    return found


def user_graphs(store: Store) -> tuple[str, ...]:
    """The named graphs that hold data: neither the server's own, nor the graphs of names that kgqa keeps beside data.

    Raises:
        StoreTimeout, StoreUnavailable: as `select` does. PartialResult: there are more than MAX_NAMED_GRAPHS.
    """
    profile = getattr(store, "profile", None)
    own = profile.own_graphs if profile else ()
    # left out here: a FILTER makes a server look at every triple
    rows = store.select(render("named_graphs", limit=MAX_NAMED_GRAPHS + 1), fresh=True)
    if len(rows) > MAX_NAMED_GRAPHS:
        raise PartialResult(
            f"{store.location} has more than {MAX_NAMED_GRAPHS} named graphs. Say which to look at: --graph-iri."
        )
    named = (row[0].iri for row in rows if isinstance(row[0], Entity))
    return tuple(sorted(iri for iri in named if iri not in own and not iri.startswith(NAMES_GRAPHS)))
