"""Opening of stores and graphs, from folders, addresses or settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kgqa.cache import Cache
from kgqa.errors import SettingsError
from kgqa.graph.demo import demo_folder
from kgqa.graph.detection import default_view, detect_schema
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import DEFAULT_FRONTIER_CAP, KnowledgeGraph
from kgqa.graph.store import DEFAULT_TIMEOUT, Store, is_address
from kgqa.schema import (
    WALK_RULES,
    Schema,
    WalkRule,
    language_list,
    load_schema,
)
from kgqa.settings import Settings

MOST_SCANNED = 20_000_000
"""The size up to which a server's graph is scanned, in triples. Virtuoso takes 10 s for the slowest of these queries on
5 million triples, and stops queries after 60 s."""


def open_store(location: str | Path, *, writable: bool = False, create: bool = False) -> Store:
    """Open a folder made by `kgqa graph load`, or the SPARQL endpoint at an address.

    Args:
        writable: whether to allow `update` on a folder; no other process may then have the store open.
        create: whether to create an empty store if the folder has none.

    Raises:
        StoreUnavailable: there is no store, or no permission to read it.
        StoreBusy: another process is writing to it.
        SettingsError: the address is not usable, or `writable` or `create` was given with an address.
    """
    if is_address(location):
        if writable or create:
            raise SettingsError("A server needs the IRI of the graph to write to: EndpointStore(url, writable=IRI).")
        return EndpointStore(str(location))
    return EmbeddedStore(Path(location), writable=writable, create=create)


def open_graph(
    location: str | Path | None = None,
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
    """Open a graph folder, a SPARQL endpoint, or the bundled demo graph.

    Args:
        location: a folder or an address; None for the demo graph.
        schema: a schema, the name of a bundled one, or a TOML file; None for the folder's own, else detection.
        view: IRIs of the graphs to query; empty for `default_view`.
        walks: the walk rule; None for the graph's own.
        frontier_cap: how many nodes at the end of a path are explored further, at most.
        timeout: seconds per query.
        cache: where derived tables are kept; None for the user's cache.
        endpoint: options for a server; unused for a folder.
        languages: preferred languages of names, before the schema's.

    Raises:
        StoreUnavailable, StoreIncomplete, StoreBusy, SchemaError, SettingsError.
    """
    cache = cache or Cache.default()
    store: Store
    if location is not None and is_address(location):
        store = (endpoint or EndpointOptions()).open(str(location), cache=cache, timeout=timeout)
    else:
        store = open_store(location if location is not None else demo_folder(cache))
    meta = getattr(store, "meta", None)
    settings = dict(meta.settings) if meta else {}
    try:
        view = tuple(view) or default_view(store)
        if isinstance(store, EndpointStore):
            store.set_graphs(view)
        if isinstance(schema, Schema):
            chosen = schema
        elif schema is not None:
            chosen = load_schema(schema)
        elif meta and meta.schema:
            chosen = load_schema(Path(store.location) / meta.schema if meta.schema.endswith(".toml") else meta.schema)
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
        scan=not isinstance(store, EndpointStore) or store.profile.allows_scans,
        most_scanned=MOST_SCANNED if isinstance(store, EndpointStore) else None,
    )
    graph.settings = settings
    return graph


def open_graph_of(
    settings: Settings, location: str | Path | None = None, *, cache: Cache | None = None
) -> KnowledgeGraph:
    """Open the graph at `location`, or else at `graph.path`, with these settings. Raises as `open_graph` does."""
    if location is None:
        location = settings["graph.path"]
    return open_graph(
        location,
        schema=settings["graph.schema"],
        view=(settings["graph.iri"] or "").split(),
        walks=settings["graph.walks"],
        frontier_cap=settings["graph.frontier_cap"],
        timeout=settings["graph.timeout"],
        cache=cache,
        endpoint=EndpointOptions.of(settings),
        languages=language_list(settings["graph.languages"]),
    )
