"""Opens stores and graphs by folder, address or settings, and the stores of other packages by `NAME:REST`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from kgqa.errors import SettingsError, StoreUnavailable
from kgqa.graph.demo import demo_folder
from kgqa.graph.detection import default_view, detect_schema
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import DEFAULT_FRONTIER_CAP, KnowledgeGraph
from kgqa.graph.store import DEFAULT_TIMEOUT, Store, is_address
from kgqa.plugins import plugin, plugin_names
from kgqa.schema import Schema, language_list, load_schema, usable_prefixes
from kgqa.settings.table import WALK_RULES, WalkRule
from kgqa.settings.values import Settings
from kgqa.storage.cache import Cache
from kgqa.storage.corpus_file import GRAPH_FOLDER, check_no_corpus, read_corpus_file
from kgqa.text.hints import Command, Option
from kgqa.text.words import clean

_FOREIGN = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(.*)", re.DOTALL)


def is_foreign(location: str | Path) -> bool:
    """Return whether a location has the form `NAME:REST`, where NAME is a store of a package or REST is no folder.

    A folder whose name has this form is written `./NAME:REST`, or given as a `Path`.
    """
    match = _FOREIGN.fullmatch(location) if isinstance(location, str) and not is_address(location) else None
    return match is not None and (match[1] in plugin_names("store") or not Path(location).exists())


def open_foreign_store(location: str, *, writable: bool = False) -> Store:
    """Open a store of another package. Its entry point, in the group `kgqa.stores`, is called with REST and `writable`.

    Raises:
        SettingsError: no package has a store of this name.
        KgqaError: the store cannot be opened.
    """
    match = _FOREIGN.fullmatch(location)
    assert match is not None
    name, rest = match.groups()
    if name not in plugin_names("store"):
        known = ", ".join(plugin_names("store")) or "none"
        raise SettingsError(
            f"{clean(location)[:200]} is neither a folder nor an address, and no installed package has a store named "
            f"{name} (installed: {known}).",
            "Correct the name, or install the package of the store with pip. Write ./ before the name of a folder.",
        )
    opened: Callable[..., Store] = plugin("store", name)
    return opened(rest, writable=writable)


def open_store(location: str | Path, *, writable: bool = False, create: bool = False) -> Store:
    """Open a folder made by `kgqa graph load`, the graph of a corpus folder, a SPARQL endpoint, or `NAME:REST`.

    `NAME` is a store of an installed package, see `open_foreign_store`; a folder of such a name is `./NAME:REST`, or a
    `Path`.

    Args:
        writable: whether `edit` may change the store; only one process at a time can then have a folder open.
        create: whether to create an empty graph if the folder has none. A store of another package that is opened with
            `create` is opened for writing.

    Raises:
        StoreUnavailable: there is no store, or the store is not readable.
        StoreBusy: another process is writing to the folder.
        SettingsError: the address is not valid, or `writable` or `create` was given with an address or a corpus
            folder.
    """
    if writable or create:
        check_no_corpus(location)
    corpus = read_corpus_file(location)
    if corpus:
        location = corpus.location
        if not (corpus.url or (corpus.folder / GRAPH_FOLDER).exists()):
            raise StoreUnavailable(
                f"The corpus at {clean(str(corpus.folder))} has no graph yet, because its build is not finished.",
                "Finish it: ",
                Command("corpus build", into=clean(str(corpus.folder))),
            )
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
    """Open a graph folder, the graph of a corpus folder, a SPARQL endpoint, or the bundled demo graph.

    Args:
        location: a folder, an address or `NAME:REST` (see `open_store`); None for the demo graph.
        schema: a schema, the name of a bundled schema, or the path of a schema file (TOML); None for the schema stored
            in the folder, or else the schema that `detect_schema` finds.
        view: IRIs of the graphs to query, or names of views of a corpus, such as `hyper`; empty for the view `facts` of
            a corpus, or the result of `default_view`.
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
    corpus, endpoint = read_corpus_file(location), endpoint or EndpointOptions()
    view = graphs_of(view, location)
    store: Store
    if location is not None and is_address(location) and not writable:
        store = endpoint.open(str(location), cache=cache, timeout=timeout)
    elif corpus and corpus.url and not writable:
        endpoint.check_login(corpus)
        store = endpoint.open(corpus.url, cache=cache, timeout=timeout)
    else:
        if location is None and writable:
            raise SettingsError("The demo graph cannot be changed.", "Give the folder of another graph.")
        store = open_store(demo_folder(cache) if location is None else location, writable=writable)
    try:
        settings = dict(store.settings)
        kept, declared = settings.pop("schema", None), usable_prefixes(settings.pop("prefixes", {}))
        schema = schema or (corpus.schema_source if corpus else kept)
        view = view or default_view(store)
        if isinstance(schema, Schema):
            chosen = schema
        else:
            chosen = load_schema(schema) if schema is not None else detect_schema(store, view)
        chosen = chosen.with_prefixes(declared)
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


def graphs_of(view: Sequence[str], location: str | Path | None) -> tuple[str, ...]:
    """Return the IRIs of the graphs to query; those of a corpus folder may be given by the name of a view.

    Raises:
        SettingsError: the corpus has no view of this name.
        StoreUnavailable: see `read_corpus_file`.
    """
    corpus = read_corpus_file(location)
    if not corpus:
        return tuple(view)
    chosen = (corpus.graphs_of([each]) if ":" not in each else (each,) for each in view or corpus.default_views)
    return tuple(dict.fromkeys(iri for graphs in chosen for iri in graphs))


def view_of(settings: Settings, location: str | Path | None) -> tuple[str, ...]:
    """Return the IRIs of the graphs that the settings choose: `graph.iri`, or views of a corpus by `graph.view`.

    Raises:
        SettingsError: both settings have a value, or the location is not a corpus folder with these views.
        StoreUnavailable: see `read_corpus_file`.
    """
    graphs = (settings.graph.iri or "").split()
    names = (settings.graph.view or "").replace(",", " ").split()
    if graphs and names:
        raise SettingsError(
            "graph.iri and graph.view both choose graphs.", "Give ", Option("graph-iri"), " or ", Option("view"), "."
        )
    if names and not read_corpus_file(location):
        raise SettingsError(
            f"{clean(str(location or 'The demo graph'))} is not a corpus folder and has no views.",
            "Name the graph to query: ",
            Option("graph-iri", "IRI"),
        )
    return graphs_of(graphs or names, location)


def open_graph_of(
    settings: Settings, location: str | Path | None = None, *, cache: Cache | None = None
) -> KnowledgeGraph:
    """Open the graph at `location`, or, if `location` is None, at the setting `graph.path`.

    Raises the same errors as `open_graph`.
    """
    if location is None:
        location = settings.graph.path
    return open_graph(
        location,
        schema=settings.graph.schema,
        view=view_of(settings, location),
        walks=settings.graph.walks,
        frontier_cap=settings.graph.frontier_cap,
        timeout=settings.graph.timeout,
        cache=cache,
        endpoint=EndpointOptions.of(settings),
        languages=language_list(settings.graph.languages),
    )
