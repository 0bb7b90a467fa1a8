"""`kgqa graph load`: load RDF files into a graph folder or a server."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from msgspec import to_builtins

from kgqa.cli.bars import StageBar
from kgqa.cli.options import (
    JSON,
    check_usage,
    print_result,
    say,
    setting_option,
    settings_from,
    stop_message,
    verbosity_options,
)
from kgqa.errors import LoadError, PartialResult, QueryRejected, StoreBusy, StoreError
from kgqa.graph.detection import default_view, load_warnings, named_graphs
from kgqa.graph.embedded.loading import discard_interrupted
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.reading import NameReader
from kgqa.graph.opening import is_foreign, load_into_folder, open_graph, open_store
from kgqa.graph.rdf.files import COMPRESSED, FORMATS
from kgqa.graph.store import LoadReport, OnError, Progress, is_address
from kgqa.methods.ask import cache_of
from kgqa.settings.values import resolve
from kgqa.text.words import clean, counted
from kgqa.virtuoso.graph_loading import discard_load, load_into_url

MAX_INPUT_BYTES = 64 << 30
"""Most bytes that are read from standard input."""
RELEASE_SECONDS = 10.0
NAMES_SECONDS = 60.0
"""Most seconds for each query that counts named subjects."""


@click.command("load")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--into",
    "target",
    required=True,
    metavar="FOLDER|URL|NAME:REST",
    help="graph folder, created if needed, URL of a SPARQL endpoint that accepts updates, or NAME:REST for a store of "
    "another package",
)
@click.option(
    "--graph-iri",
    metavar="IRI",
    help="on a server: the graph to write to. [the only graph on the server, else urn:kgqa:graph]",
)
@click.option(
    "--on-error",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="after a malformed line: `fail` changes nothing, `skip` loads all other lines",
)
@click.option(
    "--format", "format_", metavar="ENDING", help="RDF format of files without a file name extension: nt, nq, ttl ..."
)
@click.option(
    "--schema", metavar="NAME|FILE", help="schema to store in the folder: a bundled name or a TOML file. [detected]"
)
@setting_option("graph.walks")
@setting_option("explore.mediator_hop")
@click.option("--resume", is_flag=True, help="resume an interrupted load")
@click.option("--restart", is_flag=True, help="discard an interrupted load and load FILES")
@click.option("--discard", is_flag=True, help="discard an interrupted load, and load nothing")
@JSON
@verbosity_options
def load(
    files: tuple[Path, ...],
    target: str,
    graph_iri: str | None,
    on_error: OnError,
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

    N-Triples, N-Quads, Turtle, TriG, N3, RDF/XML and JSON-LD, each also as .gz, .bz2 or .xz.
    Loading a file twice changes nothing. All files are checked first, and an error in any file leaves the graph
    unchanged. A graph folder gets all files or none, and stores the values of --walks and --mediator-hop as settings.

    With `-` instead of FILES, standard input is read; name its format with --format. An interrupted load of it is not
    resumed.

    If the server was started by `kgqa virtuoso start`, files are loaded in bulk. Any other server must accept SPARQL
    updates: set endpoint.user in kgqa.toml, and the password in the environment variable KGQA_ENDPOINT_PASSWORD.

    \b
    Examples:
      kgqa graph load triples.nt.gz more.ttl --into mygraph/
      kgqa graph load dump.nt.gz --into mygraph/ --on-error skip
      kgqa graph load --resume --into mygraph/
      zstd -dc dump.nt.zst | kgqa graph load - --format nt --into mygraph/
      kgqa graph load slice.nt.gz --into http://127.0.0.1:8890/sparql --graph-iri http://freebase.com
    """
    stdin = Path("-") in files
    options: dict[str, Any] = {
        "on_error": on_error,
        "format": None if stdin else format_,
        "resume": resume,
        "restart": restart,
    }
    given = {"walks": graph__walks, "mediator_hop": explore__mediator_hop}
    kept = {name: value for name, value in given.items() if value}
    remote, foreign = is_address(target), is_foreign(target)
    check_usage(
        (
            discard and (files or resume or restart),
            "--discard cannot be combined with FILES, --resume or --restart.",
        ),
        (
            resume and (files or restart),
            "--resume continues with the files of the interrupted load. Omit FILES and --restart.",
        ),
        (not files and not resume and not discard, "Give at least one RDF file, or --resume."),
        (stdin and len(files) > 1, "Standard input (-) cannot be combined with other files. Load them one by one."),
        (stdin and not format_, "Standard input (-) has no file name extension. Name its format: --format nt, ttl ..."),
        (
            stdin and format_ and not _is_known(format_),
            f"Unknown RDF format {format_}. Known: {', '.join(each[1:] for each in FORMATS)}, each also with "
            f"{', '.join(COMPRESSED)}.",
        ),
        (
            remote and (schema or kept),
            "--schema, --walks and --mediator-hop cannot be stored on a server. Give these options to kgqa ask, or "
            "set graph.schema, graph.walks and explore.mediator_hop in kgqa.toml.",
        ),
        (
            foreign and (graph_iri or format_ or schema or kept or resume or restart or discard),
            f"{target} is a store of another package, which takes FILES and --on-error. Omit all other options.",
        ),
        (
            graph_iri and not remote,
            "--graph-iri is only for servers: a folder keeps the named graphs of the loaded files. Omit --graph-iri.",
        ),
    )
    with ExitStack() as closing:
        if stdin:
            files = (closing.enter_context(spooled_input(str(format_))),)
        try:
            if discard:
                _discard(target, remote=remote)
            elif remote:
                _load_into_url(files, target, graph_iri, as_json, **options)
            elif foreign:
                _load_into_store(files, target, on_error, as_json)
            else:
                _load_into_folder(
                    files, Path(target), as_json, resumable=not stdin, schema=schema, settings=kept, **options
                )
        except KeyboardInterrupt:
            if stdin and not foreign:
                _discard_stopped(target, remote=remote)
            raise


