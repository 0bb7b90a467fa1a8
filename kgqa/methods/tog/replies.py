"""Tolerant readers of the replies to Think-on-Graph's prompts. They accept any text and never raise."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgqa.llm.replies.answers import read_numbered_answers
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.scores import read_scores
from kgqa.text.words import normalise

FORM = re.compile(r"\{\s*(.+?)\s*\(Score:\s*([0-9]*\.?[0-9]+)\s*\)\s*\}")
BRACES = re.compile(r"\{([^{}]{1,2000})\}")
_LOOSE = re.compile(
    r"^\s*(?:\d+[.)]|[-*])?\s*\{?\s*(.+?)\s*[(:\[]\s*(?:score\s*[:=])?\s*([01](?:\.\d+)?|\.\d+)\b", re.IGNORECASE
)
_NONE = re.compile(r"\W*none\b[^{}\n]{0,60}", re.IGNORECASE)
_OBJECT = re.compile(r"""\s*(["'])\w[^"']*\1\s*:""")
"""The beginning of a JSON object; any other text in braces is an answer, even a number."""


def read_relations(text: str, names: list[str]) -> Reading[tuple[tuple[str, float], ...]]:
    """Read the relations that a reply names with their scores, best first; none if the reply says "None"."""
    known = {normalise(name): name for name in names}
    found: dict[str, float] = {}
    for line in text[-20_000:].splitlines():
        match = FORM.search(line) or _LOOSE.match(line)
        name = known.get(normalise(match[1])) if match else None
        if match and name:
            found.setdefault(name, min(float(match[2]), 1.0))
    if not found and _NONE.fullmatch(text.strip()):
        return Reading(())
    return best_relations(found)


def best_relations(found: dict[str, float]) -> Reading[tuple[tuple[str, float], ...]]:
    """Return the relations of a reply with their scores, best first; without any, the reply can't be used."""
    ordered = tuple(sorted(found.items(), key=lambda pair: -pair[1]))
    return Reading(ordered or None, False, "It rates none of the relations in the form that was asked for.")


def listed_scores(text: str) -> tuple[float, ...]:
    """Return the numbers from 0 to 1 after the last "Score:"."""
    return tuple(map(float, re.findall(r"\b[01](?:\.\d+)?\b|\B\.\d+\b", text.rsplit("Score:", 1)[-1][:5000])))


def read_entities(text: str, size: int) -> Reading[tuple[float | None, ...]]:
    """Read the scores of `size` entities, in their order."""
    numbers = listed_scores(text)
    return Reading(numbers, False, "") if len(numbers) == size else read_scores(text, size=size)


def read_sufficient(text: str) -> Reading[tuple[str, ...]]:
    """Read whether the triples are enough, and if so the answers; () if they are not enough."""
    verdicts = (each.strip().lower() for each in BRACES.findall(text[:20_000]))
    verdict = next((each for each in verdicts if each in ("yes", "no")), None)
    if verdict == "no":
        return Reading((), False, "")
    return read_answer(text) if verdict else Reading(None, False, "It begins neither with {Yes} nor with {No}.")


def read_answer(text: str) -> Reading[tuple[str, ...]]:
    """Read the answers in the last braces; several are separated by semicolons."""
    braces = answer_braces(text)
    if braces and _OBJECT.match(braces[-1]):
        read = read_numbered_answers(text)
        return Reading(None if read.value is None else tuple(map(str, read.value)), read.repaired, read.problem)
    return separated(braces[-1:])


def answer_braces(text: str) -> list[str]:
    """Return the texts in braces that are no verdicts."""
    return [each for each in BRACES.findall(text[-20_000:]) if each.strip().lower() not in ("yes", "no")]


def separated(braces: Sequence[str]) -> Reading[tuple[str, ...]]:
    """Return the answers in braces, which semicolons separate."""
    if not braces:
        return Reading(None, False, "It has no answer in braces.")
    parts = [part.strip()[:500] for each in braces for part in each.split(";")]
    return Reading(tuple(dict.fromkeys(part for part in parts if part)) or None, False, "The braces are empty.")
