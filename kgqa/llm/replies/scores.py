"""Reader of the scores in a reply, one for each numbered item of the prompt."""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

from kgqa.llm.replies.indices import INDEX_KEYS, item_number
from kgqa.llm.replies.json_values import Reading, find_key, has_object, json_values, last_part, plain_text
from kgqa.llm.replies.reply import Reply

_SCORE_KEYS = ("scores", "ratings", "relevance scores")
_SCORE_OF_ONE = ("score", "rating", "relevance", "value")
_VALUE = r"([+-]?(?:\d{1,9}(?:\.\d{0,30})?|\.\d{1,30})(?:e[+-]?\d{1,3})?)(?: ?(%)| ?/ ?(\d{1,3})\b)?(?![\w.]\w|\w)"
_SCORE = re.compile(_VALUE, re.IGNORECASE | re.ASCII)
_MARKS = "[*_`]{0,4}"
_ITEM = rf"(?:[-*\u2022] ?)?{_MARKS}(?:(?:path|relation|candidate|option|entity) )?#?[\[(]?(\d{{1,9}})"
_VALUE_ENDS = r"(?= ?(?:$|[(,;:.|*_`\u2013\u2014-]|because|since))"
_LINES = (
    re.compile(rf"{_ITEM}\b[^\n]*?\bscore[*_`\"']* ?(?::|=|is|of)? ?[*_`\"']*{_VALUE}", re.IGNORECASE | re.ASCII),
    re.compile(
        rf"{_ITEM}[\])]?{_MARKS}(?: ?(?:->|[:=)>|,-])|\.{_MARKS}(?= )|(?= [\d.]+$))[ *_`]{{0,4}}{_VALUE}{_VALUE_ENDS}",
        re.IGNORECASE | re.ASCII,
    ),
    re.compile(
        rf"{_ITEM}\b[^\n]*(?:[:=(|>\[]| -|\u2013|\u2014) ?{_MARKS}{_VALUE}[)\]*_`.]*$", re.IGNORECASE | re.ASCII
    ),
)
_PAIRS = re.compile(rf"(?:\[?(\d{{1,9}})\]? ?[:=] ?{_VALUE}(?:[,;] ?|$))", re.IGNORECASE | re.ASCII)


def scores(size: int) -> Reply[tuple[float | None, ...]]:
    """Return the form of scores of `size` items."""
    return Reply(partial(read_scores, size=size))


def read_scores(text: str, *, size: int) -> Reading[tuple[float | None, ...]]:
    """Read the scores that a reply gives to `size` items.

    Args:
        text: A reply, of any length and content. It gives scores by item number, or for all items in order.
        size: Number of items in the prompt, numbered from 1.

    Returns:
        `size` scores from 0 to 1, higher is better; None for an item whose score is missing, invalid or out of range.
        If a score is above 1, all scores are divided by 10, or by 100 if one is above 10. No value if there is no
        score, or if a list of scores does not have length `size`. Never raises, whatever the text.
    """
    given, repaired = _scores_in_json(last_part(text), size)
    if not given:
        given, repaired = _scores_in_lines(text, size), True
    # if the reply numbers the items from 0, scores cannot be assigned to items safely
    known = {} if 0 in given else {index: score for index, score in given.items() if index <= size}
    bare = [score for score, divisor in known.values() if not divisor and math.isfinite(score)]
    highest, lowest = max(bare, default=0.0), min(bare, default=0.0)
    scale = 1 if highest <= 1 or highest > 100 or lowest < 0 else 10 if highest <= 10 else 100
    scores = [score / (divisor or scale) for score, divisor in (known.get(i + 1, (math.nan, 1)) for i in range(size))]
    kept = tuple(score if 0 <= score <= 1 else None for score in scores)
    if not any(score is not None for score in kept):
        return Reading(
            None, problem=f"The reply has no scores from 0 to 1; give {size}, one for each candidate in their order."
        )
    return Reading(kept, repaired=repaired or len(known) < len(given) or scale != 1)


_ONLY_ONE = re.compile(r"^\s*\[1\]\s*[:=-]?\s*[\d.]+\s*%?\s*$", re.MULTILINE)
NumberedScores = dict[int, tuple[float, int]]
"""Map from an item's number to its score as written and the number to divide it by (50 %, 5/10); 0 if there is none."""


def _score(value: Any) -> tuple[float, int]:
    if isinstance(value, dict):
        value = find_key(value, _SCORE_OF_ONE)[1]
    found = _SCORE.fullmatch(str(value).strip()[:60]) if isinstance(value, str | int | float) else None
    return _matched(*found.groups("")) if found else (math.nan, 1)


def _matched(number: str, percent: str, maximum: str) -> tuple[float, int]:
    return float(number), 100 if percent else int(maximum or 0)


def _scores_in_json(text: str, size: int) -> tuple[NumberedScores, bool]:
    """Return the scores in JSON values and whether a value was repaired; a list of the wrong length has none."""
    given: NumberedScores = {}
    repaired = False
    for found in json_values(text):
        there, inner = find_key(found.value, _SCORE_KEYS)
        value = inner if there else found.value
        numbered: NumberedScores = {}
        if not isinstance(value, list) or has_object(value):
            for each in value[:1000] if isinstance(value, list) else [value]:
                index = find_key(each, INDEX_KEYS)[1]
                pairs = {} if not isinstance(each, dict) else each if item_number(index) is None else {index: each}
                numbered |= {n: _score(inner) for key, inner in pairs.items() if (n := item_number(key)) is not None}
        # for a single item, "[1]" is the item's number, not a list of one score
        elif len(value) == size and not (size == 1 and _ONLY_ONE.search(text)):
            given, numbered, repaired = {}, dict(enumerate(map(_score, value), 1)), False
        given |= numbered
        repaired = repaired or (bool(numbered) and found.repaired)
    return given, repaired


def _scores_in_lines(text: str, size: int) -> NumberedScores:
    given: NumberedScores = {}
    for line in (each[:2000] for each in plain_text(text).split("\n")):
        pairs = _PAIRS.findall(line)
        if len(pairs) < 2:
            pairs = next(([match.groups("")] for pattern in _LINES if (match := pattern.match(line))), [])
        given.update((int(number), _matched(*score)) for number, *score in pairs)
        if not given:
            listed = [_score(each.strip(" *_`.[]")) for each in line.split(":")[-1].split(",")]
            if len(listed) == size and size > 1 and not any(math.isnan(score) for score, _ in listed):
                return dict(enumerate(listed, 1))
    return given