def _is_known(format_: str) -> bool:
    ending = f".{format_.lower().lstrip('.')}"
    return any(ending == f"{each}{packed}" for each in FORMATS for packed in ("", *COMPRESSED))


@contextmanager
def spooled_input(format_: str) -> Iterator[Path]:
    """Yield a temporary file with the content of standard input, because a load reads files more than once.

    Raises:
        LoadError: the input is larger than MAX_INPUT_BYTES.
        OSError: there is no space for it.
    """
    with TemporaryDirectory(prefix="kgqa-") as folder:
        file, total = Path(folder) / f"stdin.{format_.lower().lstrip('.')}", 0
        if sys.stdin.isatty():
            say("kgqa: Reading RDF from standard input; end with Ctrl-D.")
        with open(file, "wb") as out:
            while piece := sys.stdin.buffer.read(1 << 20):
                total += len(piece)
                if total > MAX_INPUT_BYTES:
                    raise LoadError(
                        f"Standard input has more than {MAX_INPUT_BYTES >> 30} GB.",
                        "Write it to a file, and load the file.",
                    )
                out.write(piece)
        yield file


def _discard(target: str, *, remote: bool) -> None:
    done = discard_load(target) if remote else discard_interrupted(Path(target))
    found = "The interrupted load was discarded."
    found += " Triples already loaded stay in the graph." if remote else ""
    say(found if done else f"There is no interrupted load at {target}.")


def _discard_stopped(target: str, *, remote: bool) -> None:
    """Discard the load of this process that Ctrl-C has stopped; its worker may hold the graph for a moment."""
    until = time.monotonic() + RELEASE_SECONDS
    while True:
        try:
            return _discard(target, remote=remote)
        except StoreBusy:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def _load_into_store(files: tuple[Path, ...], target: str, on_error: OnError, as_json: bool) -> None:
    with open_store(target, create=True) as store:
        if not store.capabilities.updates:
            raise QueryRejected(f"The store {target} accepts no data.", "Load into a graph folder: --into FOLDER")
        with LoadBars(files) as bars:
            report = store.load(files, on_error=on_error, progress=bars.show_load)
        store.publish()
    with open_graph(target, cache=cache_of(resolve())) as graph:
        _prepare(graph, target)
        facts = {"schema": graph.schema.name, "store": target, "warnings": _warnings(graph)}
        print_report(report, target, graph.schema.title, facts, as_json)


def _load_into_folder(files: tuple[Path, ...], folder: Path, as_json: bool, *, resumable: bool, **options: Any) -> None:
    settings = resolve()
    unchanged = f"{folder} is unchanged."
    unchanged += f" Resume: kgqa graph load --resume --into {folder}" if resumable else ""
    with stop_message(unchanged), LoadBars(files) as bars:
        report = load_into_folder(files, folder, progress=bars.show_load, **options)
    view, warnings = _too_many_graphs(folder)
    with open_graph(folder, view=view, cache=cache_of(settings)) as graph:
        names = _prepare(graph, folder)
        facts = {"schema": graph.schema.name, **names, "folder": str(folder)}
        facts["warnings"] = [*warnings, *_warnings(graph)]
        if share := NameReader(graph.store, graph.schema, graph.view, lambda: NAMES_SECONDS).share():
            facts["named"] = share.text(graph.schema)
        print_report(report, str(folder), graph.schema.title, facts, as_json)


