"""`kgqa corpus build | add`: read documents into a corpus."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kgqa.cli.bars import StageBar
from kgqa.cli.corpus.options import (
    CORPUS,
    EXIT_STOPPED,
    build_options,
    embedding_options,
    model_options,
    opened_tools,
    reading_options,
    writing_options,
)
from kgqa.cli.options import JSON, GroupedCommand, check_usage, print_result, say, stop_message, whole
from kgqa.corpus.building.options import BuildOptions
from kgqa.corpus.building.report import BuildReport
from kgqa.text.words import clean, counted

if TYPE_CHECKING:
    from kgqa.corpus.building.feeds import GivenFeed
    from kgqa.corpus.building.tools import Tools


@click.command("build", cls=GroupedCommand, heading="Documents")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--into", "folder", required=True, type=click.Path(path_type=Path), metavar="CORPUS", help="the corpus")
@click.option(
    "--preset",
    type=click.Choice(["tog3", "graphsearch"]),
    help="chunks, facts and communities as the method was published with; other options take precedence",
)
@click.option(
    "--triples",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="triples that were extracted elsewhere, in the format of HippoRAG; needs no model",
)
@click.option("--demo", is_flag=True, help="read the bundled demo documents")
@click.option(
    "--dataset",
    metavar="NAME:FILE",
    help="read the passages of a question set (see kgqa data list), such as musique:dev",
)
@click.option("--sample", type=whole(1), metavar="N", help="with --dataset: only the passages of N questions")
@click.option("--seed", type=whole(0), default=0, help="with --sample: seed of the sample. [0]")
@click.option(
    "--beside",
    metavar="GRAPH",
    help="link entities to those of this graph (folder or URL); questions then walk over both",
)
@click.option("--keep-missing", is_flag=True, help="keep documents whose file has vanished from a folder")
@reading_options
@click.option("--graph-url", metavar="URL", help="keep the graph on a SPARQL server; only for a new corpus")
@click.option("--vectors", metavar="URI", help="keep the vectors in a LanceDB database; only for a new corpus")
@model_options
@embedding_options
@JSON
@writing_options
def build(
    paths: tuple[Path, ...],
    folder: Path,
    preset: str | None,
    triples: Path | None,
    dataset: str | None,
    sample: int | None,
    seed: int,
    demo: bool,
    keep_missing: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Read the documents in PATHS into a corpus, or bring a corpus up to date.

    PATHS are folders and files: txt, md, html, pdf, docx, and passages as jsonl or json. Without PATHS, --triples and
    --dataset, the files of the last build are read again. What has not changed is not read again, and no model call is
    paid for twice: run the same command again after Ctrl-C or a crash. Documents whose file has vanished from a folder
    in PATHS are removed.

    \b
    Examples:
      kgqa corpus build docs/ --into corpus/
      kgqa corpus build docs/ --into corpus/ --llm openai:gpt-4.1-mini --max-cost 5
      kgqa corpus build --triples openie.json --into corpus/
      kgqa corpus build --dataset musique:dev --sample 100 --into corpus/
      kgqa corpus build docs/ --into corpus/ --beside mygraph/
      kgqa corpus build --dataset hotpotqa:dev --into corpus/ --preset tog3 --llm URL

    Exit codes: 0 complete, 1 error, 3 not complete (failed chunks, or the limit on costs), 130 Ctrl-C.
    """
    check_usage((sample and not dataset, "--sample needs --dataset."))
    community_size = apply_preset(preset, options) if preset else None
    chosen = build_options(options, prune=not keep_missing, community_size=community_size)
    given: dict[str, Any] = {"triples": triples}
    if dataset:
        given["given"] = [dataset_feed(dataset, sample, seed)]
    return run_build(folder, (*paths, *([demo_documents()] if demo else ())), chosen, options, given, as_json)


@click.command("add", cls=GroupedCommand, heading="Documents")
@CORPUS
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@reading_options
@model_options
@embedding_options
@JSON
@writing_options
def add(folder: Path, paths: tuple[Path, ...], as_json: bool, **options: Any) -> int:
    """Add the documents in PATHS to CORPUS, with the options that it was built with.

    Documents that were removed by `kgqa corpus remove` are added again. No document is removed.

    \b
    Example:
      kgqa corpus add corpus/ report.pdf notes/
    """
    chosen = build_options(options, prune=False, restore=True)
    return run_build(folder, paths, chosen, options, {"must_exist": True}, as_json)


