"""Gold answers and scores for `kgqa ask` with a question from a data set."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import click

from kgqa.answer_json import answer_object
from kgqa.words import clean

if TYPE_CHECKING:
    from kgqa.evaluation.datasets.questions import GoldQuestion
    from kgqa.model import Answer

MAX_GOLD = 10
METRICS = ("hit@1", "f1", "em")


def gold_question(source: str, ident: str) -> GoldQuestion:
    """Find the question with this id in a data set; raise UsageError if the data set has no such question."""
    from kgqa.evaluation.runs.plan import RunPlan, select_questions

    questions = {question.id: question for question in select_questions(RunPlan(source)).questions}
    if ident in questions:
        return questions[ident]
    near = difflib.get_close_matches(ident, list(questions)[:100_000], n=3) or list(questions)[:3]
    raise click.UsageError(
        f"{source} has no question with the id {ident!r}. Similar ids in it: {clean(', '.join(near))}"
    )


def gold_object(answer: Answer, question: GoldQuestion) -> dict[str, Any]:
    """Return the entries for gold answers and scores in the JSON object of an answer."""
    from kgqa.evaluation.metrics.scores import score_record

    gold = [[{"id": each.id or None, "name": each.name} for each in reading] for reading in question.readings]
    return {"gold": gold, "scores": score_record(answer_object(answer), question.readings)}


def gold_text(answer: Answer, question: GoldQuestion) -> str:
    """Format gold answers and scores as text."""
    found = gold_object(answer, question)
    lines = []
    for reading in found["gold"]:
        names = [
            clean(f"{each['name']} ({each['id']})" if each["id"] and each["name"] else each["name"] or each["id"])
            for each in reading
        ]
        more = f" and {len(names) - MAX_GOLD:,} more" if len(names) > MAX_GOLD else ""
        lines.append(f"  gold   {', '.join(names[:MAX_GOLD]) or 'no answer'}{more}")
    scores = ", ".join(f"{name} {100 * found['scores'][name]:.0f}" for name in METRICS if name in found["scores"])
    return "\n".join([*lines, f"  score  {scores or 'none (no gold answer)'}"])
