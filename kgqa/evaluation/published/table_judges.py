"""Judges the runs of a printed table, and keeps the verdicts in the folder of the run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.judges.judge_predictions import judge_against, judge_published
from kgqa.evaluation.judges.pairwise import PAIR_DIMENSIONS
from kgqa.evaluation.judges.ratings import DIMENSIONS
from kgqa.evaluation.published.predictions import read_published
from kgqa.evaluation.published.rescoring import match
from kgqa.evaluation.runs.run_files import PREDICTIONS
from kgqa.llm.models import QuestionModels, open_models
from kgqa.llm.prompts import Prompts
from kgqa.settings.values import resolve
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.loading import parse_json, read_bytes
from kgqa.trace.trace import Trace

VERDICTS = "verdicts.json"
RATED = ("answer", "evidence")
"""The kinds of ratings whose means the tables show."""
CORRECT = "correct"
"""The judge whose share of answers that are right the tables show."""
Values = dict[str, float]


def rated(
    folder: Path,
    questions: Sequence[GoldQuestion],
    llm: str,
    settings: Mapping[str, Any],
    judges: Sequence[str] = RATED,
) -> Values:
    """Return what judges say of a run, by `judge.NAME`.

    These are mean ratings from 0 to 10 (`judge.answer`, `judge.evidence`, and each of their criteria, such as
    `judge.answer.correctness`), or the share of answers that are right (`judge.correct`).

    Args:
        folder: the folder of the run.
        questions: its questions, whose supporting passages the judge reads.
        llm: the judging language model.
        settings: settings of the judge's calls by key, such as `llm.concurrency`.
        judges: names out of `RATED` and `CORRECT`.

    Raises:
        ModelUnavailable: the model cannot be reached.
    """

    def ask(models: QuestionModels, prompts: Prompts) -> Values:
        pairs, _ = match(read_published(folder / PREDICTIONS, "kgqa"), questions)
        judged = judge_published(pairs, judges, models=models, prompts=prompts)
        means = {f"judge.{name}": judged[name]["right" if name == CORRECT else "score"]["value"] for name in judges}
        for name, dimensions in DIMENSIONS.items():
            means |= {f"judge.{name}.{each}": judged[name][each]["value"] for each in dimensions if name in judges}
        return {name: value for name, value in means.items() if value is not None}

    return _kept(
        folder, ["ratings" if tuple(judges) == RATED else ",".join(judges), llm, _size(folder)], llm, settings, ask
    )


def compared(
    folder: Path, other: Path, questions: Sequence[GoldQuestion], llm: str, settings: Mapping[str, Any]
) -> Values:
    """Return how often the responses of a run win against those of another, as `win.DIMENSION` from 0 to 1.

    Further arguments and errors as for `rated`.
    """

    def ask(models: QuestionModels, prompts: Prompts) -> Values:
        here, there = (match(read_published(each / PREDICTIONS, "kgqa"), questions)[0] for each in (folder, other))
        found = judge_against(here, there, models=models, prompts=prompts)["dimensions"]
        rates = {f"win.{name}": found[name]["rate"] for name in PAIR_DIMENSIONS}
        return {name: value for name, value in rates.items() if value is not None}

    return _kept(folder, ["pairs", llm, _size(folder), _size(other)], llm, settings, ask)


class _Kept(msgspec.Struct):
    key: list[Any]
    values: dict[str, float]


def _kept(
    folder: Path,
    key: list[Any],
    llm: str,
    settings: Mapping[str, Any],
    ask: Callable[[QuestionModels, Prompts], Values],
) -> Values:
    """Return the verdicts that are kept under a key, or ask for them and keep them, if any could be read."""
    file = folder / VERDICTS
    with suppress(OSError, ValueError):  # not judged yet, or not written by kgqa
        kept: _Kept = parse_json(read_bytes(file), _Kept)
        if kept.key == key:
            return kept.values
    resolved = resolve({**settings, "llm.model": llm})
    models = open_models(resolved)
    assert models is not None
    prompts = Prompts(Path(resolved.llm.prompts) if resolved.llm.prompts else None)
    with closing(models):
        values = ask(models.for_question(Trace()), prompts)
    if values:
        replace_file(file, [json.dumps({"key": key, "values": values}, indent=1).encode("ascii")])
    return values


def _size(folder: Path) -> int:
    """Return the size of the predictions, which changes when more questions are asked."""
    return (folder / PREDICTIONS).stat().st_size
