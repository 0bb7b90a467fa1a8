"""`kgqa graph info`: size, relations, schema and fingerprint of a graph."""

from __future__ import annotations

from pathlib import Path
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
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.names.reading import NameReader
from kgqa.graph.opening import open_graph_of
from kgqa.methods.ask import cache_of
from kgqa.text.words import clean


@click.command("info")
@click.argument("folder", required=False)
@graph_options
@setting_option("graph.schema")
@click.option(
    "--relations",
    "max_relations",
    type=whole(0),
    default=10,
    show_default=True,
    help="maximum number of relations to list",
)
@JSON
@verbosity_options
def info(folder: str | None, graph_path: str | None, max_relations: int, as_json: bool, **options: Any) -> None:
    """Show the number of triples, relations and labelled entities of a graph, its schema and fingerprint.

    \b
    Example:
      kgqa graph info mygraph/
    """
    settings = settings_from(options, folder or graph_path)
    with open_graph_of(settings, cache=cache_of(settings)) as graph:
        share = NameReader(graph.store, graph.schema, graph.view, lambda: graph.timeout).share()
        relations = {r: n for r, n in graph.tables.relations.items() if not graph.tables.is_noise(r)}
        iris = [entity.iri for entity in graph.view]
        folder_of = GraphFolder(Path(graph.store.location))
        files = folder_of.meta().files if not graph.store.capabilities.remote and folder_of.exists() else ()
        facts: dict[str, Any] = {
            "place": graph.store.location,
            "graphs": iris,
            "triples": graph.store.triples_of(iris),
            "relations": len(graph.tables.relations),
            "explored_relations": len(relations),
            "labelled_entities": share.labelled if share else None,
            "subjects": share.subjects if share else None,
            "labels": {graph.schema.short_id(iri): n for iri, n in share.predicates.items()} if share else {},
            "names": graph.names.count,
            "mediator_relations": sum(
                extent != "none" for side in graph.tables.mediators.leads.values() for extent in side.values()
            ),
            "schema": graph.schema.name,
            "walks": graph.paths.walk_rule,
            "settings": graph.settings,
            "fingerprint": graph.store.fingerprint_of(iris),
            "files": [file.path for file in files],
            "notes": list(graph.tables.notes),
            "top_relations": [
                {"id": graph.schema.short_id(r), "edges": n} for r, n in list(relations.items())[:max_relations]
            ],
        }
        notice, notes = graph.store.notice(), graph.tables.notes
        named = share.text(graph.schema) if share else _count_text(None)
    if notice:
        say(f"kgqa: {notice}")
    lines = [
        f"{clean(facts['place'])}: {graph.schema.title}, walks {facts['walks']}",
        f"  triples            {_count_text(facts['triples'])}",
        f"  relations          {facts['relations']:,} ({facts['explored_relations']:,} of them explored)",
        f"  subjects           {clean(named)}",
        f"  names and aliases  {facts['names']:,}",
        f"  mediator relations {facts['mediator_relations']:,}",
        f"  fingerprint        {facts['fingerprint']}",
        *(f"    {item['edges']:>10,}  {clean(item['id'])}" for item in facts["top_relations"]),
    ]
    print_result(as_json, facts, lines)
    for note in () if as_json else notes:
        say(f"kgqa: {clean(note)}")


def _count_text(count: int | None) -> str:
    return "unknown (counting took too long)" if count is None else f"{count:,}"
