"""All metrics of one answer.

Set metrics compare whole answers: by id, or by name if there is no id. Text metrics, which other projects use, compare
characters or words (`tog_em`, `substring_em`, ...). Some of these search the response, if the method writes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.keys import alias_keys, gold_keys, ordered_keys
from kgqa.evaluation.metrics.measures import gold_seen, reciprocal_rank, score
from kgqa.evaluation.metrics.text_metrics import (
    rouge_l,
    sub_em,
    sub_em_raw,
    substring_em,
    tog_match,
    tog_suspect,
    token_overlap,
)
from kgqa.model import XSD_STRING, Entity, Literal, Named
from kgqa.text.words import normalise

SET_METRICS = ("hit@1", "hit@any", "precision", "recall", "f1", "em", "mrr")
TEXT_METRICS = (
    "tog_em",
    "tog_em_suspect",
    "tog_em_sound",
    "substring_em",
    "sub_em",
    "sub_em_raw",
    "token_em",
    "token_precision",
    "token_recall",
    "token_f1",
    "rouge_l",
    "rouge_l_recall",
)
METRIC_NAMES = (*SET_METRICS, *TEXT_METRICS)
_NAMES = frozenset(METRIC_NAMES)
Reading = Sequence[GoldAnswer]
MAX_COMMAS = 8
"""Most parts, separated by commas, of the name of an answer."""


def score_record(
    answer: Mapping[str, Any], readings: Sequence[Reading], *, aliases: bool = False, ordered: bool = False
) -> dict[str, float]:
    """Compute every metric of `METRIC_NAMES`, each from 0 to 1; docs/metrics.md defines them.

    A data set may give several interpretations (readings) of a question; a gold answer that may be several answers,
    joined by commas, has two. Set metrics use the reading with the best F1.
    Text metrics compare all answers, joined by commas, with every gold answer of every reading; those that search a
    text for gold answers (`substring_em`, `sub_em`, `sub_em_raw`) search the response, if there is one. An answer
    without name and value matches nothing; a failed question scores 0.

    Args:
        answer: an answer object (docs/answer-json.md).
        readings: the gold answers of each reading; gold answers without id and name are ignored.
        aliases: accept aliases of gold answers that are compared by name; `tog_em` always accepts
            aliases, like the original.
        ordered: True if the answers are ranked, the best first; False if the answers have no order.

    Returns:
        Scores by metric; empty if there are no gold answers.
    """
    known = [kept for reading in readings if (kept := [gold for gold in reading if gold.id or gold.name.strip()])]
    if not known:
        return {}
    if answer.get("status") == "failed":
        return dict.fromkeys(METRIC_NAMES, 0.0)
    answers = named_answers(answer)
    grounding = str(answer.get("grounding", ""))
    parted = [parts for reading in known if (parts := _parts(reading, answers))]
    seen = [gold_seen(reading, grounding, aliases=aliases) for reading in [*known, *parted]]
    compared = [_set_scores(answers, reading, aliases, ordered) for reading in seen]
    best = max(compared, key=lambda found: (found["f1"], found["em"], found["hit@1"]))
    return best | text_scores(answer_texts(answer), known, aliases=aliases, response=response_text(answer))


def all_scores(
    scores: Mapping[str, float], answer: Mapping[str, Any], readings: Sequence[Reading]
) -> Mapping[str, float]:
    """Return the stored scores of an answer, and compute those that are missing, such as in runs of older versions."""
    return scores if scores.keys() >= _NAMES else {**score_record(answer, readings), **scores}


def named_answers(answer: Mapping[str, Any]) -> list[Named]:
    """Convert the answers of an answer object to entities and literals."""
    return list(map(_named, answer.get("answers") or ()))


def answer_texts(answer: Mapping[str, Any]) -> list[str]:
    """Return the name, value or id of each answer."""
    return [str(each.get("name") or each.get("value") or each.get("id") or "") for each in answer.get("answers") or ()]


def response_text(answer: Mapping[str, Any]) -> str:
    """Return the response of an answer: its longer text, or else the names of the answers, joined by commas.

    A response without answers is empty: what a method writes about what it did not find is no answer.
    """
    texts = answer_texts(answer)
    response = str(answer.get("response") or "") if texts else ""
    return response if response.strip() else ", ".join(texts)


def gold_texts(readings: Iterable[Reading], *, aliases: bool) -> list[str]:
    """Return the distinct names of gold answers, with ids in place of missing names."""
    found: list[str] = []
    for reading in readings:
        for gold in reading:
            found += [gold.name or gold.id, *(gold.aliases if aliases else ())]
    return [text for text in dict.fromkeys(found) if text.strip()]


def text_scores(
    texts: Sequence[str], readings: Sequence[Reading], *, aliases: bool = False, response: str = ""
) -> dict[str, float]:
    """Compute the metrics of `TEXT_METRICS` for the texts of all answers.

    Args:
        response: the longer text that is searched for gold answers; empty to search the texts of the answers.
    """
    prediction = ", ".join(texts)
    searched = response or prediction
    every = gold_texts(readings, aliases=True)
    gold = every if aliases else gold_texts(readings, aliases=False)
    lists = [", ".join(each.name or each.id for each in reading) for reading in readings if len(reading) > 1]
    passed, suspect = tog_match(prediction, every), tog_suspect(prediction, every)
    overlap = token_overlap(prediction, [*gold, *lists])
    f1, recall = rouge_l(prediction, [*gold, *lists])
    return {
        "tog_em": float(passed),
        "tog_em_suspect": float(suspect),
        "tog_em_sound": float(passed and not suspect),
        "substring_em": float(substring_em(searched, gold)),
        "sub_em": float(sub_em(searched, gold)),
        "sub_em_raw": float(sub_em_raw(searched, gold)),
        "token_em": overlap.em,
        "token_precision": overlap.precision,
        "token_recall": overlap.recall,
        "token_f1": overlap.f1,
        "rouge_l": f1,
        "rouge_l_recall": recall,
    }


def _parts(reading: Reading, answers: Sequence[Named]) -> Reading:
    """Return the answers that a gold answer joins by commas; a comma within the name of an answer separates nothing."""
    if len(reading) != 1 or not reading[0].joined:
        return ()
    names = {normalise(each.name) for each in answers}
    parts = [part.strip() for part in reading[0].name.split(",") if part.strip()]
    found: list[GoldAnswer] = []
    while parts:
        ends = range(min(len(parts), MAX_COMMAS), 1, -1)
        end = next((each for each in ends if normalise(" ".join(parts[:each])) in names), 1)
        found.append(GoldAnswer("", ", ".join(parts[:end])))
        parts = parts[end:]
    return found


def _set_scores(answers: Sequence[Named], reading: Reading, aliases: bool, ordered: bool) -> dict[str, float]:
    gold = gold_keys(reading)
    keys = ordered_keys(answers, gold, alias_keys(reading) if aliases else {})
    found = score(set(keys), gold)
    right = [place for place, key in enumerate(keys, 1) if key in gold]
    if ordered:
        hit, mrr = float(right[:1] == [1]), 1 / right[0] if right else 0.0
    else:
        hit, mrr = found.precision, reciprocal_rank(len(keys), len(right))
    return {
        "hit@1": hit,
        "hit@any": float(bool(right)),
        "precision": found.precision,
        "recall": found.recall,
        "f1": found.f1,
        "em": found.em,
        "mrr": mrr,
    }


def _named(data: Mapping[str, Any]) -> Named:
    name = str(data.get("name") or "")
    ident = str(data.get("id") or "")
    if data.get("iri") or (ident and data.get("value") is None):
        return Named(Entity(str(data.get("iri") or ident)), ident, name)
    value = data.get("value")
    text = name if value is None else str(value)
    if language := str(data.get("language") or ""):
        return Named(Literal(text, language=language), "", name)
    return Named(Literal(text, str(data.get("datatype") or XSD_STRING)), "", name)
