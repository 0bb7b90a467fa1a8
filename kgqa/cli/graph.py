"""`kgqa graph`: load, look at and search a graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import (
    graph_options,
    JSON,
    say,
    setting_option,
    settings_from,
    verbosity,
    verbosity_options,
)


@click.group("graph")
def command() -> None:
    """Load a graph into a folder, look at it, search it."""


@command.command("load")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--into", "folder", required=True, type=click.Path(path_type=Path), help="Graph folder; made if it is not there."
)
@click.option(
    "--on-error",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="A malformed line: give up and change nothing, or leave it out and count it.",
)
@click.option(
    "--format", "format_", metavar="ENDING", help="RDF format where the file name does not tell: nt, nq, ttl, ..."
)
@click.option(
    "--schema", metavar="NAME|FILE", help="Schema to keep with the graph: a bundled name or a TOML file. [detected]"
)
@setting_option("graph.walks", "--walks")
@setting_option("explore.mediator_hop", "--mediator-hop")
@click.option("--resume", is_flag=True, help="Go on with an interrupted load.")
@click.option("--restart", is_flag=True, help="Throw an interrupted load away and load FILES anew.")
@click.option("--discard", is_flag=True, help="Throw an interrupted load away and do nothing else.")
@JSON
@verbosity_options
def load(
    files: tuple[Path, ...],
    folder: Path,
    on_error: str,
    format_: str | None,
    schema: str | None,
    graph__walks: str | None,
    explore__mediator_hop: str | None,
    resume: bool,
    restart: bool,
    discard: bool,
    as_json: bool,
) -> None:
    """Add the triples of RDF FILES to a graph folder.

    N-Triples, N-Quads, Turtle, TriG, N3, RDF/XML, JSON-LD, TriX and HexTuples, each also as .gz, .bz2 or .xz.
    Loading a file again changes nothing. All files are added or, on an error, none: what was there before
    stays as it is. --walks and --mediator-hop are kept with the graph as its own settings.

    \b
    Examples:
      kgqa graph load triples.nt.gz more.ttl --into mygraph/
      kgqa graph load dump.nt.gz --into mygraph/ --on-error skip
      kgqa graph load --resume --into mygraph/
    """
    from kgqa.graph.bulk import discard_interrupted, load_files
    from kgqa.graph.opening import open_graph

    if discard:
        if files or resume or restart:
            raise click.UsageError("--discard stands alone.")
        done = discard_interrupted(folder)
        say("The interrupted load was thrown away." if done else f"There is no interrupted load at {folder}.")
        return
    if resume and (files or restart):
        raise click.UsageError(
            "--resume goes on with the files of the interrupted load: give neither files nor --restart."
        )
    if not files and not resume:
        raise click.UsageError("Give at least one RDF file, or --resume.")
    kept = {"walks": graph__walks, "mediator_hop": explore__mediator_hop}
    schema_name = _keep_schema(schema, folder)
    bar = _Bar(sum(f.stat().st_size for f in files if f.is_file()))
    try:
        report = load_files(
            folder,
            files,
            on_error=on_error,  # type: ignore[arg-type]
            progress=bar,
            format=format_,
            resume=resume,
            restart=restart,
            schema=schema_name,
            settings={name: value for name, value in kept.items() if value},
        )
    except KeyboardInterrupt:
        bar.close()
        say(
            f"\nkgqa: Stopped. What was in {folder} before is unchanged. "
            f"Go on: kgqa graph load --resume --into {folder}"
        )
        raise KeyboardInterrupt("said") from None
    finally:
        bar.close()
    with open_graph(folder, cache=_cache()) as graph:
        names = graph.names.count
        _print_load(report, graph, names, folder, as_json)


def _keep_schema(schema: str | None, folder: Path) -> str | None:
    """A bundled schema's name; a schema file is checked and copied into the graph's folder, under a name of its
    content, so that the copy in use stays if the load comes to nothing."""
    if schema is None:
        return None
    from kgqa.graph.bulk import make_folder
    from kgqa.schema import BUNDLED, load_schema

    loaded = load_schema(schema)
    if schema in BUNDLED:
        return schema
    name = f"schema-{loaded.digest}.toml"
    (make_folder(folder).path / name).write_text(loaded.source, encoding="utf-8")
    return name


class _Bar:
    """A progress bar over the bytes of the files. It shows itself on a terminal only."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Any = None
        self._before = 0
        self._file = ""
        self._in_file = 0

    def __call__(self, progress) -> None:
        if verbosity() < 0:
            return
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=self._total or None, unit="B", unit_scale=True, disable=None, file=sys.stderr)
        if progress.file != self._file:
            self._before += self._in_file
            self._file, self._in_file = progress.file, 0
        if progress.stage == "finishing":
            self._bar.set_description("finishing")
            return
        self._in_file = progress.bytes_done
        self._bar.set_description(f"{progress.file[:30]}: {progress.lines:,} lines")
        self._bar.update(max(0, self._before + self._in_file - self._bar.n))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _print_load(report, graph, names: int, folder: Path, as_json: bool) -> None:
    from kgqa.model import to_json
    from kgqa.report.answer import json_text
    from kgqa.words import clean

    if as_json:
        print(
            json_text({**to_json(report), "schema": graph.schema.name, "names": names, "folder": str(folder)}, indent=2)
        )
        return
    print(
        f"{report.added:,} triples added from {report.lines:,} lines in {report.seconds:.1f} s; "
        f"{folder} now has {report.triples:,}."
    )
    print(f"Schema: {graph.schema.title}. Names indexed: {names:,}. Fingerprint: {report.fingerprint}")
    if report.malformed:
        print(f"{report.malformed:,} malformed lines were left out:")
        for example in report.examples[:5]:
            print(f"  {clean(example.file)}, line {example.line}: {clean(example.message)}")
        if report.malformed > 5:
            print("  ... (--json gives more)")


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
    from kgqa.report.answer import json_text
    from kgqa.words import clean

    with _open(folder or graph_path, options) as graph:
        relations = {r: n for r, n in graph.relations.items() if not graph.schema.is_noise(r)}
        files = getattr(graph.store, "meta", None)
        found = {
            "place": graph.store.place,
            "graphs": [entity.iri for entity in graph.view],
            "triples": graph.store.triples,
            "relations": len(graph.relations),
            "explored_relations": len(relations),
            "labelled_entities": graph.names.labelled,
            "names": graph.names.count,
            "mediator_relations": sum(
                extent != "none" for side in graph.mediators.leads.values() for extent in side.values()
            ),
            "schema": graph.schema.name,
            "walks": graph.walks,
            "settings": graph.settings,
            "fingerprint": graph.store.fingerprint,
            "files": [file["path"] for file in files.files] if files else [],
            "top_relations": [{"id": graph.schema.short_id(r), "edges": n} for r, n in list(relations.items())[:most]],
        }
        notice = graph.store.notice()
    if notice:
        say(f"kgqa: {notice}")
    if as_json:
        print(json_text(found, indent=2))
        return
    print(f"{clean(found['place'])}: {graph.schema.title}, walks {found['walks']}")
    triples = "not counted in time" if found["triples"] is None else f"{found['triples']:,}"
    print(f"  triples            {triples}")
    print(f"  relations          {found['relations']:,} ({found['explored_relations']:,} of them explored)")
    print(f"  labelled entities  {found['labelled_entities']:,}")
    print(f"  names and aliases  {found['names']:,}")
    print(f"  mediator relations {found['mediator_relations']:,}")
    print(f"  fingerprint        {found['fingerprint']}")
    for item in found["top_relations"]:
        print(f"    {item['edges']:>10,}  {clean(item['id'])}")


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
    from kgqa.report.answer import json_text
    from kgqa.words import clean, display_name

    with _open(graph_path, options) as graph:
        matches = graph.search(text, limit=limit)
        named = graph.named(match.entity for match in matches)
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
            what = "nothing has a name like that" if graph.names.count else "the graph is empty"
            say(f"kgqa: {what}.")
    return 0 if matches else 3


def _open(folder: str | None, options: dict[str, Any]):
    from kgqa.graph.opening import open_graph_of

    settings = settings_from(options, folder)
    return open_graph_of(settings, cache=_cache(settings))


def _cache(settings=None):
    from kgqa.methods.ask import cache_of
    from kgqa.settings import resolve

    return cache_of(settings or resolve())