def apply_preset(preset: str, options: dict[str, Any]) -> int | None:
    """Fill in the options that a preset gives, and return its size of communities."""
    from kgqa.methods.text.declarations import BUILDS

    build = dict(BUILDS[preset])
    size: int | None = build.pop("community_size", None)
    given = {name.replace(".", "__"): value for name, value in build.items()}
    options |= {name: value for name, value in given.items() if options.get(name) is None}
    return size


def dataset_feed(dataset: str, sample: int | None, seed: int) -> GivenFeed:
    """Return the passages of the questions of a data set."""
    from kgqa.corpus.building.feeds import GivenFeed
    from kgqa.evaluation.datasets.passages import passage_documents

    return GivenFeed(dataset, passage_documents(dataset, sample_size=sample, seed=seed))


def demo_documents() -> Path:
    """Return the folder of the bundled documents."""
    from importlib.resources import files

    return Path(str(files("kgqa") / "demo" / "corpus"))


def run_build(
    folder: Path,
    paths: tuple[Path, ...],
    chosen: BuildOptions,
    options: dict[str, Any],
    given: dict[str, Any],
    as_json: bool,
) -> int:
    """Build a corpus, show the progress, and print the report. Returns the exit code."""
    from kgqa.corpus.building.build import build_corpus
    from kgqa.graph.rdf.files import FORMATS

    for path in paths:
        if path.suffix.lower() in FORMATS and path.suffix != ".xml" and path.is_file():
            load = f"kgqa graph load {shlex.quote(str(path))} --into mygraph/"
            say(f"kgqa: {clean(str(path))} looks like RDF, and is read as a text. To load it as a graph: {clean(load)}")
    given |= {name: options.pop(name) for name in ("graph_url", "vectors") if name in options}
    beside = options.pop("beside", None)
    with ExitStack() as opened:
        tools = opened.enter_context(opened_tools(options, ray=options.pop("ray", None)))
        if beside:
            given["beside"] = opened.enter_context(_open_beside(beside, tools))
        opened.enter_context(stop_message(f"What was done is kept in {folder}. Run the same command again to go on."))
        bar = opened.enter_context(StageBar(leave=False))
        report = build_corpus(
            folder,
            paths,
            tools=tools,
            options=chosen,
            progress=bar,
            **given,
        )
    print_result(as_json, {**asdict(report), "complete": report.complete}, report_lines(report))
    if not as_json:
        for note in report.notes:
            say(f"kgqa: {clean(note)}")
    return 0 if report.complete else EXIT_STOPPED


def _open_beside(location: str, tools: Tools) -> Any:
    from kgqa.graph.opening import open_graph_of

    return open_graph_of(tools.settings, location, cache=tools.cache)


def report_lines(report: BuildReport) -> Iterator[str]:
    """Yield the report of a build as lines of text."""
    counts = {name: getattr(report, name) for name in ("added", "changed", "removed", "unchanged")}
    documents = ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "none"
    yield f"Documents: {documents}" + (f"; {counted(report.chunks, 'chunk')} read" if report.chunks else "")
    if report.extracted or report.reused:
        yield f"Chunks given to the language model: {report.extracted:,}; results known from before: {report.reused:,}"
    if report.calls:
        tokens = counted(report.prompt_tokens + report.completion_tokens, "token")
        cost = "" if report.cost is None else f", {report.cost:.4f} USD"
        yield f"Model: {counted(report.calls, 'call')}, {tokens}{cost}"
    if report.merges or report.links:
        links = f"; {counted(report.links, 'entity', 'entities')} linked to the graph" if report.links else ""
        yield f"Entities: {counted(report.merges, 'pair')} of names found to mean the same{links}"
    if report.edits:
        yield f"Written: {counted(report.edits, 'edit')}, {counted(report.communities, 'community', 'communities')}"
    if report.skipped:
        yield f"{counted(len(report.skipped), 'file')} left out"
    if report.kept_out:
        yield f"{counted(report.kept_out, 'file')} left out because of `kgqa corpus remove`"
    if report.malformed:
        yield f"{counted(report.malformed, 'malformed triple')} left out"
    if report.rejected:
        yield f"{counted(report.rejected, 'statement')} of the model left out"
    if report.failed:
        yield f"{counted(report.failed, 'chunk')} failed. To retry, run the same command again."
    if report.waiting:
        yield f"{counted(report.waiting, 'chunk')} not read because of --max-cost. Raise it and run the command again."
    if report.skipped or report.malformed or report.rejected or report.failed:
        yield f"Reasons: kgqa corpus status {clean(report.folder)}"
    seconds = sum(report.seconds.values())
    yield f"{clean(report.folder)} is {'ready' if report.complete else 'not complete'} after {seconds:.1f} s."
    if report.edits and report.complete:
        yield f'Ask it: kgqa ask "..." --graph {clean(report.folder)}'