def _prepare(graph: KnowledgeGraph, target: str | Path) -> dict[str, Any]:
    """Make the tables and the index of names, so that the first question does not wait for them.

    Returns:
        The number of names under `names`; nothing if the store fails.
    """
    with stop_message(f"{target} has the new triples. The first question makes its tables."), StageBar() as bar:
        bar("tables", 0, 2, "tables: relations and mediators")
        with suppress(StoreError):  # the triples are loaded: a question says what could not be read
            graph.tables.prepare()
            bar("tables", 1, 2, "tables: names")
            return {"names": graph.names.count}
    return {}


def _too_many_graphs(folder: Path) -> tuple[tuple[str, ...], list[str]]:
    """Return the first graphs of a folder with more graphs than one question may query, and a sentence about them."""
    with open_store(folder) as store:
        try:
            default_view(store)
        except PartialResult as error:
            graphs = named_graphs(store, complete=False)
            return graphs, [f"{error} The first {len(graphs)}: {', '.join(graphs)}"]
    return (), []


def _load_into_url(files: tuple[Path, ...], url: str, graph_iri: str | None, as_json: bool, **options: Any) -> None:
    settings = settings_from({}, url)
    with stop_message(), LoadBars(files) as bars:

        def notify(text: str) -> None:
            bars.close()
            say(f"kgqa: {text}")

        done = load_into_url(
            files,
            url,
            graph_iri=graph_iri,
            settings=settings,
            cache=cache_of(settings),
            progress=bars.show_load,
            notify=notify,
            **options,
        )
    facts = {"schema": done.schema.name, "url": url, "graph_iri": done.graph_iri, "bulk": done.names is not None}
    facts |= {} if done.names is None else {"names": done.names}
    facts |= {"named": done.share.text(done.schema)} if done.share else {}
    facts["warnings"] = list(done.warnings)
    print_report(done.report, f"<{done.graph_iri}>", done.schema.title, facts, as_json)
    if not as_json:
        print(f'Ask it: kgqa ask "..." --graph {url} --graph-iri {done.graph_iri}')


def _warnings(graph: KnowledgeGraph) -> list[str]:
    return load_warnings(graph.store, [node.iri for node in graph.view], graph.schema)


def print_report(report: LoadReport, target: str, schema: str, facts: dict[str, Any], as_json: bool) -> None:
    """Print the result of a load.

    Args:
        report: counts of lines and triples.
        target: the graph folder, or the graph on a server.
        schema: the title of the graph's schema.
        facts: additional entries for the JSON object; `warnings` are printed too.
        as_json: whether to print JSON.
    """
    added = "An unknown number of triples" if report.added is None else counted(report.added, "triple")
    lines_read = counted(report.lines, "line")
    counts = f"{added} added from {lines_read} in {report.seconds:.1f} s; {target} now has "
    if report.triples is None:
        counts = f"{lines_read} loaded in {report.seconds:.1f} s. The number of triples in {target} is "
    counts += "unknown, because counting took too long." if report.triples is None else f"{report.triples:,}."
    names = f" Names indexed: {facts['names']:,}." if "names" in facts else ""
    lines = [
        counts,
        *([clean(report.notice)] if report.notice else ()),
        f"Schema: {schema}.{names} Fingerprint: {report.fingerprint or 'none'}",
        *([f"{clean(facts['named'])}."] if facts.get("named") else ()),
        *(f"Warning: {clean(warning)}" for warning in [*_empty(report), *facts["warnings"]]),
        *([f"{counted(report.malformed, 'malformed line')} left out:"] if report.malformed else ()),
        *(f"  {clean(each.file)}, line {each.line}: {clean(each.message)}" for each in report.examples[:5]),
        *(["  ... (--json lists more)"] if report.malformed > 5 else ()),
    ]
    print_result(as_json, {**to_builtins(report), **facts}, lines)


def _empty(report: LoadReport) -> list[str]:
    if report.empty or report.lines or report.malformed:
        return [f"{name} contains no triples." for name in report.empty]
    return ["The files contain no triples."] if report.files > 1 else ["The file contains no triples."]


class LoadBars(StageBar):
    """Progress bars over the bytes of the files.

    A load into a server first checks all files (stage "reading"). Checking and loading each have their own bar.

    Args:
        files: the files to load; if empty, the total size is unknown.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        super().__init__(unit="B", unit_scale=True)
        self._total = sum(file.stat().st_size for file in files if file.is_file())
        self._bytes: dict[tuple[str, str], int] = {}

    def show_load(self, progress: Progress) -> None:
        """Show the progress of a load."""
        stage = "reading" if progress.stage == "reading" else "loading"
        self._bytes[stage, progress.file] = progress.bytes_done
        done = sum(count for (other, _), count in self._bytes.items() if other == stage)
        lines = f"{progress.file[:30]}: {progress.lines:,} lines"
        self(stage, done, self._total, "finishing" if progress.stage == "finishing" else lines)
