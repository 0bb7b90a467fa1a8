"""Opens stores and graphs by folder, address, settings or `NAME:REST` of another package, and loads graph folders."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from kgqa.errors import SettingsError, StoreBusy, StoreUnavailable
from kgqa.graph.detection import default_view, detect_schema
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore, open_endpoint
from kgqa.graph.graph import DEFAULT_FRONTIER_CAP, KnowledgeGraph
from kgqa.graph.store import DEFAULT_TIMEOUT, LoadReport, Progress, Store, is_address
from kgqa.plugins import plugin, plugin_names
from kgqa.schema import BUNDLED, Schema, language_list, load_schema, usable_prefixes
from kgqa.settings.table import WALK_RULES, WalkRule
from kgqa.settings.values import Settings
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.cache import Cache
from kgqa.storage.corpus_file import GRAPH_FOLDER, check_no_corpus, read_corpus_file
from kgqa.text.display import in_notebook, progress_bar
from kgqa.text.hints import Command, Option
from kgqa.text.words import clean

_FOREIGN = re.compile(r"([A-Za-z][A-Za-z0-9_-]+):(.*)", re.DOTALL)
DEMO_SECONDS = 30.0
"""How long to wait for another process that loads the demo graph."""


# --- stores


def is_foreign(location: str | Path) -> bool:
    """Return whether a location has the form `NAME:REST`, where NAME is a store of a package or REST is no folder.

    A folder whose name has this form is written `./NAME:REST`, or given as a `Path`.
    """
    match = _FOREIGN.fullmatch(location) if isinstance(location, str) and not is_address(location) else None
    return match is not None and (match[1] in plugin_names("store") or not Path(location).exists())


def open_store(
    location: str | Path,
    *,
    writable: bool = False,
    create: bool = False,
    endpoint: EndpointOptions | None = None,
    cache: Cache | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Store:
    """Open a folder made by `kgqa graph load`, the graph of a corpus folder, a SPARQL endpoint, or `NAME:REST`.

    `NAME` is a store of an installed package: its entry point, in the group `kgqa.stores`, is called with REST and
    `writable`. A folder of such a name is `./NAME:REST`, or a `Path`.

    Args:
        writable: whether `edit` may change the store; only one process at a time can then have a folder open.
        create: whether to create an empty graph if the folder has none. A store of another package that is opened with
            `create` is opened for writing.
        endpoint: options for a server, whose results are then cached on disk.
        cache: where results of a server are stored; None for the user's cache.
        timeout: maximum seconds per query to a server with options.

    Raises:
        StoreUnavailable: there is no store, or the store is not readable.
        StoreBusy: another process is writing to the folder.
        SettingsError: the address is not valid, or `writable` or `create` was given with an address or a corpus
            folder, or no package has a store of this name.
    """
    if writable or create:
        check_no_corpus(location)
    if corpus := read_corpus_file(location):
        location = corpus.location
        if endpoint:
            endpoint.check_login(corpus)
        if not (corpus.url or (corpus.folder / GRAPH_FOLDER).exists()):
            raise StoreUnavailable(
                f"The corpus at {clean(str(corpus.folder))} has no graph yet, because its build is not finished.",
                "Finish it: ",
                Command("corpus build", into=clean(str(corpus.folder))),
            )
    if is_address(location):
        if writable or create:
            raise SettingsError("To write to a server, name the graph to write to: EndpointStore(url, writable=IRI).")
        if endpoint is None:
            return EndpointStore(str(location))
        return open_endpoint(str(location), endpoint, cache=cache or Cache.default(), timeout=timeout)
    if not is_foreign(location):
        return EmbeddedStore(Path(location), writable=writable, create=create)
    name, _, rest = str(location).partition(":")
    if name not in plugin_names("store"):
        known = ", ".join(plugin_names("store")) or "none"
        raise SettingsError(
            f"{clean(str(location))[:200]} is neither a folder nor an address, and no installed package has a store "
            f"named {name} (installed: {known}).",
            "Correct the name, or install the package of the store with pip. Write ./ before the name of a folder.",
        )
    opened: Callable[..., Store] = plugin("store", name)
    return opened(rest, writable=writable or create)


def demo_folder(cache: Cache) -> Path:
    """Return the folder of the bundled demo graph, which is loaded on first use (in less than a second).

    Raises:
        StoreUnavailable: the cache is not writable.
        StoreBusy: another process is loading the demo graph and did not finish in DEMO_SECONDS.
    """
    end = time.monotonic() + DEMO_SECONDS
    with as_file(files("kgqa") / "demo" / "graph.nt") as source:
        folder = cache.entry("demo", hashlib.sha256(source.read_bytes()).hexdigest()[:12])
        while not _is_readable(folder):
            try:
                # free: a step to a mediator and the next step count as one hop
                load_graph(folder, [source], restart=True, schema="freebase", settings={"mediator_hop": "free"})
            except StoreBusy:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)
    return folder


def _is_readable(folder: Path) -> bool:
    """Return whether a folder has a graph. One that is damaged, or of another version of kgqa, is removed."""
    try:
        return GraphFolder(folder).exists() and bool(GraphFolder(folder).meta())
    except StoreUnavailable:
        shutil.rmtree(folder, ignore_errors=True)
        return False


# --- graphs


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
        walks: the walk rule (see `text.path_pattern`); None for the rule stored in the folder, or else the
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
    if location is None:
        if writable:
            raise SettingsError("The demo graph cannot be changed.", "Give the folder of another graph.")
        location = demo_folder(cache)
    corpus, view = read_corpus_file(location), graphs_of(view, location)
    store = open_store(
        location, writable=writable, endpoint=endpoint or EndpointOptions(), cache=cache, timeout=timeout
    )
    try:
        settings = dict(store.settings)
        kept, declared = settings.pop("schema", None), usable_prefixes(settings.pop("prefixes", {}))
        schema = schema or (corpus.schema_source if corpus else kept)
        view = view or default_view(store)
        if not isinstance(schema, Schema):
            schema = load_schema(schema) if schema is not None else detect_schema(store, view)
        rule = walks or settings.get("walks")
        if rule is not None and rule not in WALK_RULES:
            raise SettingsError(f"walks must be one of {', '.join(WALK_RULES)}, not {rule!r}.")
    except BaseException:
        store.close()
        raise
    graph = KnowledgeGraph(
        store,
        schema.with_prefixes(declared),
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


# --- loading


def load_into_folder(
    files: Iterable[str | Path],
    folder: str | Path,
    *,
    schema: str | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> LoadReport:
    """Load RDF files into a graph folder.

    Args:
        files: RDF files.
        folder: the graph folder, created if needed.
        progress: called with the progress; None for a bar in a notebook, and for nothing elsewhere.
        schema: name of a bundled schema, or path of a schema file (TOML), which is copied into the folder; None keeps
            the folder's present schema.
        options: see `load_graph`: settings, on_error, format, resume, restart, memory.

    Raises:
        SchemaError: the schema is invalid.
        LoadError: a file is missing, malformed or truncated; the graph is unchanged.
        StoreBusy: another load is running.
        StoreUnavailable: the folder is not writable, or contains other files.
        KeyboardInterrupt: Ctrl-C; the load can be resumed.
        SettingsError: the folder is a corpus folder.
    """
    folder, paths = Path(folder), [Path(file) for file in files]
    check_no_corpus(folder)
    with ExitStack() as stack:
        if progress is None and in_notebook():
            progress = stack.enter_context(_load_bar(paths))
        kept = None if schema is None else keep_schema(schema, folder)
        return load_graph(folder, paths, progress=progress, schema=kept, **options)


@contextmanager
def _load_bar(files: Iterable[Path]) -> Iterator[Callable[[Progress], None]]:
    """Show a bar over the bytes of the files of a load, for notebooks, and yield the function that moves it."""
    total = sum(file.stat().st_size for file in files if file.is_file())
    done: dict[str, int] = {}
    with progress_bar(total=total or None, unit="B", unit_scale=True, desc="loading") as bar:

        def move(progress: Progress) -> None:
            done[progress.file] = progress.bytes_done
            bar.update(max(0, sum(done.values()) - bar.n))

        yield move


def keep_schema(schema: str, folder: Path) -> str:
    """Return the name of a bundled schema, or copy a schema file into the folder and return the name of the copy.

    The name of the copy contains the digest of its content, so that a failed load does not overwrite the schema in use.
    """
    loaded = load_schema(schema)
    if schema in BUNDLED:
        return schema
    name = f"schema-{loaded.digest}.toml"
    GraphFolder(folder).create()
    replace_file(folder / name, [loaded.source.encode()])
    return name
