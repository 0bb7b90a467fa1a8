"""Scores published predictions by our metrics and by those of the project that published them; explains differences.

The projects' own metrics are reimplemented from their definitions.

Think-on-Graph and its successors: EM is 1 if the prediction is a substring of a gold answer or the reverse, ignoring
spaces and case; Think-on-Graph compares the text in the first braces of the reply.
RoG and GNN-RAG: Hit is 1 if a gold answer is a substring of all lines together; Hit@1 is 1 if a gold answer is a
substring of the first line; accuracy is the share of gold answers that are substrings of all lines together; F1
compares the lines with the gold answers.
"""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.metrics.measures import Mean, mean
from kgqa.evaluation.metrics.scores import METRIC_NAMES, TEXT_METRICS, gold_texts, score_record
from kgqa.evaluation.metrics.text_metrics import tog_clean, tog_match, tog_suspect
from kgqa.evaluation.published.predictions import Prediction, Readings
from kgqa.text.words import normalise

OwnScorer = Callable[[str, Sequence[str]], float]
CONSTANTS = ("e", "")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def rog_clean(text: str) -> str:
    """Normalise text as RoG does: lower case, no ASCII punctuation, no articles, single blanks."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def _first_braces(reply: str) -> str:
    """Return the text in the first braces, or the whole reply without braces, as Think-on-Graph's evaluation does."""
    return reply[reply.find("{") + 1 : reply.find("}")] if "{" in reply else reply


def _found(text: str, gold: Sequence[str]) -> int:
    normalised = rog_clean(text)
    return sum(rog_clean(each) in normalised for each in gold)


def _lines_f1(raw: str, gold: Sequence[str]) -> float:
    lines = raw.split("\n")
    found = _found(" ".join(lines), gold)
    precision, recall = found / len(lines), found / len(gold)
    # a line with two gold answers counts twice, so this may exceed 1
    return 2 * precision * recall / (precision + recall) if found else 0.0


_EM: Mapping[str, OwnScorer] = {"EM": lambda raw, gold: float(tog_match(raw, gold))}
_HIT: Mapping[str, OwnScorer] = {
    "Hit": lambda raw, gold: float(_found(raw.replace("\n", " "), gold) > 0),
    "Hit@1": lambda raw, gold: float(_found(raw.split("\n")[0], gold) > 0),
    "Accuracy": lambda raw, gold: _found(raw.replace("\n", " "), gold) / len(gold),
    "F1": _lines_f1,
}
OWN_SCORERS: Mapping[str, Mapping[str, OwnScorer]] = {
    "tog": {"EM": lambda raw, gold: float(tog_match(_first_braces(raw), gold))},
    "pog": _EM,
    "aog": _EM,
    "rog": _HIT,
    "gnn-rag": _HIT,
    "kgqa": {},
}
COUNTERPARTS = {"EM": "hit@any", "Hit": "hit@any", "Hit@1": "hit@1", "Accuracy": "recall", "F1": "f1"}
"""Map from a project's metric, which compares substrings, to kgqa's metric, which compares whole answers."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why two metrics differ.

    `questions`: number of questions with this reason; `points`: difference that these questions cause, in hundredths.
    """

    theirs: str
    ours: str
    reason: str
    questions: int
    points: float


@dataclass(frozen=True)
class Rescoring:
    """The scores of a file by our metrics (`ours`) and by the project's own metrics (`theirs`).

    Counts: `unmatched`: predictions whose question is not in the data set; `unanswered`: questions of the data set
    without a prediction; `repeated`: predictions replaced by a later prediction with the same id; `without_gold`:
    predictions without gold answers; `lists`: predictions in prose that score better when read as a list.
    `constants`: map from an answer to the tog_em of a system that gives this answer to every question.
    """

    n: int
    ours: Mapping[str, Mean]
    theirs: Mapping[str, Mean]
    reasons: Sequence[Reason]
    unmatched: int = 0
    unanswered: int = 0
    repeated: int = 0
    without_gold: int = 0
    lists: int = 0
    constants: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Row:
    published: Prediction
    readings: Readings
    ours: Mapping[str, float]
    with_aliases: Mapping[str, float]
    theirs: Mapping[str, float]
    same_gold: bool


