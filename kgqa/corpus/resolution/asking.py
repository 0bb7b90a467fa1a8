"""Asks a language model whether two names mean the same entity. What cannot be read is not merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kgqa.corpus.items import digest
from kgqa.corpus.resolution.evidence import Evidence
from kgqa.corpus.resolution.names import Name
from kgqa.errors import ModelUnavailable
from kgqa.llm.asking import ask_readings
from kgqa.llm.models import Models
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.json_values import Reading, find_key, json_values, last_part
from kgqa.text.words import clean
from kgqa.trace.trace import BudgetExhausted, Trace

STAGE = "resolve"
PROMPT = "corpus/same"
BATCH = 10
"""Number of pairs in one prompt."""
_WINDOW = 8
_MAX_TEXT = 300
_KEYS = ("same", "pairs", "numbers")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the model says about a pair: whether it is the same entity; None, and a reason, if there is no answer."""

    same: bool | None
    reason: str = ""


def ask_about(
    pairs: Sequence[tuple[Name, Name]], evidence: Evidence, models: Models, prompts: Prompts, trace: Trace
) -> list[Verdict]:
    """Return a verdict for each pair, in order. When the budget is used up or the model fails, the rest has none."""
    asking = models.for_question(trace)
    batches = [pairs[begin : begin + BATCH] for begin in range(0, len(pairs), BATCH)]
    verdicts: list[Verdict] = []
    for begin in range(0, len(batches), _WINDOW):
        window = batches[begin : begin + _WINDOW]
        asked = [prompts.prompt(PROMPT, STAGE, pairs=_shown(batch, evidence)) for batch in window]
        readers = [partial(read_same, count=len(batch)) for batch in window]
        try:
            readings = ask_readings(asking, prompts, asked, readers)
        except BudgetExhausted as error:
            reason = error.reason
        except ModelUnavailable as error:
            reason = clean(error.message)
        else:
            for batch, reading in zip(window, readings):
                for number in range(1, len(batch) + 1):
                    same = None if reading.value is None else number in reading.value
                    verdicts.append(Verdict(same, clean(reading.problem)[:300] if same is None else ""))
            continue
        break
    return verdicts + [Verdict(None, reason) for _ in pairs[len(verdicts) :]]


def read_same(text: str, count: int) -> Reading[frozenset[int]]:
    """Read the numbers of the pairs that are the same from a reply; there are `count` pairs, from 1 on."""
    expected = f'Reply with {{"same": [...]}}: the numbers, from 1 to {count}, of the pairs that mean the same.'
    try:
        values = json_values(last_part(text))
        for each in reversed(values):
            found, value = (True, each.value) if isinstance(each.value, list) else find_key(each.value, _KEYS)
            if not found:
                continue
            numbers = [_number(item) for item in value] if isinstance(value, list) else [None]
            if any(number is None or not 1 <= number <= count for number in numbers):
                return Reading(None, problem=f"The list has something else than numbers of pairs. {expected}")
            return Reading(frozenset(number for number in numbers if number), each.repaired or len(values) > 1)
    except RecursionError:
        pass
    return Reading(None, problem=f"It has no list of numbers. {expected}")


def prompt_hash(prompts: Prompts) -> str:
    """Return the hash of the prompt, which is recorded with each merge that a model decided."""
    template = prompts.get(PROMPT)
    return digest(template.source, repr(template.schema))


def _number(item: Any) -> int | None:
    if isinstance(item, str) and item.strip().isdecimal() and len(item) < 6:
        return int(item)
    return item if isinstance(item, int) and not isinstance(item, bool) else None


def _shown(batch: Sequence[tuple[Name, Name]], evidence: Evidence) -> list[dict[str, Any]]:
    return [
        {"number": number, "first": _described(one, evidence), "second": _described(other, evidence)}
        for number, (one, other) in enumerate(batch, start=1)
    ]


def _described(name: Name, evidence: Evidence) -> dict[str, str]:
    return {"name": name.text[:_MAX_TEXT], "type": name.type, "text": evidence.context(name)[:_MAX_TEXT]}
