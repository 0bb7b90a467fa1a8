"""Asks a language model whether two names mean the same entity. What cannot be read is not merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from kgqa.corpus.items import digest
from kgqa.corpus.resolution.evidence import Evidence
from kgqa.corpus.resolution.names import Name
from kgqa.errors import ModelUnavailable
from kgqa.llm.asking import ask_readings
from kgqa.llm.models import Models
from kgqa.llm.prompts import Prompts
from kgqa.llm.replies.reply import Form, reply_of
from kgqa.text.words import clean
from kgqa.trace.trace import BudgetExhausted, Trace

STAGE = "resolve"
PROMPT = "corpus/same"
BATCH = 10
"""Number of pairs in one prompt."""
_WINDOW = 8
_MAX_TEXT = 300


@dataclass(frozen=True)
class _SamePairs:
    """A reply: the numbers of the pairs that mean the same entity."""

    same: Annotated[tuple[int, ...], Form(keys=("pairs", "numbers"), bare=True, strict=True)]


REPLY = reply_of(_SamePairs)


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
        asked = [
            prompts.prompt(
                PROMPT, STAGE, REPLY.then(partial(_checked, count=len(batch))), pairs=_shown(batch, evidence)
            )
            for batch in window
        ]
        try:
            readings = ask_readings(asking, prompts, asked)
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


def _checked(pairs: _SamePairs, *, count: int) -> frozenset[int]:
    """Return the numbers of the pairs that are the same; there are `count` pairs, from 1 on."""
    if not all(1 <= number <= count for number in pairs.same):
        raise ValueError(f"The list has something else than numbers of pairs, which are from 1 to {count}.")
    return frozenset(pairs.same)


def prompt_hash(prompts: Prompts) -> str:
    """Return the hash of the prompt, which is recorded with each merge that a model decided."""
    return digest(prompts.get(PROMPT).source, repr(REPLY.schema))


def _shown(batch: Sequence[tuple[Name, Name]], evidence: Evidence) -> list[dict[str, Any]]:
    return [
        {"number": number, "first": _described(one, evidence), "second": _described(other, evidence)}
        for number, (one, other) in enumerate(batch, start=1)
    ]


def _described(name: Name, evidence: Evidence) -> dict[str, str]:
    return {"name": name.text[:_MAX_TEXT], "type": name.type, "text": evidence.context(name)[:_MAX_TEXT]}
