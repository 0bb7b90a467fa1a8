"""Loads RDF files into a graph at a URL: in bulk if kgqa runs the server (Virtuoso), otherwise by SPARQL updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgqa.errors import KgqaError, LoadError, ServerError
from kgqa.graph.detection import detect_schema, load_warnings
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.upload import choose_target_graph
from kgqa.graph.store import LoadReport, OnError, Progress
from kgqa.schema import Schema
from kgqa.settings.values import Settings, resolve
from kgqa.storage.cache import Cache
from kgqa.text.words import clean, sentence
from kgqa.virtuoso.bulk.loading import bulk_load, discard_interrupted, interrupted_graph
from kgqa.virtuoso.bulk.name_graph import index_graph
from kgqa.virtuoso.server.server import Server


class NotResumable(LoadError):
    """`resume` or `discard` was requested for a load by SPARQL updates; such a load supports neither."""


@dataclass(frozen=True, slots=True)
class UrlLoad:
    """The result of `load_into_url`.

    Attributes:
        report: counts of lines and triples.
        url: the SPARQL endpoint.
        graph_iri: the graph to which the triples were added.
        schema: the schema detected in the graph.
        bulk: whether the files were loaded in bulk.
        names: number of indexed names; None after a load by SPARQL updates, because such a load indexes no names.
        warnings: sentences about what questions will lack in the graph.
    """

    report: LoadReport
    url: str
    graph_iri: str
    schema: Schema
    bulk: bool
    names: int | None
    warnings: tuple[str, ...] = ()


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
        graph_iri: the graph. If None: with `resume`, the graph of the interrupted load; otherwise the only graph of the
            server, or urn:kgqa:graph if the server has no graph.
        settings: settings of the endpoint (user, timeout ...); None for the settings of the user.
        cache: the cache from which results of the graph are removed; None for the default cache.
        on_error: "fail" loads nothing if any line is malformed, "skip" leaves malformed lines out.
        format: file extension of the RDF format, for files whose names have no extension.
        resume: continue an interrupted bulk load.
        restart: discard an interrupted bulk load first.
        progress: called while the files are checked and loaded.
        notify: called with a short text when a new step begins.

    Raises:
        NotResumable: `resume` was given for a server that kgqa does not run.
        LoadError: a file is missing or malformed, or several graphs could be meant; nothing was loaded.
        StoreError: the server cannot be reached or refuses updates.
        ServerError: the server that kgqa runs failed.
        KeyboardInterrupt: Ctrl-C was pressed; the exception's argument tells the user what is loaded and how to resume.
    """
    settings, notify = settings or resolve(), notify or (lambda text: None)
    server = own_server(url) if resume else Server.for_url(url)
    with EndpointOptions.of(settings).open(
        url, cache=cache or Cache.default(), timeout=settings.graph.timeout
    ) as store:
        graph = graph_iri or (interrupted_graph(server) if server and resume else None)
        if graph is None:
            graph = choose_target_graph(store)
            notify(f"Loading into the graph <{clean(graph)}>. To choose another graph, use --graph-iri.")
        store.writable = graph
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
        warnings = load_warnings(store, [graph], schema)
        names = None if server is None else _index_names(server, store, schema, graph, notify)
    return UrlLoad(report, url, graph, schema, server is not None, names, tuple(warnings))


def discard_load(url: str) -> bool:
    """Discard an interrupted bulk load, but keep its triples; return False if there was no such load.

    Raises:
        NotResumable: kgqa does not run the server.
    """
    return discard_interrupted(own_server(url))


def own_server(url: str) -> Server:
    """Return the server that kgqa runs at a URL; raise NotResumable if there is no such server."""
    server = Server.for_url(url)
    if server is None:
        raise NotResumable(
            f"A load into {url} cannot be resumed or discarded: kgqa uses SPARQL updates for servers that were not "
            "started with kgqa virtuoso start.",
            "Load the files again; triples already loaded do no harm.",
        )
    return server


def _index_names(
    server: Server, store: EndpointStore, schema: Schema, graph: str, notify: Callable[[str], None]
) -> int:
    """Index the names of the graph; if indexing fails, the triples stay loaded."""
    command = f"Index them later: kgqa virtuoso index --graph-iri {graph} --schema {schema.name}"
    notify("The files are loaded. Indexing the names ...")
    try:
        return index_graph(server, store, schema, graph)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"The files are loaded, but their names are not indexed. {command}") from None
    except KgqaError as error:
        raise ServerError(
            f"The files are loaded, but their names are not indexed. {sentence(error)} {command}"
        ) from error
