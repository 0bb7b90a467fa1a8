"""Opening a graph: the store, the schema that fits, and the settings the graph's folder keeps."""

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
"""Triples of a server's graph up to which queries over all of them are tried. Of 5 million Virtuoso takes 10 s for the
longest of these queries, and it has 60 s for a query."""


def open_store(place: str | Path, *, writable: bool = False, create: bool = False) -> Store:
    """Open a store for a folder made by `kgqa graph load`, or for the address of a SPARQL endpoint.

    Args:
        writable: whether `update` is allowed on a folder; then no other process may have the store open.
        create: make an empty store where there is none.

    Raises:
        StoreUnavailable: nothing there that is a store, or no permission.
        StoreBusy: another process writes to it.
        SettingsError: no usable address, or a writable server, which `EndpointStore` opens with the graph's name.
    """
    if is_address(place):
        if writable or create:
            raise SettingsError("On a server the graph to write to has to be named: EndpointStore(url, writable=IRI).")
        return EndpointStore(str(place))
    return EmbeddedStore(Path(place), writable=writable, create=create)


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
