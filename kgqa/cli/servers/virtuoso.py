"""`kgqa virtuoso`: a Virtuoso server of one's own, from installation to its end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import JSON, say, verbosity_options

NOT_RUNNING = 3
FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="The server's folder. [KGQA_VIRTUOSO_FOLDER, or one among your application data]",
)


@click.group("virtuoso")
def command() -> None:
    """A Virtuoso server of your own: install it, start it, look at it, stop it.

    \b
    It needs neither systemd nor root, keeps everything in one folder, and is served on this machine only.
      kgqa virtuoso install
      kgqa virtuoso start
      kgqa virtuoso status
      kgqa virtuoso stop
    """


@command.command("install")
def install() -> int:
    """Install Virtuoso from the package of Debian or Ubuntu; elsewhere say what to do."""
    import subprocess
    from importlib.resources import as_file, files

    with as_file(files("kgqa.virtuoso_files").joinpath("install.sh")) as script:
        return 0 if subprocess.run(["sh", str(script)]).returncode == 0 else 1


@command.command("start")
@FOLDER
@click.option("--http-port", type=int, help="Port for SPARQL. [8890]")
@click.option("--sql-port", type=int, help="Port for SQL, on 127.0.0.1 only. [1111]")
@click.option("--bind", metavar="ADDRESS", help="IPv4 address to serve SPARQL on; 0.0.0.0 for all. [127.0.0.1]")
@click.option("--memory-share", type=float, help="Part of this machine's memory it may use. [0.5]")
@click.option("--row-cap", type=int, help="Rows of the longest answer. [1000000]")
@click.option("--query-seconds", type=int, help="Seconds after which a query is ended. [60]")
@click.option("--show", is_flag=True, help="Print the settings file and the command, and start nothing.")
@JSON
@verbosity_options
def start(folder: Path | None, show: bool, as_json: bool, **options: Any) -> None:
    """Start the server; the first time, make its database and a random password.

    Options are kept: the next start without them uses the same. If the server runs already, nothing happens.

    \b
    Examples:
      kgqa virtuoso start
      kgqa virtuoso start --http-port 8891 --sql-port 1112 --memory-share 0.25
    """
    from kgqa.virtuoso.server.server import Server
    from kgqa.words import clean, safe_text

    server = Server.at(folder)
    if show:
        arguments, ini = server.preview(**options)
        print(safe_text(ini))
        print(f"# {clean(' '.join(arguments))}")
        return
    started = server.start(**options, notify=_told)
    status = server.status()
    if as_json:
        _print_json({**_as_object(status), "started": started})
    elif started:
        print(f"Virtuoso {clean(status.version)} is online: {status.url}")
    else:
        print(f"It runs already (process {status.pid}): {status.url}")
    if not started and any(value is not None for value in options.values()):
        say(f"kgqa: The options were not used. Stop it first: kgqa virtuoso stop{clean(server.folder.folder_option)}")
    if status.message:
        say(f"kgqa: {clean(status.message)}")


@command.command("status")
@FOLDER
@click.option("--triples", "count", is_flag=True, help="Count the triples too; takes a while on large graphs.")
@JSON
def status(folder: Path | None, count: bool, as_json: bool) -> int:
    """Whether the server runs, where it answers, how much disk it takes, and what to do if something is wrong.

    Exit code 0 if it runs, 3 if it does not.
    """
    from kgqa.virtuoso.server.server import Server
    from kgqa.words import clean

    found = Server.at(folder).status(count=count)
    if as_json:
        _print_json(_as_object(found))
    else:
        print(f"{found.state}" + (f" (process {found.pid})" if found.pid else ""))
        print(f"  endpoint  {found.url}")
        print(f"  folder    {clean(found.folder)}")
        if found.version:
            print(f"  version   {clean(found.version)}")
        print(f"  on disk   {found.disk_bytes / 1e6:,.0f} MB")
        if found.triples is not None:
            print(f"  triples   {found.triples:,}")
        if found.message:
            print(clean(found.message))
    return 0 if found.state in ("running", "loading") else NOT_RUNNING


@command.command("stop")
@FOLDER
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=600, show_default=True, help="Seconds to wait for its end."
)
@verbosity_options
def stop(folder: Path | None, timeout: float) -> None:
    """Write everything to disk and end the server."""
    from kgqa.virtuoso.server.server import Server

    print("Stopped." if Server.at(folder).stop(timeout=timeout) else "It does not run.")


@command.command("adopt")
@click.argument("database", type=click.Path(path_type=Path))
@FOLDER
@JSON
@verbosity_options
def adopt(database: Path, folder: Path | None, as_json: bool) -> None:
    """Use a ready DATABASE file (virtuoso.db) where it lies, instead of loading a dump.

    The password of its user dba comes from KGQA_VIRTUOSO_DBA_PASSWORD, or is asked for. If it is `dba`, it is replaced
    by a random one. The log of changes (virtuoso.trx) must lie beside the database, if it was not ended properly.

    \b
    Example:
      kgqa virtuoso adopt /data/virtuoso.db
    """
    from kgqa.virtuoso.server.server import Server
    from kgqa.words import clean

    server = Server.at(folder)
    done = server.adopt(database, password=_ask_password, notify=_told)
    if as_json:
        _print_json(
            {
                "database": str(done.database),
                "password_file": str(done.password_file),
                "password_changed": done.password_changed,
            }
        )
    else:
        print(
            f"{clean(str(done.database))} is adopted. Start it: kgqa virtuoso start{clean(server.folder.folder_option)}"
        )


@command.command("index")
@FOLDER
@click.option("--graph-iri", required=True, metavar="IRI", help="The graph whose names are indexed.")
@click.option("--schema", metavar="NAME|FILE", help="Schema that says which predicates lead to names. [detected]")
@verbosity_options
def index(folder: Path | None, graph_iri: str, schema: str | None) -> None:
    """Make the index of names that linking and search use on the server, or make it anew after names were added.

    A graph of names is written beside the graph, which stays as it is. To remove it: kgqa virtuoso drop-names.

    \b
    Example:
      kgqa virtuoso index --graph-iri http://freebase.com
    """
    from kgqa.errors import StoreError
    from kgqa.graph.detection import detect_schema
    from kgqa.graph.endpoint.store import EndpointStore
    from kgqa.schema import load_schema
    from kgqa.virtuoso.bulk.name_graph import index_graph
    from kgqa.virtuoso.server.server import Server
    from kgqa.words import clean

    server = Server.at(folder)
    # by SQL: that says how to start it, and nothing else at its address is taken for it
    if not server.holds(graph_iri):
        raise StoreError(
            f"There is no graph <{clean(graph_iri)}> on the server. Correct --graph-iri, or load it: "
            f"kgqa graph load FILES --into {server.url} --graph-iri IRI"
        )
    with EndpointStore(server.url, graphs=(graph_iri,)) as store:
        chosen = load_schema(schema) if schema else detect_schema(store, (graph_iri,))
        names = index_graph(server, store, chosen, graph_iri)
    print(f"{names:,} names are indexed." if names else "The graph has no names by this schema; nothing was indexed.")


@command.command("drop-names")
@click.argument("graphs", nargs=-1, metavar="[GRAPH]...")
@FOLDER
@click.option("--all", "everything", is_flag=True, help="remove all of them")
@JSON
@verbosity_options
def drop_names(graphs: tuple[str, ...], folder: Path | None, everything: bool, as_json: bool) -> None:
    """Remove the indexes of names that `kgqa virtuoso index` made for these graphs; without GRAPH or --all, list them.

    GRAPH is the IRI of a graph whose names are indexed, or of the graph of names itself. The data stays as it is.

    \b
    Examples:
      kgqa virtuoso drop-names
      kgqa virtuoso drop-names http://freebase.com
      kgqa virtuoso drop-names --all
    """
    from kgqa.errors import StoreError
    from kgqa.virtuoso.bulk.name_graph import drop_names_graph, names_graphs
    from kgqa.virtuoso.server.server import Server
    from kgqa.words import clean

    server = Server.at(folder)
    there = names_graphs(server)
    for iri in graphs:
        if not any(iri in _iris(graph) for graph in there):
            raise StoreError(
                f"There is no graph of names of <{clean(iri)}> on the server. See which there are: kgqa virtuoso drop-names"
                f"{clean(server.folder.folder_option)}"
            )
    chosen = [graph for graph in there if everything or set(graphs) & set(_iris(graph))]
    for graph in chosen:
        drop_names_graph(server, graph.iri)
    removes = bool(graphs) or everything
    if as_json:
        _print_json(
            [
                {
                    "graph": graph.iri,
                    "of": list(graph.facts.graphs) if graph.facts else None,
                    "names": graph.facts.names if graph.facts else None,
                    "removed": removes,
                }
                for graph in (chosen if removes else there)
            ]
        )
        return
    for graph in chosen if removes else there:
        what = "not finished, or made by an older version of kgqa"
        if graph.facts:
            what = f"{graph.facts.names:,} names of {' '.join(f'<{clean(iri)}>' for iri in graph.facts.graphs)}"
        print(f"{'Removed ' if removes else ''}{clean(graph.iri)}: {what}")
    if not there:
        print("There is no graph of names on the server.")


def _iris(graph: Any) -> tuple[str, ...]:
    return (graph.iri, *(graph.facts.graphs if graph.facts else ()))


@command.command("password-file")
@FOLDER
def password_file(folder: Path | None) -> None:
    """The path of the file with the password of dba, for use with isql."""
    from kgqa.virtuoso.server.server import Server
    from kgqa.words import clean

    server = Server.at(folder)
    server.folder.password()
    print(clean(str(server.folder.password_file)))


def _told(text: str) -> None:
    from kgqa.words import clean

    say(clean(text))


def _ask_password() -> str:
    import os

    from kgqa.virtuoso.server.adopting import PASSWORD_VARIABLE

    given = os.environ.get(PASSWORD_VARIABLE)
    if given is not None or not sys.stdin.isatty():
        return given or ""
    return click.prompt("Password of the database's user dba", hide_input=True, err=True)


def _as_object(status: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(status)


def _print_json(data: dict[str, Any]) -> None:
    from kgqa.answer_json import json_text

    print(json_text(data, indent=2))
