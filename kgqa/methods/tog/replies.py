"""Tolerant readers of the replies to Think-on-Graph's prompts. They accept any text and never raise."""

from __future__ import annotations

import re

from kgqa.llm.replies.answers import read_numbered_answers
from kgqa.llm.replies.json_values import Reading
from kgqa.llm.replies.scores import read_scores
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
        if match and (name := match[1] if match[1] in names else known.get(normalise(match[1]))):
            found.setdefault(name, min(float(match[2]), 1.0))
    if not found and not _NONE.fullmatch(text.strip()):
        return Reading(None, problem="It rates none of the relations in the form that was asked for.")
    return Reading(tuple(sorted(found.items(), key=lambda pair: -pair[1])))


def read_entities(text: str, size: int) -> Reading[tuple[float | None, ...]]:
    """Read the scores of `size` entities in their order: the numbers after the last "Score:", or any form of scores."""
    numbers = tuple(map(float, re.findall(r"\b[01](?:\.\d+)?\b|\B\.\d+\b", text.rsplit("Score:", 1)[-1][:5000])))
    return Reading(numbers) if len(numbers) == size else read_scores(text, size=size)


def read_sufficient(text: str, *, published: bool = False) -> Reading[tuple[str, ...]]:
    """Read whether the triples are enough, and if so the answers; () if they are not enough.

    With `published`, the first braces must be the verdict; otherwise the verdict may stand in any braces.
    """
    braces = (each.strip().lower() for each in _BRACES.findall(text[:20_000]))
    verdict = next((each for each in braces if published or each in _VERDICTS), "")
    if verdict not in _VERDICTS:
        return Reading(None, problem="It begins neither with {Yes} nor with {No}.")
    return read_answer(text, published=published) if verdict == "yes" else Reading(())


def read_answer(text: str, *, published: bool = False) -> Reading[tuple[str, ...]]:
    """Read the answers in the last braces, or with `published` in all braces; semicolons separate several."""
    braces = [each for each in _BRACES.findall(text[-20_000:]) if each.strip().lower() not in _VERDICTS]
    if not braces:
        return Reading(None, problem="It has no answer in braces.")
    if not published and _OBJECT.match(braces[-1]):
        read = read_numbered_answers(text)
        return Reading(None if read.value is None else tuple(map(str, read.value)), read.repaired, read.problem)
    parts = [part.strip()[:500] for each in braces[0 if published else -1 :] for part in each.split(";")]
    return Reading(tuple(dict.fromkeys(filter(None, parts))) or None, problem="The braces are empty.")
