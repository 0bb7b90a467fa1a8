"""Readers of the answers in a reply: texts, numbers of entities listed in the prompt, or texts that cite results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kgqa.llm.replies.json_values import (
    OBJECT,
    Reading,
    find_key,
    has_object,
    json_values,
    last_part,
    without_objects,
)
from kgqa.text.words import clean

MAX_ANSWERS = 200
MAX_CITED = 20
MAX_ANSWER_CHARS = 500

_ANSWER_KEYS = ("answers", "final answers", "final answer", "answer", "entities", "results", "result")
_NAME_KEYS = ("answer", "name", "entity", "label", "text", "value", "id")
_ANSWER_LABEL = re.compile(
    r"(?:^|(?<=\n)|(?<=[.!?] ))[*_`#> ]{0,8}(?:the )?(?:final )?answers?(?: (?:is|are))?[*_` ]{0,4}[:=]", re.IGNORECASE
)
_NO_ANSWER = re.compile(
    r"[-?.\u2013\u2014\u2026\[\]\s]*|[\W_]*(?:none|nil|null|nan|n/?a|unknown|nothing|unanswerable|"
    r"no (?:answers?|information|data|results?)|none of (?:the|these|them)\b.{0,40}|"
    r"not (?:known|found|available|specified|stated|mentioned|given)|(?:i|we) (?:do not|don['\u2019]t|can ?not|"
    r"can['\u2019]t|could not) (?:know|answer|say|determine|find|tell)\b.{0,80})[\W_]*",
    re.IGNORECASE,
)


_QUOTED = re.compile(r"""[\s*_]*(["'])([^"']*)\1[\s*_.,!]*""")
_BRACKETED_NUMBER = re.compile(r"\W*\[\s*\d{1,5}\s*\]")
_LISTED = re.compile(r"(?:[-*\u2022]|\d{1,3}[.)]) ")
_BRACED = re.compile(r"\{(?!\s*(?:yes|no)\s*\})([^{}]{1,600})\}", re.IGNORECASE)
"""A text in braces; "yes" and "no" are verdicts, no answers."""
_BETWEEN = re.compile(r"[\s,;&|()\[\]{}]+|\b(?:and|or)\b", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?|inf|nan|\d+(?:-|\u2013|\u2014|\.\.+)\d+|to|through")
_THOUSANDS = re.compile(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])")
_CITED = re.compile(
    r"[\[【](\s{0,5}(?:result\s{1,5})?\d{1,6}(?:\s{0,5}[,;–-]\s{0,5}\d{1,6}){0,50}\s{0,5})[\]】]", re.IGNORECASE
)
_DIGITS = re.compile(r"\d{1,6}")
_CITED_LABEL = re.compile(r"(?:the )?(?:final )?answers?(?: is| are)?: ?", re.IGNORECASE)


@dataclass(frozen=True)
class AnswersReply:
    """A reply of only answers, for its schema."""

    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """One of the answers in a reply.

    Attributes:
        text: The answer, without quotes.
        quoted: Whether it is in quotes.
        is_number: Whether it begins with a number in brackets.
    """

    text: str
    quoted: bool = False
    is_number: bool = False


def read_answers(text: str) -> Reading[tuple[str, ...]]:
    """Read the answers in a reply as strings; a number is also returned as a string.

    Answers are searched for in JSON, then after the last "Answer:", then in braces (`{a}`, as in Think-on-Graph).

    Returns:
        At most 200 distinct answers of at most 500 characters, each on one line; empty if the reply states that there
        is no answer. No value if the reply has none of the three forms. Never raises, whatever the text.
    """
    items, repaired = _items(text)
    if items is None:
        return Reading(None, problem='The reply gives no answers in the form {"answers": ["a name"]}.')
    cleaned = [_clean(item.text) for item in items]
    longer = any(len(item.text) > MAX_ANSWER_CHARS for item in items)
    return Reading(_names(cleaned), repaired or longer or len({*cleaned} - {""}) < len(items))


def read_names(value: Any) -> tuple[str, ...]:
    """Return the answers in a JSON value, such as a list of names; empty if it states that there is none."""
    return _names(_clean(item.text) for item in _in_json(value, None))


def _names(texts: Iterable[str]) -> tuple[str, ...]:
    kept = [text for text in dict.fromkeys(texts) if text][:MAX_ANSWERS]
    return tuple(text for text in kept if not is_no_answer(text))


def _clean(text: str) -> str:
    return clean(text[: 4 * MAX_ANSWER_CHARS])[:MAX_ANSWER_CHARS].strip()


def read_numbered_answers(text: str, *, size: int = 0) -> Reading[tuple[int | str, ...]]:
    """Read the answers in a reply to a prompt with a numbered list of `size` entities.

    An unquoted number always refers to the entity with this number: `[1]`, `{"answer": 1}`, "Answer: 1". A number in
    quotes is read as a string, because it may answer "how many?"; a date is read as a string too.

    Args:
        text: A reply, of any length and content.
        size: Number of entities in the prompt's list, numbered from 1; 0 if there is no list.

    Returns:
        Distinct indices from 0 to size - 1, and strings as in `read_answers`; empty if the reply states that there is
        no answer. In a list of numbers, a number without an entity is ignored; in any other reply, such a number makes
        the reply unusable. No value if the reply is unusable or has no answers. Never raises, whatever the text.
    """
    items, repaired = _items(text)
    if items is None:
        example = '[2, 5]} or {"answers": ["a name"]}' if size else '["a name"]}'
        return Reading(None, problem=f'It is not of the form {{"answers": {example}.')
    found: dict[int | str, None] = {}
    left_out: list[int | None] = []
    for item in items[:MAX_ANSWERS]:
        numbers = _numbers(item)
        if numbers is None:
            found |= dict.fromkeys(_names([_clean(item.text)]))
        for number in numbers or ():
            if number is not None and 1 <= number <= size:
                found[number - 1] = None
            else:
                left_out.append(number)
    only_numbers = bool(found) and all(isinstance(each, int) for each in found)
    if left_out and (None in left_out or not only_numbers):
        listed = f"Give entities by their numbers, which go from 1 to {size}, and all else" if size else "Give answers"
        return Reading(None, problem=f'{listed} as text in quotes, numbers too: {{"answers": ["a name", "1984"]}}.')
    return Reading(tuple(found), repaired=repaired or bool(left_out) or len(found) < len(items))


def _numbers(item: _Item) -> list[int | None] | None:
    """Return the numbers in an answer of only numbers (None for a number that is no index); None for other answers."""
    if item.is_number:  # "[2]", or "[2] a name", which is ambiguous
        number = re.fullmatch(r"\W*(\d{1,5})\W*", item.text, re.ASCII)
        return [int(number[1]) if number else None]
    tokens = _BETWEEN.split(_THOUSANDS.sub("0.0", clean(item.text[:MAX_ANSWER_CHARS])))
    tokens = [token for each in tokens if (token := each.strip("*_`#."))]
    if item.quoted or not all(map(_NUMBER.fullmatch, tokens)) or tokens in (["to"], ["through"]):
        return None
    return [int(token) if re.fullmatch(r"\d{1,9}", token, re.ASCII) else None for token in tokens] or [None]


def is_no_answer(text: str) -> bool:
    """Return whether a text says that there is no answer: "none", "N/A", "I do not know"."""
    return bool(_NO_ANSWER.fullmatch(text))


def _items(text: str) -> tuple[list[_Item] | None, bool]:
    """Return the answers as written, or None if the reply has none of the three forms, and whether it was repaired."""
    raw = last_part(text)
    for found in reversed(json_values(raw)):
        there, value = find_key(found.value, _ANSWER_KEYS) if has_object(found.value) else (False, None)
        alone = raw[: found.start].rstrip(" *`")[-1:] in ("", "\n", ":") and not raw[found.end :].strip(" \n`*.")
        if not there and isinstance(found.value, list) and alone:
            there, value = True, found.value
        if there:
            return list(_in_json(value, found.text if found.repaired else None)), found.repaired
    text, _ = without_objects(raw)
    return _in_prose(text), True


def _in_prose(text: str) -> list[_Item] | None:
    """Return the answers after the last label, on its line or in the list below, or else in the last line of braces."""
    rest = _ANSWER_LABEL.split(text)[1:][-1:]
    lines = rest[0].strip(" \n*_`" + OBJECT).split("\n") if rest else [""]
    if _LISTED.match(lines[0]):
        written = [_LISTED.sub("", line, count=1) for line in lines if _LISTED.match(line)]
    elif lines[0]:
        written = lines[0].split(";")
        return [_written(re.sub(r"[{}\[\]]", "", each).strip(" *_`'\""), each) for each in written]
    else:
        written = next((braced for line in reversed(text.split("\n")) if (braced := _BRACED.findall(line))), [])
    return [_written(each, each) for each in written] or None


def _written(text: str, written: str) -> _Item:
    quoted = _QUOTED.fullmatch(written)
    return _Item(quoted[2] if quoted else text, quoted is not None, bool(_BRACKETED_NUMBER.match(written)))


def _in_json(value: Any, source: str | None) -> Iterator[_Item]:
    """Yield the answers in a JSON value; `source` is the original text if it was invalid JSON, else None."""
    for each in value if isinstance(value, list) else [value]:
        inner = each if isinstance(each, list) else [find_key(each, _NAME_KEYS)[1] if isinstance(each, dict) else each]
        for item in inner:
            if isinstance(item, str):
                quoted = source is None or any(f"{mark}{item}{mark}" in source for mark in "\"'`")
                parts = re.split(r"[;\n]", item) if item is value else [item]
                yield from (_Item(part, quoted, bool(_BRACKETED_NUMBER.match(part))) for part in parts)
            elif isinstance(item, int | float):
                yield _Item(str(item).lower() if isinstance(item, bool) else str(item))
            elif isinstance(each, dict):  # an object without a name
                yield _Item("")


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """A short answer, and the numbers of the results that it cites."""

    name: str
    numbers: tuple[int, ...] = ()


def read_cited_answers(text: str, *, split: bool = True) -> tuple[CitedAnswer, ...]:
    """Read short answers separated by semicolons or line breaks; empty if the text says that there is none.

    An answer without numbers cites what the next one cites, so `Ada; Mary [2]` cites result 2 twice.

    Args:
        text: the text of an answer.
        split: whether the text may contain several answers.
    """
    protected = _CITED.sub(lambda match: f"[{','.join(_DIGITS.findall(match[1]))}]", text)
    parts = re.split(r"[;\n]", protected)[: 2 * MAX_CITED] if split else [protected]
    found: list[CitedAnswer] = []
    alone: list[int] = []
    following: list[int] = []
    for part in reversed(parts):
        numbers = [int(n) for match in _CITED.finditer(part) for n in _DIGITS.findall(match[1])]
        name = _CITED_LABEL.sub("", clean(_CITED.sub(" ", part)).strip(" -*•"), count=1)[:MAX_ANSWER_CHARS].strip()
        name = name[:-1].rstrip() if name.endswith(".") and name.count(".") == 1 and not name[-2:-1].isupper() else name
        if name and not is_no_answer(name):
            following = [*numbers, *alone] or following
            found.append(CitedAnswer(name, tuple(dict.fromkeys(following))))
            alone = []
        elif not name:  # numbers alone belong to the answer before
            alone = [*numbers, *alone]
    return tuple(reversed(found))[:MAX_CITED]
