"""Opens stores and graphs by folder, address or settings."""

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
from kgqa.graph.foreign_stores import is_foreign, open_foreign_store
from kgqa.graph.graph import DEFAULT_FRONTIER_CAP, KnowledgeGraph
from kgqa.graph.store import DEFAULT_TIMEOUT, Store, is_address
from kgqa.schema import (
    Schema,
    language_list,
    load_schema,
)
from kgqa.settings import Settings
from kgqa.settings_table import WALK_RULES, WalkRule


def open_store(location: str | Path, *, writable: bool = False, create: bool = False) -> Store:
    """Open a folder made by `kgqa graph load`, the SPARQL endpoint at an address, or `NAME:REST`.

    `NAME` is a store of an installed package, see `open_foreign_store`; a folder of such a name is `./NAME:REST`, or a
    `Path`.

    Args:
        writable: whether `edit` may change the store; only one process at a time can then have a folder open.
        create: whether to create an empty graph if the folder has none. A store of another package that is opened with
            `create` is opened for writing.

    Raises:
        StoreUnavailable: there is no store, or the store is not readable.
        StoreBusy: another process is writing to the folder.
        SettingsError: the address is not valid, or `writable` or `create` was given with an address.
    """
    if is_address(location):
        if writable or create:
            raise SettingsError("To write to a server, name the graph to write to: EndpointStore(url, writable=IRI).")
        return EndpointStore(str(location))
    if is_foreign(location):
        return open_foreign_store(str(location), writable=writable or create)
    return EmbeddedStore(Path(location), writable=writable, create=create)


def open_graph(
    location: str | Path | None = None,
    *,
    schema: str | Path | Schema | None = None,
    view: Sequence[str] = (),
    writable: bool = False,
    walks: WalkRule | None = None,
    frontier_cap: int = DEFAULT_FRONTIER_CAP,
    timeout: float = DEFAULT_TIMEOUT,
    cache: Cache | None = None,
    endpoint: EndpointOptions | None = None,
    languages: Sequence[str] = (),
) -> KnowledgeGraph:
    """Open a graph folder, a SPARQL endpoint, or the bundled demo graph.

    Args:
        location: a folder, an address or `NAME:REST` (see `open_store`); None for the demo graph.
        schema: a schema, the name of a bundled schema, or the path of a schema file (TOML); None for the schema stored
            in the folder, or else the schema that `detect_schema` finds.
        view: IRIs of the graphs to query; empty for the result of `default_view`.
        writable: whether `store.edit` may change the graph; see `open_store`. The demo graph cannot be changed.
        walks: the walk rule (see `patterns.path_pattern`); None for the rule stored in the folder, or else the
            schema's rule.
        frontier_cap: maximum number of nodes at the end of a path that are explored further.
        timeout: maximum seconds per query.
        cache: where tables computed from the graph are stored; None for the user's cache.
        endpoint: options for a server; ignored for a folder.
        languages: preferred languages of names, tried before the schema's languages.

    Raises:
        StoreUnavailable, StoreIncomplete, StoreBusy, SchemaError, SettingsError: see `kgqa.errors`.
    """
    cache = cache or Cache.default()
    store: Store
    if location is not None and is_address(location) and not writable:
        store = (endpoint or EndpointOptions()).open(str(location), cache=cache, timeout=timeout)
    else:
        if location is None and writable:
            raise SettingsError("The demo graph cannot be changed.", "Give the folder of another graph.")
        store = open_store(demo_folder(cache) if location is None else location, writable=writable)
    try:
        settings = dict(store.settings)
        kept = settings.pop("schema", None)
        schema = schema or kept
        view = tuple(view) or default_view(store)
        if isinstance(schema, Schema):
            chosen = schema
        else:
            chosen = load_schema(schema) if schema is not None else detect_schema(store, view)
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
        owns_store=True,
    )
    graph.settings = settings
    return graph


def open_graph_of(
    settings: Settings, location: str | Path | None = None, *, cache: Cache | None = None
) -> KnowledgeGraph:
    """Open the graph at `location`, or, if `location` is None, at the setting `graph.path`.

    Raises the same errors as `open_graph`.
    """
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