def rescore(
    predictions: Iterable[Prediction],
    format: str,
    questions: Sequence[GoldQuestion] | None = None,
    *,
    aliases: bool = False,
    count_missing: bool = False,
) -> Rescoring:
    """Score predictions against the gold answers of a data set, or against the gold answers in the file of predictions.

    Like the original scorers, the projects' own metrics accept aliases, and use the gold answers in the file if there
    are any.

    Args:
        questions: the data set; predictions are matched by id, or by text if there is no id.
        aliases: accept aliases of gold answers in our metrics.
        count_missing: count a question without a prediction as wrong; by default it is left out, as the projects do.
    """
    pairs, left = match(predictions, questions)
    rows: list[_Row] = []
    without_gold = lists = 0
    for each, readings in pairs:
        scored = _row(each, readings, format, aliases)
        if scored is None:
            without_gold += 1
            continue
        row, as_list = scored
        rows.append(row)
        lists += as_list
    for question in left.missing if count_missing else ():
        empty = Prediction(question.id, question.text, "", answer={"status": "failed", "answers": []})
        if scored := _row(empty, question.readings, format, aliases):
            rows.append(scored[0])
    names = dict.fromkeys(name for row in rows for name in row.theirs)
    gold = [gold_texts(row.readings, aliases=True) for row in rows]
    return Rescoring(
        n=len(rows),
        ours={name: mean([row.ours[name] for row in rows]) for name in METRIC_NAMES},
        theirs={name: mean([row.theirs[name] for row in rows]) for name in names},
        reasons=_reasons(rows, format),
        unmatched=left.unmatched,
        unanswered=len(left.missing),
        repeated=left.repeated,
        without_gold=without_gold,
        lists=lists,
        constants={text: sum(tog_match(text, each) for each in gold) / len(rows) for text in CONSTANTS if rows},
    )


@dataclass(frozen=True)
class Matching:
    """Predictions and questions that `match` left out.

    `unmatched`, `repeated`: as in Rescoring; `missing`: the questions without a prediction.
    """

    unmatched: int
    missing: Sequence[GoldQuestion]
    repeated: int


def match(
    predictions: Iterable[Prediction], questions: Sequence[GoldQuestion] | None
) -> tuple[list[tuple[Prediction, Readings]], Matching]:
    """Pair each prediction with the gold answers of its question in the data set.

    Without a data set (None), the gold answers in the file of predictions are used. Question text and evidence also
    come from the data set, because some files of predictions contain a whole prompt as the question.
    """
    every = list(predictions)
    # the last prediction of each id, and all predictions without an id
    kept = list({each.id or place: each for place, each in enumerate(every)}.values())
    repeated = len(every) - len(kept)
    if questions is None:
        return [(each, each.readings) for each in kept], Matching(0, (), repeated)
    by_id = {question.id: question for question in questions}
    by_text = {normalise(question.text): question for question in questions}
    found = [(each, q) for each in kept if (q := by_id.get(each.id) or by_text.get(normalise(each.question)))]
    pairs = [(replace(each, question=q.text, evidence=q.evidence), q.readings) for each, q in found]
    done = {question.id for _, question in found}
    missing = [question for question in questions if question.id not in done]
    return pairs, Matching(len(kept) - len(found), missing, repeated)


def _row(each: Prediction, readings: Readings, format: str, aliases: bool) -> tuple[_Row, bool] | None:
    """Score one prediction; None without gold answers.

    Returns:
        The scores, and True if prose scored better when read as a list.
    """
    scored = [score_record(found, readings, aliases=aliases, ordered=each.ordered) for found in each.objects()]
    if not scored[0]:
        return None
    best = max(scored, key=lambda found: found["f1"])
    # text metrics always compare the whole text
    ours = {**best, **{name: scored[0][name] for name in TEXT_METRICS}}
    widest = [score_record(found, readings, aliases=True, ordered=each.ordered) for found in each.objects()]
    gold = gold_texts(each.readings or readings, aliases=True)
    own = OWN_SCORERS[format] if each.answer is None else {}
    theirs = {name: scorer(each.raw, gold) for name, scorer in own.items()}
    if not own:  # a question without a prediction
        theirs = dict.fromkeys(OWN_SCORERS[format], 0.0)
    if each.verdict is not None:
        theirs["EM as recorded"] = float(each.verdict)
    names = [{normalise(text) for text in gold_texts(given, aliases=False)} for given in (each.readings, readings)]
    same = not each.readings or names[0] == names[1]
    row = _Row(each, readings, ours, max(widest, key=lambda found: found["f1"]), theirs, same)
    return row, best is not scored[0]


