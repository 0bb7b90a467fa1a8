"""`kgqa explain`: a SPARQL query in plain words."""

from __future__ import annotations

import json
import sys

import click

from kgqa.cli.options import graph_options, setting_option, settings_from
from kgqa.errors import QuestionError

MAX_CHARS = 1_000_000


@click.command("explain")
@click.argument("query", required=False)
@graph_options
@setting_option("graph.schema", "--schema", metavar="NAME|FILE")
def command(query: str | None, graph_path: str | None, **options) -> None:
    """Say in plain words what a SPARQL QUERY asks for. No model is used.

    QUERY is SPARQL, or the name of a file with it; without it standard input is read, where the output of
    `kgqa ask --json` will do as well. Names come from the graph.

    \b
    Example:
      kgqa ask "Who directed the film Parasite?" --show-sparql | kgqa explain
    """
    from kgqa.graph.opening import open_graph_of
    from kgqa.graph.query.explain import explain
    from kgqa.methods.ask import cache_of
    from kgqa.words import safe_text

    settings = settings_from(options, graph_path)
    sparql = _sparql(query)
    with open_graph_of(settings, cache=cache_of(settings)) as graph:
        print(safe_text(explain(graph, sparql)))


def _sparql(query: str | None) -> str:
    if query is None or query == "-":
        text = sys.stdin.read(MAX_CHARS + 1)
    elif "{" in query:
        text = query
    else:
        try:
            with open(query, encoding="utf-8") as file:
                text = file.read(MAX_CHARS + 1)
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise QuestionError(
                f"{query[:100]} is neither a SPARQL query nor a file that can be read: {error}"
            ) from error
    if len(text) > MAX_CHARS:
        raise QuestionError(f"The query is longer than {MAX_CHARS:,} characters.")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(data, dict) and isinstance(data.get("sparql"), str) and data["sparql"]:
        return data["sparql"]
    raise QuestionError("This JSON has no query in it: the question was not answered from the graph.")
