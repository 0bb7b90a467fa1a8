"""`kgqa graph load`: RDF files into a graph folder or into a server."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kgqa.cli.options import JSON, say, setting_option, verbosity, verbosity_options


@click.command("load")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--into",
    "place",
    required=True,
    metavar="FOLDER|URL",
    help="Graph folder, made if it is not there; or the address of a SPARQL server that may be written to.",
)
@click.option(
    "--graph-iri",
    metavar="IRI",
    help="On a server: the graph to write to, and the only one. [the one that is there, else urn:kgqa:graph]",
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
    "--schema", metavar="NAME|FILE", help="Schema to keep with a folder: a bundled name or a TOML file. [detected]"
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
    place: str,
    graph_iri: str | None,
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
    """Add the triples of RDF FILES to a graph folder or a server.

    N-Triples, N-Quads, Turtle, TriG, N3, RDF/XML, JSON-LD, TriX and HexTuples, each also as .gz, .bz2 or .xz.
    Loading a file again changes nothing. All files are judged before anything changes; an error in one of them leaves
    the graph as it was. Into a folder all files are added or none; --walks and --mediator-hop are kept with it as its
    own settings.

    A server started by `kgqa virtuoso start` is loaded in bulk. Any other has to take SPARQL updates: set
    endpoint.user, and the password in KGQA_ENDPOINT_PASSWORD.

    \b
    Examples:
      kgqa graph load triples.nt.gz more.ttl --into mygraph/
      kgqa graph load dump.nt.gz --into mygraph/ --on-error skip
      kgqa graph load --resume --into mygraph/
      kgqa graph load slice.nt.gz --into http://127.0.0.1:8890/sparql --graph-iri http://freebase.com
    """
    from kgqa.graph.store import is_address

    if discard and (files or resume or restart):
        raise click.UsageError("--discard stands alone.")
    if resume and (files or restart):
        raise click.UsageError(
            "--resume goes on with the files of the interrupted load: give neither files nor --restart."
        )
    if not files and not resume and not discard:
        raise click.UsageError("Give at least one RDF file, or --resume.")
    bars = Bars(sum(file.stat().st_size for file in files if file.is_file()))
    common: dict[str, Any] = {"on_error": on_error, "format": format_, "resume": resume, "restart": restart}
    kept = {"walks": graph__walks, "mediator_hop": explore__mediator_hop}
    if is_address(place):
        from kgqa.cli.graph.load_server import discard_at_server, load_into_server

        if schema or any(kept.values()):
            raise click.UsageError(
                "A server keeps no schema and no rules. Give them when you ask (kgqa ask --schema ... --walks ... "
                "--mediator-hop ...), or set graph.schema, graph.walks and explore.mediator_hop in kgqa.toml."
            )
        if discard:
            discard_at_server(place)
        else:
            load_into_server(files, place, graph_iri, bars, as_json, **common)
        return
    if graph_iri:
        raise click.UsageError("--graph-iri is for servers: a folder keeps the named graphs of its files.")
    if discard:
        _discard(Path(place))
    else:
        settings = {name: value for name, value in kept.items() if value}
        _load_into_folder(files, Path(place), bars, as_json, schema=schema, settings=settings, **common)


def _discard(folder: Path) -> None:
    from kgqa.graph.embedded.loading import discard_interrupted

    done = discard_interrupted(folder)
    say("The interrupted load was thrown away." if done else f"There is no interrupted load at {folder}.")


def _load_into_folder(
    files: tuple[Path, ...], folder: Path, bars: Bars, as_json: bool, *, schema: str | None, **options: Any
) -> None:
    from kgqa.graph.embedded.loading import load_graph
    from kgqa.graph.opening import open_graph
    from kgqa.methods.ask import cache_of
    from kgqa.settings import resolve

    settings = resolve()
    schema_name = _keep_schema(schema, folder)
    try:
        memory = settings["graph.load_memory"]
        report = load_graph(folder, files, progress=bars, schema=schema_name, memory=memory and memory << 20, **options)
    except KeyboardInterrupt:
        bars.close()
        say(
            f"\nkgqa: Stopped. What was in {folder} before is unchanged. "
            f"Go on: kgqa graph load --resume --into {folder}"
        )
        raise KeyboardInterrupt("said") from None
    finally:
        bars.close()
    with open_graph(folder, cache=cache_of(settings)) as graph:
        facts = {"schema": graph.schema.name, "names": graph.names.count, "folder": str(folder)}
        print_report(report, str(folder), graph.schema.title, facts, as_json)


def _keep_schema(schema: str | None, folder: Path) -> str | None:
    """A bundled schema's name; a schema file is checked and copied into the graph's folder, under a name of its
    content, so that the copy in use stays if the load comes to nothing.
    """
    if schema is None:
        return None
    from kgqa.graph.embedded.folder import write_atomically
    from kgqa.graph.embedded.loading import make_folder
    from kgqa.schema import BUNDLED, load_schema

    loaded = load_schema(schema)
    if schema in BUNDLED:
        return schema
    name = f"schema-{loaded.digest}.toml"
    write_atomically(make_folder(folder).path / name, loaded.source)
    return name


def print_report(report: Any, place: str, schema: str, facts: dict[str, Any], as_json: bool) -> None:
    """Print what a load did.

    Args:
        report: a LoadReport. place: what was loaded into. schema: its title.
        facts: what the JSON has on top of the report.
    """
    from kgqa.answer_json import json_text
    from kgqa.model import to_json
    from kgqa.words import clean

    if as_json:
        print(json_text({**to_json(report), **facts}, indent=2))
        return
    if report.triples is None:
        print(f"{report.lines:,} lines loaded in {report.seconds:.1f} s; {place} was not counted in time.")
    else:
        added = "An unknown number of" if report.added is None else f"{report.added:,}"
        print(
            f"{added} triples added from {report.lines:,} lines in {report.seconds:.1f} s; "
            f"{place} now has {report.triples:,}."
        )
    names = f" Names indexed: {facts['names']:,}." if "names" in facts else ""
    print(f"Schema: {schema}.{names} Fingerprint: {report.fingerprint or 'none'}")
    if report.malformed:
        print(f"{report.malformed:,} malformed lines were left out:")
        for example in report.examples[:5]:
            print(f"  {clean(example.file)}, line {example.line}: {clean(example.message)}")
        if report.malformed > 5:
            print("  ... (--json gives more)")


class Bars:
    """Progress bars over the bytes of the files, shown on a terminal only: a server's files are judged in a first
    round, and each round has a bar of its own.

    Args:
        total: bytes of all files, 0 where that is not known.
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._bar: Any = None
        self._round = ""
        self._before = 0
        self._file = ""
        self._in_file = 0

    def __call__(self, progress: Any) -> None:
        if verbosity() < 0:
            return
        if progress.file != self._file:
            self._before += self._in_file
            self._file, self._in_file = progress.file, 0
        if self._bar is None:
            from tqdm import tqdm

            self._bar = tqdm(total=self._total or None, unit="B", unit_scale=True, disable=None, file=sys.stderr)
        if progress.stage == "finishing":
            self._bar.set_description("finishing")
            return
        self._in_file = progress.bytes_done
        self._bar.set_description(f"{progress.file[:30]}: {progress.lines:,} lines")
        self._bar.update(max(0, self._before + self._in_file - self._bar.n))

    def next_round(self) -> None:
        """Begin anew with the first file."""
        self.close()
        self._before = self._in_file = 0
        self._file = ""

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
