"""Opening a graph: the store, the schema that fits, and the settings the graph's folder keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgqa.cache import Cache
from kgqa.errors import SettingsError
from kgqa.graph.demo import demo_folder
from kgqa.graph.graph import DEFAULT_FRONTIER_CAP, KnowledgeGraph
from kgqa.graph.queries import render
from kgqa.graph.store import DEFAULT_TIMEOUT, Store, open_store
from kgqa.model import Entity
from kgqa.schema import (
    BUNDLED,
    WALK_RULES,
    Schema,
    WalkRule,
    bundled_schema,
    load_schema,
)


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


def default_view(store: Store) -> tuple[str, ...]:
    """What to look at when nobody says: the default graph, or, where that is empty, all named graphs together."""
    if store.ask(render("any_triple", view=())):
        return ()
    rows = store.select(render("named_graphs", limit=MAX_NAMED_GRAPHS))
    return tuple(sorted(row[0].iri for row in rows if isinstance(row[0], Entity)))


def open_graph(
    place: str | Path | None = None,
    *,
    schema: str | Path | Schema | None = None,
    view: Sequence[str] = (),
    walks: WalkRule | None = None,
    frontier_cap: int = DEFAULT_FRONTIER_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    cache: Cache | None = None,
) -> KnowledgeGraph:
    """Open a graph folder, or the bundled demo graph when no place is given.

    Args:
        schema: name of a bundled schema or a TOML file; None for what the folder says, or detection.
        view: graph IRIs to look at; empty for the default graph or, where that is empty, all named ones.
        walks: overrides the graph's own rule.
        timeout: seconds a single query may take.

    Raises:
        StoreUnavailable, StoreIncomplete, StoreBusy, SchemaError, SettingsError.
    """
    cache = cache or Cache.default()
    store = open_store(place if place is not None else demo_folder(cache))
    meta = getattr(store, "meta", None)
    settings = dict(meta.settings) if meta else {}
    try:
        view = tuple(view) or default_view(store)
        if isinstance(schema, Schema):
            chosen = schema
        elif schema is not None:
            chosen = load_schema(schema)
        elif meta and meta.schema:
            chosen = load_schema(store.folder.path / meta.schema if meta.schema.endswith(".toml") else meta.schema)
        else:
            chosen = detect_schema(store, view)
        rule = walks or settings.get("walks")
        if rule is not None and rule not in WALK_RULES:
            raise SettingsError(f"walks must be one of {', '.join(WALK_RULES)}, not {rule!r}.")
    except BaseException:
        store.close()
        raise
    graph = KnowledgeGraph(
        store, chosen, view=view, walks=rule, frontier_cap=frontier_cap, timeout=timeout, cache=cache
    )
    graph.settings = settings
    return graph
