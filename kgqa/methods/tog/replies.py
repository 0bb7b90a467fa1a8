"""Readers of the replies to Think-on-Graph's prompts. They accept any text and never raise.

With `faithful`, only the published format is read, as the published program reads it; otherwise other forms, too.
"""

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


def read_relations(text: str, *, names: list[str], faithful: bool) -> Reading[tuple[tuple[str, float], ...]]:
    """Read the relations that a reply names with their scores, best first; none if the reply says "None"."""
    known = {normalise(name): name for name in names}
    found: dict[str, float] = {}
    for line in text[-20_000:].splitlines():
        match = _FORM.search(line) or (None if faithful else _LOOSE.match(line))
        name = match and (match[1] if faithful else known.get(normalise(match[1])))
        if match and name in names:
            found.setdefault(name, min(float(match[2]), 1.0))
    if not found and not faithful and _NONE.fullmatch(text.strip()):
        return Reading(())
    ordered = tuple(sorted(found.items(), key=lambda pair: -pair[1]))
    return Reading(ordered or None, False, "It rates none of the relations in the form that was asked for.")


def read_entities(text: str, *, size: int, faithful: bool) -> Reading[tuple[float | None, ...]]:
    """Read the scores of `size` entities, in their order."""
    numbers = re.findall(r"\b[01](?:\.\d+)?\b|\B\.\d+\b", text.rsplit("Score:", 1)[-1][:5000])
    if len(numbers) == size:
        return Reading(tuple(map(float, numbers)), False, "")
    if faithful:
        return Reading(None, False, f"It does not give {size} numbers.")
    return read_scores(text, size=size)


def read_sufficient(text: str, *, faithful: bool) -> Reading[tuple[str, ...]]:
    """Read whether the triples are enough, and if so the answers; () if they are not enough."""
    braces = _BRACES.findall(text[:20_000])
    verdict = next((b.strip().lower() for b in braces if b.strip().lower() in ("yes", "no")), None)
    if faithful:
        # the published program reads the first text in braces as the verdict, and all later ones as answers
        verdict = braces[0].strip().lower() if braces else None
    if verdict == "no":
        return Reading((), False, "")
    if verdict != "yes":
        return Reading(None, False, "It begins neither with {Yes} nor with {No}.")
    return read_answer(text, faithful=faithful)


def read_answer(text: str, *, faithful: bool) -> Reading[tuple[str, ...]]:
    """Read the answers in braces; several in one pair of braces are separated by semicolons."""
    braces = [b for b in _BRACES.findall(text[-20_000:]) if b.strip().lower() not in ("yes", "no")]
    if braces and not faithful and _OBJECT.match(braces[-1]):
        read = read_numbered_answers(text)
        return Reading(None if read.value is None else tuple(map(str, read.value)), read.repaired, read.problem)
    if not braces:
        return Reading(None, False, "It has no answer in braces.")
    chosen = braces if faithful else braces[-1:]
    parts = [part.strip()[:500] for each in chosen for part in each.split(";")]
    return Reading(tuple(dict.fromkeys(part for part in parts if part)) or None, False, "The braces are empty.")
