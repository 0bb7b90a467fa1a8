"""Tolerant readers of the replies to Think-on-Graph's prompts. They accept any text and never raise."""

from __future__ import annotations

import re

from kgqa.llm.replies.answers import read_numbered_answers
from kgqa.llm.replies.json_values import Reading
from kgqa.text.words import normalise

_FORM = re.compile(r"\{\s*(.+?)\s*\(Score:\s*([0-9]*\.?[0-9]+)\s*\)\s*\}")
_LOOSE = re.compile(
    r"^\s*(?:\d+[.)]|[-*])?\s*\{?\s*(.+?)\s*[(:\[]\s*(?:score\s*[:=])?\s*([01](?:\.\d+)?|\.\d+)\b", re.IGNORECASE
)
_NONE = re.compile(r"\W*none\b[^{}\n]{0,60}", re.IGNORECASE)
_BRACES = re.compile(r"\{([^{}]{1,2000})\}")
_OBJECT = re.compile(r"""\s*(["'])\w[^"']*\1\s*:""")
"""The beginning of a JSON object; any other text in braces is an answer, even a number."""
_VERDICTS = ("yes", "no")


def read_relations(text: str, names: list[str]) -> Reading[tuple[tuple[str, float], ...]]:
    """Read the relations that a reply names with their scores, best first; none if the reply says "None"."""
    known = {normalise(name): name for name in names}
    found: dict[str, float] = {}
    for line in text[-20_000:].splitlines():
        match = _FORM.search(line) or _LOOSE.match(line)
        if match and (name := known.get(normalise(match[1]))):
            found.setdefault(name, min(float(match[2]), 1.0))
    if not found and not _NONE.fullmatch(text.strip()):
        return Reading(None, problem="It rates none of the relations in the form that was asked for.")
    return Reading(tuple(sorted(found.items(), key=lambda pair: -pair[1])))


def read_sufficient(text: str) -> Reading[tuple[str, ...]]:
    """Read whether the triples are enough, and if so the answers; () if they are not enough."""
    braces = (each.strip().lower() for each in _BRACES.findall(text[:20_000]))
    verdict = next((each for each in braces if each in _VERDICTS), None)
    if verdict is None:
        return Reading(None, problem="It begins neither with {Yes} nor with {No}.")
    return read_answer(text) if verdict == "yes" else Reading(())


def read_answer(text: str) -> Reading[tuple[str, ...]]:
    """Read the answers in the last braces; several are separated by semicolons."""
    braces = [each for each in _BRACES.findall(text[-20_000:]) if each.strip().lower() not in _VERDICTS]
    if not braces:
        return Reading(None, problem="It has no answer in braces.")
    if _OBJECT.match(braces[-1]):
        read = read_numbered_answers(text)
        return Reading(None if read.value is None else tuple(map(str, read.value)), read.repaired, read.problem)
    parts = [part.strip()[:500] for part in braces[-1].split(";")]
    return Reading(tuple(dict.fromkeys(filter(None, parts))) or None, problem="The braces are empty.")