# ---- reasons for differences ----


def _reasons(rows: Sequence[_Row], format: str) -> list[Reason]:
    """Explain why each metric of the project differs from ours, and why hit@any differs from em.

    For each pair of metrics, the points of all reasons add up to the difference between the two metrics.
    """
    found: list[Reason] = []
    for theirs, ours in COUNTERPARTS.items():
        if theirs in OWN_SCORERS[format]:
            pairs = [(row.theirs[theirs], row.ours[ours], row) for row in rows]
            found += _counted(theirs, ours, pairs, partial(_why, theirs=theirs, ours=ours, format=format))
    recorded = [(row.theirs["EM as recorded"], row.theirs["EM"], row) for row in rows if "EM as recorded" in row.theirs]
    found += _counted(
        "EM as recorded",
        "EM",
        recorded,
        lambda row, t, o: (
            f"recorded as {'right' if t > o else 'wrong'} although the names {'do not ' if t > o else ''}match"
        ),
        of=len(rows),
    )
    pairs = [(row.ours["hit@any"], row.ours["em"], row) for row in rows]
    return found + _counted("hit@any", "em", pairs, lambda row, t, o: _incomplete(row))


def _counted(
    theirs: str,
    ours: str,
    pairs: Sequence[tuple[float, float, _Row]],
    why: Callable[[_Row, float, float], str],
    *,
    of: int | None = None,
) -> list[Reason]:
    counts: dict[str, list[float]] = {}
    for one, other, row in pairs:
        if abs(one - other) > 1e-9:
            counts.setdefault(why(row, one, other), []).append(other - one)
    found = [
        Reason(theirs, ours, reason, len(parts), 100 * sum(parts) / (of or len(pairs)))
        for reason, parts in counts.items()
    ]
    return sorted(found, key=lambda each: (each.points, each.reason))


def _why(row: _Row, their_value: float, our_value: float, *, theirs: str, ours: str, format: str) -> str:
    """Explain why, for one question, the project's metric is higher or lower than ours."""
    prediction, gold = row.published.raw, gold_texts(row.readings, aliases=True)
    if not row.same_gold:
        return "different gold answers in data set and file"
    if their_value <= our_value:
        return _why_lower(row, theirs, format)
    if not prediction.strip():
        return "empty prediction"
    if row.with_aliases[ours] > row.ours[ours] + 1e-9:
        return "an alias of a gold answer"
    names = [each.name for reading in row.readings for each in reading]
    by_lines = format in ("rog", "gnn-rag")
    matched = any(_found(prediction, [n]) if by_lines else tog_match(prediction, [n]) for n in names if n)
    if not all(names) and not matched:
        return "no gold answer has a name in the data set"
    if theirs == "EM":
        return _why_substring(prediction, gold, format)
    if theirs == "Hit@1":
        return "substring only: a gold answer is a piece of the first line"
    if theirs == "Hit":
        return "substring only: a gold answer is a piece of the lines"
    return "substrings counted as answers"


def _why_lower(row: _Row, theirs: str, format: str) -> str:
    if not row.published.raw.strip():
        return "nothing was predicted"
    if theirs == "Hit@1" and row.ours["hit@any"] and len(row.published.texts) > 1:
        return "spelling (accents, punctuation, numbers, dates)"
    if theirs in ("F1", "Accuracy"):
        lines = [normalise(line) for line in row.published.texts]
        return "a repeated line" if len(set(lines)) < len(lines) else "articles and spelling"
    if format == "tog":
        return "the answer is not in the first braces"
    return "spelling (accents, punctuation, numbers, dates)"


def _why_substring(prediction: str, gold: Sequence[str], format: str) -> str:
    if format == "tog":
        inside = _first_braces(prediction)
        if "{" not in prediction:
            return "no braces: the whole reply was searched"
        prediction = inside
    if tog_suspect(prediction, gold):
        return "substring only: the prediction is empty or too short, or one is a piece of a word of the other"
    clean = tog_clean(prediction)
    if any(tog_clean(each) in clean for each in gold):
        return "substring only: a gold answer is a piece of the prediction"
    return "substring only: the prediction is a piece of a gold answer"


def _incomplete(row: _Row) -> str:
    missing, wrong = row.ours["recall"] < 1, row.ours["precision"] < 1
    if missing and wrong:
        return "gold answers are missing, and there are wrong answers"
    return "gold answers are missing" if missing else "wrong answers in addition to all gold answers"
