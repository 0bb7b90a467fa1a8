"""`kgqa explain`: explain a SPARQL query, or an answer and its steps, in plain words."""

from __future__ import annotations

import json
from typing import Any

import click

from kgqa.cli.options import graph_options, say, setting_option, settings_from
from kgqa.errors import QuestionError
from kgqa.text.words import safe_text

MAX_CHARS = 1_000_000


@click.command("explain")
@click.argument("query", required=False)
@graph_options
@setting_option("graph.schema")
def command(query: str | None, graph_path: str | None, **options: Any) -> None:
    """Explain in plain words what a SPARQL QUERY asks for, without a language model.

    QUERY is the text of a SPARQL query, or a file with one. Without QUERY, the query is read from standard input, which
    may also be the output of `kgqa ask --json`. Names of entities are read from the graph; --graph names the graph that
    was asked. Of an answer over text, the claims and their quotes are explained, too; with `kgqa ask --json --trace`,
    also the steps of methods over text and of methods that act in turns.

    \b
    Examples:
      kgqa ask "Who directed the film Parasite?" --show-sparql | kgqa explain
      kgqa ask --graph corpus/ --method tog3 --json --trace "Where was she born?" > answer.json
      kgqa explain answer.json --graph corpus/
    """
    from kgqa.graph.opening import open_graph_of
    from kgqa.graph.query.explain import explain, is_of_graph
    from kgqa.methods.ask import cache_of

    settings = settings_from(options, graph_path)
    sparql, about = _read(query)
    if about:
        print(safe_text(about))
    if sparql:
        with open_graph_of(settings, cache=cache_of(settings)) as graph:
            words = explain(graph, sparql)
            if not is_of_graph(graph, sparql):
                place = "this graph" if settings.graph.path else "the demo graph"
                say(f"kgqa: Nothing in this query is in {place}; its names come from the query. Add --graph GRAPH.")
            print(("\n" if about else "") + safe_text(words))


def _read(query: str | None) -> tuple[str, str]:
    """Return the query to explain, and the explanation of an answer; either may be empty."""
    from kgqa.report.text.explanation import explanation

    text = query or ""
    if "{" not in text:
        try:
            with click.open_file("-" if query is None else query, encoding="utf-8") as file:
                text = file.read(MAX_CHARS + 1)
        except (OSError, ValueError) as error:
            source = text[:100] or "The input"
            raise QuestionError(f"{source} is neither a SPARQL query nor a readable file: {error}") from error
    if not text.strip():
        raise QuestionError(
            "No query was given: the input is empty.",
            "If it comes from `kgqa ask --show-sparql`, the message of that command says why there is no query",
        )
    if len(text) > MAX_CHARS:
        raise QuestionError(f"The query has more than {MAX_CHARS:,} characters.", "Give a shorter query.")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text, ""
    sparql = data.get("sparql") if isinstance(data, dict) else None
    about = explanation(data) if isinstance(data, dict) else ""
    if isinstance(sparql, str) and sparql:
        return sparql, about
    if about:
        return "", about
    raise QuestionError("This JSON contains no query, because the question was not answered from the graph.")
