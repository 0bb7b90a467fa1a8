"""Opening a graph: the store, the schema that fits, and the settings the graph's folder keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgqa.cache import Cache
from kgqa.errors import PartialResult, SettingsError, StoreTimeout, StoreUnavailable
from kgqa.graph.demo import demo_folder
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import DEFAULT_FRONTIER_CAP, KnowledgeGraph
from kgqa.graph.query.templates import render
from kgqa.graph.store import DEFAULT_TIMEOUT, Store, is_address, open_store
from kgqa.model import Entity
from kgqa.schema import (
    BUNDLED,
    WALK_RULES,
    Schema,
    WalkRule,
    bundled_schema,
    language_list,
    load_schema,
)
from kgqa.settings import Settings
from kgqa.words import clean

MOST_SCANNED = 20_000_000
"""Triples of a server's graph up to which queries over all of them are tried. Of 5 million Virtuoso takes 10 s for the
longest of these queries, and it has 60 s for a query."""


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
    profile = store.profile if isinstance(store, EndpointStore) else None
    if not (profile and profile.needs_graph):
        if store.ask(render("any_triple", view=()), fresh=True):
            return ()
        return user_graphs(store)
    try:
        found = user_graphs(store)
    except StoreTimeout as error:
        raise StoreUnavailable(
            f"Which graphs {store.place} has could not be told in time: name one, --graph-iri IRI."
        ) from error
    if not found:
        raise StoreUnavailable(
            f"{store.place} has no graph yet. Load one: kgqa graph load FILE --into {store.place} --graph-iri IRI"
        )
    if len(found) > 1:
        raise StoreUnavailable(
            f"{store.place} has {len(found)} graphs: say which with --graph-iri. {', '.join(map(clean, found[:10]))}"
            + (", ..." if len(found) > 10 else "")
        )
    return found


def user_graphs(store: Store) -> tuple[str, ...]:
    """The named graphs that hold data: neither the server's own, nor the graphs of names that kgqa keeps beside data.

    Raises:
        StoreTimeout, StoreUnavailable: as `select` does. PartialResult: there are more than MAX_NAMED_GRAPHS.
    """
    own = store.profile.own_graphs if isinstance(store, EndpointStore) else ()
    # left out here: a FILTER makes a server look at every triple
    rows = store.select(render("named_graphs", limit=MAX_NAMED_GRAPHS + 1), fresh=True)
    if len(rows) > MAX_NAMED_GRAPHS:
        raise PartialResult(
            f"{store.place} has more than {MAX_NAMED_GRAPHS} named graphs. Say which to look at: --graph-iri."
        )
    named = (row[0].iri for row in rows if isinstance(row[0], Entity))
    return tuple(sorted(iri for iri in named if iri not in own and not iri.startswith(NAMES_GRAPHS)))


def open_graph(
    place: str | Path | None = None,
    *,
    schema: str | Path | Schema | None = None,
    view: Sequence[str] = (),
    walks: WalkRule | None = None,
    frontier_cap: int = DEFAULT_FRONTIER_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    cache: Cache | None = None,
    endpoint: EndpointOptions | None = None,
    languages: Sequence[str] = (),
) -> KnowledgeGraph:
    """Open a graph folder, a SPARQL endpoint by its address, or the bundled demo graph when no place is given.

    Args:
        schema: name of a bundled schema or a TOML file; None for what the folder says, or detection.
        view: graph IRIs to look at; empty for what `default_view` finds.
        walks: overrides the graph's own rule.
        timeout: seconds a single query may take.
        endpoint: how a server is spoken to; not used for a folder.
        languages: of names, before the schema's own.

    Raises:
        StoreUnavailable, StoreIncomplete, StoreBusy, SchemaError, SettingsError.
    """
    cache = cache or Cache.default()
    store: Store
    if place is not None and is_address(place):
        store = (endpoint or EndpointOptions()).open(str(place), cache=cache, timeout=timeout)
    else:
        store = open_store(place if place is not None else demo_folder(cache))
    meta = getattr(store, "meta", None)
    settings = dict(meta.settings) if meta else {}
    try:
        view = tuple(view) or default_view(store)
        if isinstance(store, EndpointStore):
            store.looking_at(view)
        if isinstance(schema, Schema):
            chosen = schema
        elif schema is not None:
            chosen = load_schema(schema)
        elif meta and meta.schema:
            chosen = load_schema(Path(store.place) / meta.schema if meta.schema.endswith(".toml") else meta.schema)
        else:
            chosen = detect_schema(store, view)
        rule = walks or settings.get("walks")
        if rule is not None and rule not in WALK_RULES:
            raise SettingsError(f"walks must be one of {', '.join(WALK_RULES)}, not {rule!r}.")
    except BaseException:
        store.close()
        raise
    graph = KnowledgeGraph(
        store,
        chosen,
        view=view,
        walks=rule,
        frontier_cap=frontier_cap,
        timeout=timeout,
        cache=cache,
        languages=languages,
        scan=not isinstance(store, EndpointStore) or store.profile.scans,
        most_scanned=MOST_SCANNED if isinstance(store, EndpointStore) else None,
    )
    graph.settings = settings
    return graph


def open_graph_of(settings: Settings, place: str | Path | None = None, *, cache: Cache | None = None) -> KnowledgeGraph:
    """Open the graph that the settings name, or the one at `place`, as they say. Raises as `open_graph` does."""
    if place is None:
        place = settings["graph.path"]
    return open_graph(
        place,
        schema=settings["graph.schema"],
        view=(settings["graph.iri"] or "").split(),
        walks=settings["graph.walks"],
        frontier_cap=settings["graph.frontier_cap"],
        timeout=settings["graph.timeout"],
        cache=cache,
        endpoint=EndpointOptions.of(settings),
        languages=language_list(settings["graph.languages"]),
    )
