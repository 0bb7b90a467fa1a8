"""Reader of the numbers in a reply that select items of the prompt; numbers without an item are ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from kgqa.llm.replies.json_values import Reading, find_key, key_name, without_objects
from kgqa.llm.replies.reply import Reply
from kgqa.rank.tournaments.chooser import AnsweringPick

_LIST_KEYS = (
    *("selected", "selection", "final answer", "answer", "answers", "indices", "indexes", "index", "paths"),
    *("relations", "entities", "candidates", "ranking", "ranked", "order", "choices", "choice", "numbers", "ids"),
    *("top", "best", "result", "output", "list", "relevant"),
)
INDEX_KEYS = ("index", "number", "id", "path", "candidate", "relation", "entity", "no", "i")
_NOUN = r"(?:paths?|relations?|candidates?|options?|entit(?:y|ies)|items?|numbers?|index|indices|indexes|nos?\.)"
_LABEL = re.compile(
    r"(?:^|\n|(?<=[.!?;] ))[^\n:]{0,60}"
    r"\b(?:answers?|final|select\w*|chosen|choices?|choose|pick\w*|rank\w*|order|output|"
    r"results?|best|top|indices|indexes|numbers|(?:most )?relevant|useful)\b[^\n:.\[\]]{0,40}(?::|=|\b(?:is|are)\b)",
    re.IGNORECASE,
)
_BRACKETS = re.compile(r"\[([^\[\]]{0,6000})\]")
_RANGE = re.compile(r"\d+ ?(?:-|\u2013|\u2014|\.\.+|to\b|through\b) ?\d+", re.IGNORECASE)
_PLURAL = re.compile(r"\W*\d+ (?:paths|relations|candidates|options|entities|items)\b", re.IGNORECASE)
_NONE = re.compile(
    r"\W*(?:none|nothing|n/a|null|empty(?: list)?|no (?:paths?|relations?|entit(?:y|ies)|candidates?))"
    r"(?: of (?:them|(?:the|these)(?: \w+){0,3}))?(?: (?:is|are) (?:relevant|useful|helpful|suitable))?\W*",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|never|cannot|irrelevant|reject\w*|exclud\w+|discard\w*|ignor\w+)\b|n't\b", re.IGNORECASE)

_List = tuple[int, list[int | None], bool]
"""The position of a list in the text, its numbers (None: not a whole number), and whether it was repaired."""


def indices(size: int, k: int, *, answering: bool = False) -> Reply[list[int]]:
    """Return the form of a list of at most `k` of `size` numbered items; see `read_indices`."""
    return Reply(partial(read_indices, size=size, k=k, answering=answering))


def read_indices(text: str, *, size: int, k: int, answering: bool = False) -> Reading[list[int]]:
    """Read which of `size` numbered items a reply selects, best first.

    Args:
        text: A reply, of any length and content.
        size: Number of items in the prompt, numbered from 1.
        k: Most items to return; a longer list is cut.
        answering: Whether a reply such as {"answer": [2, 5]} says that the items answer the question; it then is an
            `AnsweringPick`, of any length.

    Returns:
        Distinct indices from 0 to size - 1. The last list in JSON, after a label or on its own line counts; without
        one, the last list of several numbers in brackets. Empty if the reply states that no item fits. No value if
        there is no list, or no number in the list is from 1 to `size`. Never raises, whatever the text.
    """
    text, objects = without_objects(text)
    text = _BRACKETS.sub(lambda bracket: bracket[0].replace("\n", " "), text)
    lists = [(at, numbers, v.repaired) for at, v in objects if (numbers := _from_json(v.value)) is not None]
    lists += [*_labelled(text), *_lines(text)] or ([] if lists else _in_sentences(text))
    if not lists:
        return Reading(None, problem=f"The reply has no list of numbers; give one such as [2, 1], at most {k} long.")
    _, numbers, repaired = max(lists, key=lambda each: each[0])
    known = [number - 1 for number in dict.fromkeys(numbers) if number is not None and 1 <= number <= size]
    if numbers and not known:
        return Reading(None, problem=f"No number in the reply's list is from 1 to {size}; give a list of such numbers.")
    named = [value.value for _, value in objects if isinstance(value.value, dict)][-1:] if answering and known else []
    if any(key_name(key) in ("answer", "answers") for each in named for key in each):
        return Reading(AnsweringPick(known), repaired or len(known) < len(numbers))
    return Reading(known[:k], repaired or len(known[:k]) < len(numbers))


def _from_json(value: Any) -> list[int | None] | None:
    """Return the numbers in a JSON value: under a known key of an object, in its only list, or in a list of objects."""
    if isinstance(value, dict):
        there, inner = find_key(value, _LIST_KEYS)
        if not there:
            lists = [each for each in value.values() if isinstance(each, list)]
            if len(lists) != 1:
                return None
            inner = lists[0]
        value = [] if inner is None else inner if isinstance(inner, list) else [inner]
        if len(value) == 1 and isinstance(value[0], str):
            return _numbers(value[0])
    items = (find_key(each, INDEX_KEYS)[1] if isinstance(each, dict) else each for each in value[:1000])
    return [item_number(each) for each in items]


def item_number(value: Any) -> int | None:
    """Return the number in a JSON value such as 3, "3" or "[Path 3]"; None for any other value."""
    text = str(value)[:100].strip(" *_`#.()[]") if isinstance(value, str | int) else ""
    found = re.fullmatch(r"(?:[a-z]+[ _-]?)?[#\[(]{0,2}(\d{1,9})(?: \(.*)?", text, re.ASCII | re.IGNORECASE)
    return int(found[1]) if found else None


def _numbers(content: str) -> list[int | None] | None:
    """Return the numbers in a text of only numbers, [] for a text that means none; None for any other text."""
    if _NONE.fullmatch(content[:200]) or re.fullmatch(r"[\s*_`]*\[\s*\][\s*_`.]*", content):
        return []
    content = re.sub(r"\([^()\d]{0,200}[^()]{0,200}\)", " ", content) if re.search(r"\d ?\(", content) else content
    if _PLURAL.match(content):
        return None
    numbers: list[int | None] = []
    for part in re.split(r"[\s,;>&|()\[\]{}]+|\band\b", _RANGE.sub("?", content)):
        token = part.strip("*_`\"'$#\\.")
        if re.fullmatch(r"\d{1,9}", token, re.ASCII):
            numbers.append(None if part.startswith("-") else int(token))
        elif re.fullmatch(r"\?|[+-]?[\d.]*\d[\d.]*(?:e[+-]?\d+)?%?", token, re.ASCII):
            numbers.append(None)
        elif token and not re.fullmatch(_NOUN + "|boxed", token, re.IGNORECASE):
            return None
    return numbers or None


def _labelled(text: str) -> Iterator[_List]:
    for label in _LABEL.finditer(text):
        rest = text[label.end() : label.end() + 2000].lstrip(" \n*_`").split("\n")[0]
        numbers = _numbers(re.split(r",? (?:because|since|as)\b|\. ", rest)[0])
        if numbers is not None and not _NOT.search(label.group()):
            yield label.end(), numbers, not rest.startswith("[")


def _lines(text: str) -> list[_List]:
    """Return the lists on lines of only numbers; consecutive lines form one list."""
    found: list[_List] = []
    at, joined = 0, False
    for line in text.split("\n"):
        # "1. path 3" is not the list 1, 3
        counted = len(line) > 4_000 or re.match(r"\W*\d{1,9}[.)] \S", line)
        numbers = None if counted or not line.strip(" -*") else _numbers(re.sub(r"^[-*\u2022] ", "", line))
        if joined and numbers:
            found[-1][1].extend(numbers)
        elif numbers is not None:
            found.append((at, numbers, not line.startswith("[")))
        joined = numbers is not None
        at += len(line) + 1
    return found


def _in_sentences(text: str) -> Iterator[_List]:
    """Yield the lists of several numbers in brackets within a sentence without a negation."""
    for bracket in _BRACKETS.finditer(text):
        before = re.split(r"[.;!?\n]", text[max(0, bracket.start() - 200) : bracket.start()])[-1]
        numbers = _numbers(bracket[0])
        if numbers is not None and len(numbers) != 1 and not _NOT.search(before):
            yield bracket.start(), numbers, False
