"""`kgqa graph search`: find entities by name or alias."""

from __future__ import annotations

from typing import Any

import click

from kgqa.cli.options import (
    JSON,
    graph_options,
    print_result,
    say,
    setting_option,
    settings_from,
    verbosity_options,
    whole,
)
from kgqa.graph.names.index import NameMatch
from kgqa.graph.opening import open_graph_of
from kgqa.methods.ask import cache_of
from kgqa.model import Named
from kgqa.search.topics import search_similar
from kgqa.text.words import clean, display_name


@click.command("search")
@click.argument("text")
@graph_options
@setting_option("graph.schema")
@click.option("--limit", type=whole(1), default=20, show_default=True, help="maximum number of entities")
@JSON
@verbosity_options
def search(text: str, graph_path: str | None, limit: int, as_json: bool, **options: Any) -> int:
    """Find entities whose name or alias matches TEXT, best first; the last word of TEXT may be incomplete.

    If there are none, entities with a similar name are found.

    \b
    Example:
      kgqa graph search "alta verapaz" --graph mygraph/
    """
    settings = settings_from(options, graph_path)
    with open_graph_of(settings, cache=cache_of(settings)) as graph:
        matches = search_similar(graph, text, limit=limit)
        named = graph.named(match.entity for match in matches)
        empty = not matches and not graph.names.count
    data = [
        {"id": n.id, "name": n.name, "iri": m.entity.iri, "matched": m.name, "kind": m.kind, "exact": m.exact}
        for n, m in zip(named, matches)
    ]
    print_result(as_json, data, map(_line, named, matches))
    if not matches and not as_json:
        say(f"kgqa: {'the graph has no names' if empty else 'no entity has a name like that'}.")
    return 0 if matches else 3


def _line(item: Named, match: NameMatch) -> str:
    also = f"  (as “{match.name}”)" if match.name != item.name and match.kind == "alias" else ""
    # show the IRI of an entity without a short id, because --topic accepts the IRI
    ident = f"  <{clean(match.entity.iri)}>" if item.id == match.entity.iri else ""
    return display_name(item) + ident + also
