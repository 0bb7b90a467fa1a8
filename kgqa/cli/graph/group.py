"""`kgqa graph`: load, look at and search a graph."""

from __future__ import annotations

from typing import Any

import click

from kgqa.cli.graph.fictionalise import fictionalise
from kgqa.cli.graph.load import load
from kgqa.cli.options import JSON, graph_options, say, setting_option, settings_from, verbosity_options


@click.group("graph")
def command() -> None:
    """Load a graph into a folder or a server, look at it, search it, make a fictional one of it."""


command.add_command(load)
command.add_command(fictionalise)


@command.command("info")
@click.argument("folder", required=False)
@graph_options
@setting_option("graph.schema", "--schema", metavar="NAME|FILE")
@click.option(
    "--relations", "most", type=click.IntRange(min=0), default=10, show_default=True, help="How many relations to list."
)
@JSON
@verbosity_options
def info(folder: str | None, graph_path: str | None, most: int, as_json: bool, **options: Any) -> None:
    """What is in a graph: triples, relations, labelled entities, schema, fingerprint.

    \b
    Example:
      kgqa graph info mygraph/
    """
    from kgqa.answer_json import json_text
    from kgqa.words import clean

    with _open(folder or graph_path, options) as graph:
        relations = {r: n for r, n in graph.relations.items() if not graph.is_noise(r)}
        files = getattr(graph.store, "meta", None)
        found = {
            "place": graph.store.location,
            "graphs": [entity.iri for entity in graph.view],
            "triples": graph.store.triples,
            "relations": len(graph.relations),
            "explored_relations": len(relations),
            "labelled_entities": _labelled(graph),
            "names": graph.names.count,
            "mediator_relations": sum(
                extent != "none" for side in graph.mediators.leads.values() for extent in side.values()
            ),
            "schema": graph.schema.name,
            "walks": graph.walks,
            "settings": graph.settings,
            "fingerprint": graph.store.fingerprint,
            "files": [file["path"] for file in files.files] if files else [],
            "notes": list(graph.notes),
            "top_relations": [{"id": graph.schema.short_id(r), "edges": n} for r, n in list(relations.items())[:most]],
        }
        notice, notes = graph.store.notice(), graph.notes
    if notice:
        say(f"kgqa: {notice}")
    if as_json:
        print(json_text(found, indent=2))
        return
    print(f"{clean(found['place'])}: {graph.schema.title}, walks {found['walks']}")
    print(f"  triples            {_counted(found['triples'])}")
    print(f"  relations          {found['relations']:,} ({found['explored_relations']:,} of them explored)")
    print(f"  labelled entities  {_counted(found['labelled_entities'])}")
    print(f"  names and aliases  {found['names']:,}")
    print(f"  mediator relations {found['mediator_relations']:,}")
    print(f"  fingerprint        {found['fingerprint']}")
    for item in found["top_relations"]:
        print(f"    {item['edges']:>10,}  {clean(item['id'])}")
    for note in notes:
        say(f"kgqa: {clean(note)}")


def _labelled(graph: Any) -> int | None:
    from kgqa.errors import StoreTimeout

    try:
        return graph.names.labelled
    except StoreTimeout:  # a server has to go through all of them
        return None


def _counted(count: int | None) -> str:
    return "not counted in time" if count is None else f"{count:,}"


@command.command("search")
@click.argument("text")
@graph_options
@setting_option("graph.schema", "--schema", metavar="NAME|FILE")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@JSON
@verbosity_options
def search(text: str, graph_path: str | None, limit: int, as_json: bool, **options: Any) -> int:
    """Entities whose name or alias matches TEXT, best first. The last word may be begun only.

    \b
    Example:
      kgqa graph search "alta verapaz" --graph mygraph/
    """
    from kgqa.answer_json import json_text
    from kgqa.words import clean, display_name

    with _open(graph_path, options) as graph:
        matches = graph.search(text, limit=limit)
        named = graph.named(match.entity for match in matches)
        empty = not matches and not graph.names.count
    if as_json:
        data = [
            {"id": n.id, "name": n.name, "iri": m.entity.iri, "matched": m.name, "kind": m.kind, "exact": m.exact}
            for n, m in zip(named, matches)
        ]
        print(json_text(data, indent=2))
    else:
        for item, match in zip(named, matches):
            also = f"  (as “{match.name}”)" if match.name != item.name and match.kind == "alias" else ""
            # where no short id exists the IRI is what --topic takes, and what one searches for
            ident = f"  <{clean(match.entity.iri)}>" if item.id == match.entity.iri else ""
            print(display_name(item) + ident + also)
        if not matches:
            say(f"kgqa: {'the graph is empty' if empty else 'nothing has a name like that'}.")
    return 0 if matches else 3


def _open(folder: str | None, options: dict[str, Any]):
    from kgqa.graph.opening import open_graph_of

    settings = settings_from(options, folder)
    return open_graph_of(settings, cache=_cache(settings))


def _cache(settings=None):
    from kgqa.methods.ask import cache_of
    from kgqa.settings import resolve

    return cache_of(settings or resolve())
