"""Reader of the numbers in a reply that select items of the prompt; numbers without an item are ignored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kgqa.llm.replies.json_values import Reading, find_key, without_objects

_LIST_KEYS = (
    *(
        "selected",
        "selection",
        "final answer",
        "answer",
        "answers",
        "indices",
        "indexes",
        "index",
        "paths",
        "relations",
    ),
    *("entities", "candidates", "ranking", "ranked", "order", "choices", "choice", "numbers", "ids", "top", "best"),
    *("result", "output", "list", "relevant"),
)
INDEX_KEYS = ("index", "number", "id", "path", "candidate", "relation", "entity", "no", "i")
_LINE = 4_000
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
_CHOOSING = re.compile(r"\b(?:choose|pick|select|prefer|recommend|keep|is|are|=|:) ?[*_`\"'$\\]*$", re.IGNORECASE)
_NOT = re.compile(r"\b(?:not|never|cannot|irrelevant|reject\w*|exclud\w+|discard\w*|ignor\w+)\b|n't\b", re.IGNORECASE)
_MARKS = "[*_`]{0,4}"
_BULLET = rf"(?:[-*\u2022] ?)?{_MARKS}"
_NAMED = re.compile(
    rf"{_BULLET}(?:\d{{1,9}}[.):] ?)?{_MARKS}(?:\[ ?|{_NOUN} #?\[?)(\d{{1,9}})\b|"
    rf"{_BULLET}\d{{1,9}}[.):] (\d{{1,9}})\W*$",
    re.IGNORECASE | re.ASCII,
)
_NUMBERED = re.compile(rf"{_BULLET}\(?(\d{{1,9}}){_MARKS}[.):]", re.ASCII)
_MARKUP = " *_`\"'$.,;!"


def read_indices(text: str, *, size: int, k: int) -> Reading[tuple[int, ...]]:
    """Read which of `size` numbered items a reply selects, best first.

    Args:
        text: A reply, of any length and content.
        size: Number of items in the prompt, numbered from 1.
        k: Most items to return; a longer list is cut.

    Returns:
        Distinct indices from 0 to size - 1. The last complete list of a reply counts; a list on a line of its own or
        after a label has priority over a list within a sentence. Empty if the reply states that no item fits. No value
        if there is no list, or no number in the list is from 1 to `size`. Never raises, whatever the text.
    """
    numbers, repaired = _list_of(text, k)
    if numbers is None:
        return Reading(None, problem=f"The reply has no list of numbers; give one such as [2, 1], at most {k} long.")
    known = [number - 1 for number in dict.fromkeys(numbers) if number is not None and 1 <= number <= size]
    if numbers and not known:
        return Reading(None, problem=f"No number in the reply's list is from 1 to {size}; give a list of such numbers.")
    kept = tuple(known[: max(0, k)])
    return Reading(kept, repaired=repaired or len(kept) < len(numbers))


def _list_of(text: str, k: int) -> tuple[list[int | None] | None, bool]:
    """Return the numbers in the list that counts (None for a number that is not whole) and whether it was repaired."""
    text, objects = without_objects(text)
    strong: list[tuple[int, list[int | None], bool]] = []
    medium: list[tuple[int, list[int | None], bool]] = []
    for position, found in objects:
        numbers = _from_json(found.value)
        if numbers is not None:
            strong.append((position, numbers, found.repaired))
    for position, numbers, sure in _chains(text):
        (strong if sure else medium).append((position, numbers, False))
    bare = _BRACKETS.sub(lambda bracket: "x" * len(bracket[0]), text)
    strong += [(position, numbers, True) for position, numbers in (*_labelled(bare), *_lines(bare))]
    for lists in (strong, medium):
        if lists:
            _, numbers, repaired = max(lists, key=lambda each: each[0])
            return numbers, repaired
    return _listed(text, k), True


def _from_json(value: Any) -> list[int | None] | None:
    """Return the numbers in a JSON value: under a known key of an object, in its only list, or in a list of objects."""
    if isinstance(value, dict):
        there, inner = find_key(value, _LIST_KEYS)
        if not there:
            lists = [each for each in value.values() if isinstance(each, list)]
            if len(lists) != 1:
                return None
            inner = lists[0]
        if isinstance(inner, dict):
            return None
        value = [] if inner is None else inner if isinstance(inner, list) else [inner]
        if len(value) == 1 and isinstance(value[0], str):
            return [] if _NONE.fullmatch(value[0][:200]) else _numbers(value[0])
    numbers: list[int | None] = []
    for item in value[:1000]:
        each = find_key(item, INDEX_KEYS)[1] if isinstance(item, dict) else item
        if isinstance(each, int) and not isinstance(each, bool):
            numbers.append(each)
        else:
            inner_numbers = _numbers(each[:40]) if isinstance(each, str) else None
            numbers.append(inner_numbers[0] if inner_numbers and len(inner_numbers) == 1 else None)
    return numbers


def _numbers(content: str) -> list[int | None] | None:
    """Return the numbers in a text of only numbers, None for a number that is not whole; None for any other text."""
    content = re.sub(r"\([^()\d]{0,200}[^()]{0,200}\)", " ", content) if re.search(r"\d ?\(", content) else content
    if not content.strip() or _PLURAL.match(content):
        return None
    content = _RANGE.sub("?", content)
    numbers: list[int | None] = []
    for part in re.split(r"[\s,;>&|()\[\]{}]+|\band\b", content):
        token = part.strip("*_`\"'$#\\.")
        if re.fullmatch(r"\d{1,9}", token, re.ASCII):
            numbers.append(int(token))
        elif re.fullmatch(r"\?|[+-]?[\d.]*\d[\d.]*(?:e[+-]?\d+)?%?", token, re.ASCII):
            numbers.append(None)
        elif token and not re.fullmatch(_NOUN, token, re.IGNORECASE):
            return None
    return numbers or None


def _chains(text: str) -> Iterator[tuple[int, list[int | None], bool]]:
    """Yield the lists in brackets, each with whether it is alone or after a label; adjacent lists are merged."""
    chain: list[re.Match[str]] = []
    for bracket in [*_BRACKETS.finditer(text), None]:
        if bracket and (not bracket[1].strip() or _NONE.fullmatch(bracket[1]) or _numbers(bracket[1])):
            if chain and re.fullmatch(
                r"[\s>=,;&|*_`\"'-]{0,10}(?:and )?[*_`\"']*", text[chain[-1].end() : bracket.start()]
            ):
                chain.append(bracket)
                continue
            yield from _chain(text, chain)
            chain = [bracket]
    yield from _chain(text, chain)


def _chain(text: str, chain: list[re.Match[str]]) -> Iterator[tuple[int, list[int | None], bool]]:
    if not chain:
        return
    start, end = chain[0].start(), chain[-1].end()
    numbers = [number for each in chain for number in _numbers(each[1]) or ()]
    before = text[max(0, start - 200) : start].split("\n")[-1]
    after = text[end : end + 200].split("\n")[0]
    alone = not before.strip(_MARKUP + "[{(-#>") and not after.strip(_MARKUP + "]})")
    negated = _NOT.search(re.split(r"[.;!?]", before)[-1])
    if alone or (_CHOOSING.search(before) and not negated):
        yield start, numbers, True
    elif not negated and (len(numbers) > 1 or not numbers) and (len(chain) == 1 or ">" in text[start:end]):
        yield start, numbers, False


def _labelled(text: str) -> Iterator[tuple[int, list[int | None]]]:
    for label in _LABEL.finditer(text):
        rest = text[label.end() : label.end() + 2000].lstrip(" *_`").split("\n")[0]
        rest = re.split(r" (?:because|since|as)\b|\. ", rest)[0]
        if _NOT.search(label.group()):
            continue
        numbers = [] if _NONE.fullmatch(rest) else _numbers(rest)
        if numbers is not None:
            yield label.end(), numbers


def _lines(text: str) -> Iterator[tuple[int, list[int | None]]]:
    """Yield the lists on lines of only numbers; consecutive lines form one list."""
    at, found = 0, None
    for line in text.split("\n"):
        counted = len(line) > _LINE or re.match(r"\W*\d{1,9}[.)] \S", line)  # "1. path 3" is not the list 1, 3
        numbers = [] if _NONE.fullmatch(line) else None if counted else _numbers(re.sub(r"^[-*\u2022] ", "", line))
        if found is not None and numbers:
            found[1].extend(numbers)
        else:
            if found is not None:
                yield found
            found = None if numbers is None else (at, numbers)
        at += len(line) + 1
    if found is not None:
        yield found


def _listed(text: str, k: int) -> list[int | None] | None:
    """Return the items selected by a list at the end of a text, one item per line, or by the only number in brackets.

    "1. [3] ..." and "- path 3" select item 3. "3. some text" also selects item 3, unless the lines are numbered 1, 2, 3
    and so on; such numbers only count the lines. If a list names the items 1, 2, 3 and so on, and is longer than `k`,
    it selects nothing.
    """
    named: list[int | None] = []
    numbered: list[int | None] = []
    for line in reversed(text.split("\n")):
        name, number = _NAMED.match(line), _NUMBERED.match(line)
        if not (name or number) or _NOT.search(line):
            break
        named.insert(0, int(name[1] or name[2]) if name else None)
        numbered.insert(0, int(number[1]) if number else None)
    in_order = list(range(1, len(named) + 1))
    if named and None not in named:
        return None if len(named) > k and named == in_order else named
    if named:
        return None if None in numbered or numbered == in_order else numbered
    only = {bracket[1].strip() for bracket in _BRACKETS.finditer(text) if _numbers(bracket[1])}
    return _numbers(only.pop()) if len(only) == 1 and not _NOT.search(text) else None
