"""`kgqa virtuoso adopt | index | drop-names | password-file`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import JSON, print_result, verbosity_options
from kgqa.cli.servers.options import FOLDER, say_clean
from kgqa.errors import StoreError
from kgqa.graph.detection import detect_schema
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.schema import load_schema
from kgqa.text.words import clean
from kgqa.virtuoso.bulk.name_graph import NamesGraph, drop_names_graph, index_graph, names_graphs
from kgqa.virtuoso.server.adopting import PASSWORD_VARIABLE
from kgqa.virtuoso.server.server import Server


@click.command("adopt")
@click.argument("database", type=click.Path(path_type=Path))
@FOLDER
@JSON
@verbosity_options
def adopt(database: Path, folder: Path | None, as_json: bool) -> None:
    """Make the server use an existing DATABASE file (virtuoso.db) where it lies, instead of loading a dump.

    The password of the database user dba is read from the environment variable KGQA_VIRTUOSO_DBA_PASSWORD, or asked
    for. A default password, `dba`, is replaced by a random password. If the server that used the database was not shut
    down properly, the transaction log (virtuoso.trx) must be beside the database.

    \b
    Example:
      kgqa virtuoso adopt /data/virtuoso.db
    """
    server = Server.at(folder)
    adoption = server.adopt(database, password=_ask_password, notify=say_clean)
    start = f"kgqa virtuoso start{clean(server.folder.folder_option)}"
    data = {
        "database": str(adoption.database),
        "password_file": str(adoption.password_file),
        "password_changed": adoption.password_changed,
    }
    print_result(as_json, data, [f"{clean(str(adoption.database))} is adopted. Start it: {start}"])


def _ask_password() -> str:
    given = os.environ.get(PASSWORD_VARIABLE)
    if given is not None or not sys.stdin.isatty():
        return given or ""
    entered: str = click.prompt("Password of the database's user dba", hide_input=True, err=True)
    return entered


@click.command("index")
@FOLDER
@click.option("--graph-iri", required=True, metavar="IRI", help="the graph whose names are indexed")
@click.option("--schema", metavar="NAME|FILE", help="schema with the predicates of names. [detected]")
@verbosity_options
def index(folder: Path | None, graph_iri: str, schema: str | None) -> None:
    """Add a graph's names to the server's full-text index, which entity linking and search use.

    The graph itself does not change. Names that are added later are indexed too, within minutes.

    \b
    Example:
      kgqa virtuoso index --graph-iri http://freebase.com
    """
    server = Server.at(folder)
    # ask with SQL: its errors say what to do next, and it cannot reach a different server at the same URL
    if not server.holds(graph_iri):
        raise StoreError(
            f"There is no graph <{clean(graph_iri)}> on the server. Correct --graph-iri, or load the graph: "
            f"kgqa graph load FILES --into {server.url} --graph-iri IRI"
        )
    with EndpointStore(server.url) as store:
        chosen = load_schema(schema) if schema else detect_schema(store, (graph_iri,))
        names = index_graph(server, store, chosen, graph_iri)
    nothing = "The graph has no names with the predicates of this schema, so nothing was indexed."
    print(f"{names:,} {'name is' if names == 1 else 'names are'} indexed." if names else nothing)


@click.command("drop-names")
@click.argument("graphs", nargs=-1, metavar="[GRAPH]...")
@FOLDER
@click.option("--all", "everything", is_flag=True, help="remove all of them")
@JSON
@verbosity_options
def drop_names(graphs: tuple[str, ...], folder: Path | None, everything: bool, as_json: bool) -> None:
    """Remove indexes of names that older versions of kgqa built; without GRAPH or --all, list them.

    Each is a graph of names, urn:kgqa:names:..., which kgqa no longer uses. GRAPH is its IRI, or the IRI of the
    indexed graph. The indexed graphs and the server's full-text index do not change.

    \b
    Examples:
      kgqa virtuoso drop-names
      kgqa virtuoso drop-names http://freebase.com
      kgqa virtuoso drop-names --all
    """
    server = Server.at(folder)
    existing = names_graphs(server)
    for iri in graphs:
        if not any(iri in _iris(graph) for graph in existing):
            raise StoreError(
                f"<{clean(iri)}> has no graph of names on the server. "
                f"List all graphs of names: kgqa virtuoso drop-names{clean(server.folder.folder_option)}"
            )
    chosen = [graph for graph in existing if everything or set(graphs) & set(_iris(graph))]
    for graph in chosen:
        drop_names_graph(server, graph.iri)
    removes = bool(graphs) or everything
    data = [
        {
            "graph": graph.iri,
            "of": None if graph.graphs is None else list(graph.graphs),
            "names": graph.names,
            "removed": removes,
        }
        for graph in (chosen if removes else existing)
    ]
    print_result(as_json, data, map(_line, data) if existing else ["The server has no graph of names."])


def _line(row: dict[str, Any]) -> str:
    of = "incomplete, or of a very old version of kgqa"
    if row["of"] is not None:
        of = f"{row['names']:,} names of {' '.join(f'<{clean(iri)}>' for iri in row['of'])}"
    return f"{'Removed ' if row['removed'] else ''}{clean(row['graph'])}: {of}"


def _iris(graph: NamesGraph) -> tuple[str, ...]:
    return (graph.iri, *(graph.graphs or ()))


@click.command("password-file")
@FOLDER
def password_file(folder: Path | None) -> None:
    """Print the path of the file with the password of the database user dba, for use with isql."""
    server = Server.at(folder)
    server.folder.password()
    print(clean(str(server.folder.password_file)))
