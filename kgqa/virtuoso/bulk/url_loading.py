"""Loads RDF files into a graph at a URL: in bulk into the user's own Virtuoso, by SPARQL updates into other servers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa.cache import Cache
from kgqa.errors import KgqaError, LoadError, ServerError
from kgqa.graph.detection import detect_schema
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.upload import choose_target_graph
from kgqa.graph.store import LoadReport, OnError, Progress
from kgqa.schema import Schema
from kgqa.settings import Settings, resolve
from kgqa.virtuoso.bulk.loading import bulk_load, discard_interrupted, interrupted_graph
from kgqa.virtuoso.bulk.name_graph import index_graph
from kgqa.virtuoso.server.server import Server
from kgqa.words import clean, sentence


class NotResumable(LoadError):
    """The server is loaded by updates, which leave nothing to resume or to discard."""


@dataclass(frozen=True, slots=True)
class UrlLoad:
    """The result of `load_into_url`.

    Attributes:
        report: counts of lines and triples.
        url: the SPARQL endpoint.
        graph_iri: the graph that was loaded into.
        schema: the schema detected in the graph.
        bulk: whether the files were loaded in bulk.
        names: number of indexed names; None if the server has no index of names, that is, without `bulk`.
    """

    report: LoadReport
    url: str
    graph_iri: str
    schema: Schema
    bulk: bool
    names: int | None


def load_into_url(
    files: Sequence[Path],
    url: str,
    *,
    graph_iri: str | None = None,
    settings: Settings | None = None,
    cache: Cache | None = None,
    on_error: OnError = "fail",
    format: str | None = None,
    resume: bool = False,
    restart: bool = False,
    progress: Callable[[Progress], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> UrlLoad:
    """Load RDF files into one graph of a SPARQL server, and index the names of the graph after a bulk load.

    Args:
        files: RDF files; empty with `resume`.
        url: the address of the SPARQL endpoint.
        graph_iri: the graph; None for that of the interrupted load, the only graph of the server, or urn:kgqa:graph.
        settings: settings of the endpoint (user, timeout ...); None resolves those of the user.
        cache: the cache of results, where those of the graph are dropped; None for the default one.
        on_error: "fail" loads nothing if a line is malformed, "skip" leaves such lines out.
        format: file extension of the RDF format, for files whose name does not have one.
        resume: continue an interrupted bulk load.
        restart: discard an interrupted bulk load first.
        progress: called while the files are checked and loaded.
        notify: called with a short line about what is done.

    Raises:
        NotResumable: `resume`, but the server is loaded by updates.
        LoadError: a file is missing or malformed, several graphs to choose from; nothing was loaded.
        StoreError: the server cannot be reached or written.
        ServerError: the user's own server failed.
        KeyboardInterrupt: Ctrl-C; its argument says what is loaded and how to resume.
    """
    settings, notify = settings or resolve(), notify or (lambda text: None)
    server = own_server(url) if resume else Server.for_url(url)
    with EndpointOptions.of(settings).open(
        url, cache=cache or Cache.default(), timeout=settings["graph.timeout"]
    ) as store:
        graph = graph_iri or (interrupted_graph(server) if server and resume else None)
        if graph is None:
            graph = choose_target_graph(store)
            notify(f"Loading into the graph <{clean(graph)}> (--graph-iri names another).")
        store.writable = graph
        store.set_graphs([graph])
        if server is None:
            report = store.load(files, progress=progress, on_error=on_error, format=format)
        else:
            report = bulk_load(
                server,
                store,
                files,
                on_error=on_error,
                progress=progress,
                format=format,
                resume=resume,
                restart=restart,
            )
        schema = detect_schema(store, [graph])
        names = None if server is None else _index_names(server, store, schema, graph, notify)
    return UrlLoad(report, url, graph, schema, server is not None, names)


def discard_load(url: str) -> bool:
    """Discard an interrupted bulk load; loaded triples stay. Returns whether there was one.

    Raises:
        NotResumable: the server is loaded by updates.
    """
    return discard_interrupted(own_server(url))


def own_server(url: str) -> Server:
    """Return the user's own server at a URL; raises NotResumable if it is another server."""
    server = Server.for_url(url)
    if server is None:
        raise NotResumable(
            f"{url} is not a Virtuoso server started by kgqa (kgqa virtuoso status), so it is loaded by updates, which "
            "cannot be resumed or discarded. Load the files again; triples already loaded do no harm."
        )
    return server


def _index_names(
    server: Server, store: EndpointStore, schema: Schema, graph: str, notify: Callable[[str], None]
) -> int:
    """Index the names of the graph; the files stay loaded if this fails."""
    command = f"Index them later: kgqa virtuoso index --graph-iri {graph} --schema {schema.name}"
    notify("The files are loaded. Indexing the names ...")
    try:
        return index_graph(server, store, schema, graph)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"The files are loaded, their names are not indexed. {command}") from None
    except KgqaError as error:
        raise ServerError(
            f"The files are loaded, but their names are not indexed. {sentence(error)} {command}"
        ) from error
