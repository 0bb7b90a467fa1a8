"""`kgqa virtuoso index | password-file`."""

from __future__ import annotations

from pathlib import Path

import click

from kgqa.cli.options import verbosity_options
from kgqa.cli.servers.options import FOLDER
from kgqa.errors import StoreError
from kgqa.graph.detection import detect_schema
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.schema import load_schema
from kgqa.text.words import clean
from kgqa.virtuoso.graph_loading import index_graph
from kgqa.virtuoso.server import Server


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
    if not server.triples_of(graph_iri):
        raise StoreError(
            f"There is no graph <{clean(graph_iri)}> on the server. Correct --graph-iri, or load the graph: "
            f"kgqa graph load FILES --into {server.url} --graph-iri IRI"
        )
    with EndpointStore(server.url) as store:
        chosen = load_schema(schema) if schema else detect_schema(store, (graph_iri,))
        names = index_graph(server, store, chosen, graph_iri)
    nothing = "The graph has no names with the predicates of this schema, so nothing was indexed."
    print(f"{names:,} {'name is' if names == 1 else 'names are'} indexed." if names else nothing)


@click.command("password-file")
@FOLDER
def password_file(folder: Path | None) -> None:
    """Print the path of the file with the password of the database user dba, for use with isql."""
    server = Server.at(folder)
    server.folder.password()
    print(clean(str(server.folder.password_file)))
