"""Reads what models reply. No text makes these functions raise, and what can be read two ways has no value.

read_indices   which of the numbered things were selected
read_choice    which of a few options; `read_verdict` for yes and no
read_scores    a score for each numbered thing
read_answers   the answers to a question, as text
read_own_answers  those of a model that is asked here: entities of a numbered list, or text
read_json      the last JSON in a reply
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.llm.replies.choice_reply import read_choice, read_verdict
from kgqa.llm.replies.json_reply import (
    LOOKED_AT,
    OBJECT,
    Reading,
    find_key,
    has_object,
    json_values,
    key_name,
    last_part,
    plain,
    read_json,
    without_objects,
)
from kgqa.llm.replies.number_reply import INDEX_KEYS, read_indices
from kgqa.words import clean

__all__ = [
    "Reading",
    "read_answers",
    "read_choice",
    "read_indices",
    "read_json",
    "read_own_answers",
    "read_scores",
    "read_verdict",
]

MOST_ANSWERS = 200
LONGEST_ANSWER = 500

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

_ANSWER_KEYS = ("answers", "final answers", "final answer", "answer", "entities", "results", "result")
_NAME_KEYS = ("answer", "name", "entity", "label", "text", "value", "id")
_ANSWER_LABEL = re.compile(
    r"(?:^|(?<=\n)|(?<=[.!?] ))[*_`#> ]{0,8}(?:the )?(?:final )?answers?(?: (?:is|are))?[*_` ]{0,4}[:=]", re.IGNORECASE
)
_NO_ANSWER = ("", "none", "null", "n/a", "unknown", "no answer", "[]")


def read_scores(text: str, *, size: int) -> Reading[tuple[float | None, ...]]:
    """The scores that a reply gives to `size` things.

    Args:
        text: a reply, of any length and content; it names them by numbers from 1 on, or scores all in their order.
        size: how many there are.

    Returns:
        `size` scores from 0 to 1, higher is better; None for each that has none, or one that is no number or out of
        range. Where any is above 1 and all fit they are taken to be out of 10, else out of 100. No value without a
        single score, or with a list of scores that is not `size` long. Never raises, whatever the text.
    """
    # the number of the only one, which would pass for a list of one score
    given, mended = ({}, True) if size == 1 and _ONLY_ONE.search(text[-LOOKED_AT:]) else _scores_in_json(text, size)
    if given is None:
        return Reading(None, problem=f"The reply needs exactly {size} scores, one for each candidate in their order.")
    if not given:
        given, mended = _scores_in_lines(text, size), True
    if 0 in given:  # numbered from 0: which is which cannot be told
        given = {}
    known = {index: score for index, score in given.items() if 1 <= index <= size}
    bare = [score for score, fixed in known.values() if not fixed and math.isfinite(score)]
    highest = max(bare, default=0.0)
    scale = 1.0 if highest <= 1 or min(bare) < 0 else 10.0 if highest <= 10 else 100.0 if highest <= 100 else 1.0
    scores = [
        score if fixed else score / scale for score, fixed in (known.get(i + 1, (math.nan, True)) for i in range(size))
    ]
    if not any(0 <= score <= 1 for score in scores):
        return Reading(
            None, problem=f"The reply has no scores from 0 to 1; give {size}, one for each candidate in their order."
        )
    kept = tuple(score if 0 <= score <= 1 else None for score in scores)
    return Reading(kept, repaired=mended or len(known) < len(given) or scale != 1)


_ONLY_ONE = re.compile(r"^\s*\[1\]\s*[:=-]?\s*[\d.]+\s*%?\s*$", re.MULTILINE)
Scored = dict[int, tuple[float, bool]]
"""Number of a thing to its score, and whether that is a fraction for certain (50 %, 5/10)."""


def _score(value: Any) -> tuple[float, bool]:
    if isinstance(value, dict):
        value = find_key(value, _SCORE_OF_ONE)[1]
    if isinstance(value, str):
        found = _SCORE.fullmatch(value.strip()[:60])
        return _matched(found.groups()) if found else (math.nan, False)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e9:
        return math.nan, False
    return float(value), False


def _matched(groups: Sequence[str | None]) -> tuple[float, bool]:
    number, percent, most = groups
    value = float(number or "nan")
    if percent:
        return value / 100, True
    return (value / int(most), True) if most and int(most) else (value, False)


def _scores_in_json(text: str, size: int) -> tuple[Scored | None, bool]:
    """What JSON in a reply says, and whether it was mended; None for a list of another length than wanted."""
    given: Scored = {}
    mended = False
    for found in json_values(last_part(text)):
        value = found.value
        if isinstance(value, dict):
            there, inner = find_key(value, _SCORE_KEYS)
            value = inner if there else value
        if isinstance(value, list) and value and not has_object(value):
            keyed = value is not found.value
            if len(value) == size:
                given, mended = dict(enumerate(map(_score, value), 1)), found.repaired
            elif keyed:
                return None, False
        elif isinstance(value, list | dict):
            numbered = dict(_numbered(value))
            given.update(numbered)
            mended = mended or (bool(numbered) and found.repaired)
    return given, mended


def _numbered(value: Any) -> Iterator[tuple[int, tuple[float, bool]]]:
    items = value[:1000] if isinstance(value, list) else [value]
    for each in items:
        there, index = find_key(each, INDEX_KEYS)
        if there and isinstance(each, dict) and (number := _item(index)) is not None:
            yield number, _score(each)
        elif isinstance(each, dict):
            yield from ((number, _score(inner)) for key, inner in each.items() if (number := _item(key)) is not None)


def _item(key: Any) -> int | None:
    if isinstance(key, int) and not isinstance(key, bool):
        return key if abs(key) < 10**9 else None
    found = re.fullmatch(r"(?:[a-z]+ ?)?#?\[?(\d{1,9})\]?", key_name(key), re.ASCII) if isinstance(key, str) else None
    return int(found[1]) if found else None


def _scores_in_lines(text: str, size: int) -> Scored:
    given: Scored = {}
    for line in plain(text).split("\n"):
        line = line[:2000]
        pairs = list(_PAIRS.finditer(line)) if "," in line or ";" in line else []
        if len(pairs) > 1:
            given.update({int(pair[1]): _matched(pair.groups()[1:]) for pair in pairs})
            continue
        found = next((match for pattern in _LINES if (match := pattern.match(line))), None)
        if found:
            given[int(found[1])] = _matched(found.groups()[1:])
        elif not given:
            numbers = [_SCORE.fullmatch(each.strip(" *_`.[]")) for each in line.split(":")[-1].split(",")]
            if len(numbers) == size and size > 1 and all(numbers):
                return {i: _matched(number.groups()) for i, number in enumerate(numbers, 1) if number}
    return given


def read_answers(text: str) -> Reading[tuple[str, ...]]:
    """The answers a reply gives to a question, numbers as text.

    They are looked for in JSON, then behind a last "Answer:", then in braces (`{a}`, as in Think-on-Graph).

    Returns:
        At most 200 answers of at most 500 characters, each on one line and once; empty where the reply says that
        there are none. No value where none of the three forms is there. Never raises, whatever the text.
    """
    items, mended = _items(text)
    if items is None:
        return Reading(None, problem='The reply gives no answers in the form {"answers": ["a name"]}.')
    return _answers((item.text for item in items), mended=mended)


def read_own_answers(text: str, *, size: int = 0) -> Reading[tuple[int | str, ...]]:
    """The answers of a model that is shown a numbered list of `size` entities, or none.

    A number without quotes is a place in that list and never an answer itself, wherever it stands: `[1]`,
    `{"answer": 1}`, "Answer: 1". A number in quotes is text: it may answer "how many?". So is a date.

    Args:
        text: a reply, of any length and content.
        size: how many entities were numbered, from 1 on.

    Returns:
        Places from 0 to size - 1 and texts as of `read_answers`, each once; empty where the reply says that there are
        none. Numbers of no entity are left out of a list of places. No value where a number can be neither a place
        nor left out, or no answers were found. Never raises, whatever the text.
    """
    items, mended = _items(text)
    if items is None:
        example = '[2, 5]} or {"answers": ["a name"]}' if size else '["a name"]}'
        return Reading(None, problem=f'It is not of the form {{"answers": {example}.')
    found: dict[int | str, None] = {}
    left_out: list[int | None] = []
    for item in items[:MOST_ANSWERS]:
        places = _places(item)
        if places is None:
            answer = item.text if item.quoted is None else item.quoted
            found.update(dict.fromkeys(_answers([answer], mended=False).value or ()))
            continue
        known = [place for place in places if place is not None and 1 <= place <= size]
        left_out += [place for place in places if place not in known]
        found.update((place - 1, None) for place in known)
    only_places = bool(found) and all(isinstance(each, int) for each in found)
    if left_out and (None in left_out or not only_places):
        listed = f"Give entities by their numbers, which go from 1 to {size}, and all else" if size else "Give answers"
        return Reading(None, problem=f'{listed} as text in quotes, numbers too: {{"answers": ["a name", "1984"]}}.')
    return Reading(tuple(found), repaired=mended or bool(left_out) or len(found) < len(items))


@dataclass(frozen=True, slots=True)
class _Item:
    """One of the answers in a reply.

    Attributes:
        text: as it stands there, mostly without quotes.
        quoted: the same without any, where it stands in quotes; else None.
        place: it begins with a number in brackets.
    """

    text: str
    quoted: str | None = None
    place: bool = False


def _items(text: str) -> tuple[list[_Item] | None, bool]:
    """The answers in a reply as they stand there, None where there is no form of them, and whether they were mended."""
    raw = last_part(text)
    for found in reversed(json_values(raw)):
        there, value = find_key(found.value, _ANSWER_KEYS) if has_object(found.value) else (False, None)
        alone = raw[: found.start].rstrip(" *`")[-1:] in ("", "\n", ":") and not raw[found.end :].strip(" \n`*.")
        if not there and isinstance(found.value, list) and alone:
            there, value = True, found.value
        if there:
            return list(_in_json(value, found.text if found.repaired else None)), found.repaired
    text, _ = without_objects(raw)
    labels = list(_ANSWER_LABEL.finditer(text))
    rest = text[labels[-1].end() :].strip(" \n*_`" + OBJECT) if labels else ""
    if rest:
        lines = rest.split("\n")
        listed = [line for line in lines if re.match(r"[-*\u2022] |\d{1,3}[.)] ", line)]
        if listed and listed[0] is lines[0]:
            texts = [re.sub(r"^(?:[-*\u2022]|\d{1,3}[.)]) ", "", line) for line in listed]
            return [_in_prose(each, each) for each in texts], True
        said = re.sub(r"[{}\[\]]", "", lines[0]).strip(" *_`")
        pairs = zip(said.split(";"), lines[0].split(";"), strict=True)
        return [_in_prose(each.strip(" '\""), as_given) for each, as_given in pairs], True
    braced = [each for line in text.split("\n") if (each := _in_braces(line))]
    if braced:
        return [_in_prose(each, each) for each in braced[-1]], True
    return None, False


def _in_braces(line: str) -> list[str]:
    """What stands in braces; not the yes or no of a verdict."""
    return [each for each in re.findall(r"\{([^{}]{1,600})\}", line) if each.strip().casefold() not in ("yes", "no")]


def _in_json(value: Any, mended: str | None) -> Iterator[_Item]:
    """The answers in a value of JSON; `mended`: the text it was made of, where that was no valid JSON."""
    for each in value if isinstance(value, list) else [value]:
        inner = each if isinstance(each, list) else [find_key(each, _NAME_KEYS)[1] if isinstance(each, dict) else each]
        for item in inner:
            if isinstance(item, str):
                quoted = mended is None or any(f"{mark}{item}{mark}" in mended for mark in "\"'`")
                parts = re.split(r"[;\n]", item) if item is value else [item]
                yield from (_Item(part, part if quoted else None, bool(_PLACE.match(part))) for part in parts)
            elif isinstance(item, bool):
                yield _Item(str(item).lower())
            elif isinstance(item, int | float):
                yield _Item(str(item))
            elif isinstance(each, dict):  # one without a name
                yield _Item("")


def _in_prose(text: str, as_given: str) -> _Item:
    quoted = _QUOTED.fullmatch(as_given)
    return _Item(text, quoted[2] if quoted else None, bool(_PLACE.match(as_given)))


_QUOTED = re.compile(r"""[\s*_]*(["'])([^"']*)\1[\s*_.,!]*""")
_PLACE = re.compile(r"\W*\[\s*\d{1,5}\s*\]")
_BETWEEN = re.compile(r"[\s,;&|()\[\]{}]+|\b(?:and|or)\b", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan|\d+(?:-|\u2013|\u2014|\.\.+)\d+|to|through")
_THOUSANDS = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])")


def _places(item: _Item) -> list[int | None] | None:
    """The numbers that an answer consists of, None for each that cannot be a place in a list; None for text."""
    if item.place:  # "[2]", or "[2] a name", of which either may be meant
        number = re.fullmatch(r"\W*(\d{1,5})\W*", item.text, re.ASCII)
        return [int(number[1]) if number else None]
    if item.quoted is not None:
        return None
    tokens = _BETWEEN.split(_THOUSANDS.sub("0.0", item.text[:LONGEST_ANSWER]))
    tokens = [token for each in tokens if (token := each.strip("*_`#."))]
    if not all(_NUMBER.fullmatch(token) for token in tokens) or tokens in (["to"], ["through"]):
        return None
    return [int(token) if re.fullmatch(r"\d{1,9}", token, re.ASCII) else None for token in tokens] or [None]


def _answers(texts: Iterable[str], *, mended: bool) -> Reading[tuple[str, ...]]:
    given = list(texts)
    cleaned = [clean(each[: 4 * LONGEST_ANSWER])[:LONGEST_ANSWER].strip() for each in given]
    kept = tuple(dict.fromkeys(each for each in cleaned if each))[:MOST_ANSWERS]
    if len(kept) == 1 and kept[0].strip(" .").casefold() in _NO_ANSWER:
        return Reading((), repaired=mended)
    return Reading(kept, repaired=mended or len(kept) < len(given) or any(len(each) > LONGEST_ANSWER for each in given))
