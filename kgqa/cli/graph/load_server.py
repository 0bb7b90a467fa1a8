"""`kgqa graph load --into URL`: into a Virtuoso that kgqa runs in bulk, into any other server by updates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kgqa.cli.graph.load import Bars, print_report
from kgqa.cli.options import say, settings_from

BULK_ONLY = (
    "{url} is no Virtuoso that kgqa runs (kgqa virtuoso status), so it is loaded by updates, which leave nothing to "
    "resume or to discard. Load the files again: what is in already does no harm."
)


def discard_at_server(url: str) -> None:
    """Forget an interrupted load into a server. What it loaded stays."""
    from kgqa.virtuoso.bulk.files import discard_interrupted
    from kgqa.virtuoso.server.server import Server

    server = Server.for_url(url)
    if server is None:
        raise click.UsageError(BULK_ONLY.format(url=url))
    found = discard_interrupted(server)
    say(
        "The interrupted load is forgotten. What it loaded stays in the graph."
        if found
        else f"There is no interrupted load at {url}."
    )


def load_into_server(
    files: tuple[Path, ...], url: str, graph_iri: str | None, bars: Bars, as_json: bool, **options: Any
) -> None:
    """Load files into one graph of a server, bring its names into the full-text index, and print what came of it."""
    from kgqa.graph.detection import detect_schema
    from kgqa.graph.endpoint.options import EndpointOptions
    from kgqa.methods.ask import cache_of
    from kgqa.virtuoso.server.server import Server
    from kgqa.words import clean

    settings = settings_from({}, url)
    server = Server.for_url(url)
    if server is None and options["resume"]:
        raise click.UsageError(BULK_ONLY.format(url=url))
    opened = EndpointOptions.of(settings).open(url, cache=cache_of(settings), timeout=settings["graph.timeout"])
    with opened as store:
        graph = _choose_graph(store, server, graph_iri, resume=options["resume"])
        store.writable = graph
        store.set_graphs([graph])
        try:
            report = _load(store, server, files, _in_rounds(bars), **options)
        except KeyboardInterrupt as error:
            bars.close()
            say(f"\nkgqa: Stopped. {clean(str(error))}")
            raise KeyboardInterrupt("said") from None
        finally:
            bars.close()
        schema = detect_schema(store, [graph])
        facts = {"schema": schema.name, "url": url, "graph_iri": graph, "bulk": server is not None}
        if server is not None:
            facts["names"] = _index_names(server, store, schema, graph)
        print_report(report, f"<{graph}>", schema.title, facts, as_json)
    if not as_json:
        print(f'Ask it: kgqa ask "..." --graph {url} --graph-iri {graph}')


def _choose_graph(store: Any, server: Any, graph_iri: str | None, *, resume: bool) -> str:
    """The graph that was named; else that of the interrupted load, or the only one of the server."""
    from kgqa.graph.endpoint.upload import choose_target_graph
    from kgqa.virtuoso.bulk.files import interrupted_graph
    from kgqa.words import clean

    if graph_iri:
        return graph_iri
    graph = (interrupted_graph(server) if resume else None) or choose_target_graph(store)
    say(f"kgqa: Loading into the graph <{clean(graph)}> (--graph-iri names another).")
    return graph


def _load(store: Any, server: Any, files: tuple[Path, ...], progress: Any, **options: Any) -> Any:
    if server is not None:
        from kgqa.virtuoso.bulk.files import load_files

        return load_files(server, store, files, progress=progress, **options)
    return store.load(files, progress=progress, on_error=options["on_error"], format=options["format"])


def _index_names(server: Any, store: Any, schema: Any, graph: str) -> int:
    """Bring the names into the server's full-text index; the files are loaded whatever becomes of this."""
    from kgqa.errors import KgqaError, ServerError
    from kgqa.virtuoso.bulk.name_graph import index_graph
    from kgqa.words import sentence

    later = f"Index them later: kgqa virtuoso index --graph-iri {graph} --schema {schema.name}"
    say("kgqa: The files are loaded. Indexing the names ...")
    try:
        return index_graph(server, store, schema, graph)
    except KeyboardInterrupt:
        say(f"\nkgqa: Stopped. The files are loaded, their names are not indexed. {later}")
        raise KeyboardInterrupt("said") from None
    except KgqaError as error:
        raise ServerError(
            f"The files are loaded, but their names are not indexed. {sentence(error)} {later}"
        ) from error


def _in_rounds(bars: Bars) -> Any:
    """A progress bar for judging the files, and another one for loading them."""
    judging = [False]

    def progress(step: Any) -> None:
        if judging[0] and step.stage != "reading":
            bars.next_round()
        judging[0] = step.stage == "reading"
        bars(step)

    return progress
