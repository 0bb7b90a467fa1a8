"""Readers of the replies to GraphSearch's prompts. They accept any text and never raise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kgqa.llm.replies.json_values import Reading, find_key, json_values, key_name, last_part
from kgqa.methods.text.pattern_paths import Pattern
from kgqa.text.words import clean, normalise, safe_text

VerdictName = Literal["yes", "no"]
MAX_TEXTS = 20
"""Most sub-questions that are read; a method keeps fewer."""
MAX_TEXT_CHARS = 500
MAX_PROSE_CHARS = 8_000
_LISTS = ("sub questions", "subquestions", "sub queries", "steps", "questions")
_TEXT_KEYS = ("question", "text", "sub question", "query")
_PATTERN_KEYS = ("triples", "patterns", "triple")
_NUMBERED = re.compile(r"(?:sub\W?(?:question|query)\W*)?(\d{1,2})", re.IGNORECASE)
_VERDICT = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_STATED_YES = re.compile(r"(?:^|[^\w\s]\s*|\n\s*|\bis\s+)yes\b(?!\s+\w)", re.IGNORECASE)
"""A yes that is a statement of its own, unlike that of "I cannot say yes" or "yes or no"."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The sub-questions in a reply, each in words and in triples; either may be empty."""

    texts: tuple[str, ...]
    patterns: tuple[tuple[Pattern, ...], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a draft. `failed`: numbers of the claims that do not hold, from 1. `analysis`: the reply."""

    verdict: VerdictName
    failed: tuple[int, ...] = ()
    analysis: str = ""


def read_plan(text: str, *, empty: bool = False) -> Reading[Plan]:
    """Read sub-questions with their triples.

    Accepted are a list of objects or of strings under a key such as `sub_questions`, a bare list, and an object with
    numbered keys.

    Args:
        text: The reply.
        empty: Whether an empty list is a plan.
    """
    for found in reversed(json_values(last_part(text))):
        items = _items(found.value)
        if items is None:
            continue
        read = [(words, patterns) for words, patterns in map(_sub_question, items[:MAX_TEXTS]) if words or patterns]
        if read or (empty and not items):
            texts, patterns = tuple(each for each, _ in read), tuple(each for _, each in read)
            return Reading(Plan(texts, patterns), found.repaired or len(read) < len(items))
    return Reading(None, problem='It is not of the form {"sub_questions": [{"question": "...", "triples": []}]}.')


def _items(value: Any) -> list[Any] | None:
    """Return the sub-questions in a JSON value; None if it has none."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return None
    known, listed = find_key(value, _LISTS)
    if known and isinstance(listed, list):
        return listed
    inner = listed if known and isinstance(listed, dict) else value
    numbered = {int(match[1]): each for key, each in inner.items() if (match := _NUMBERED.fullmatch(str(key).strip()))}
    return [numbered[number] for number in sorted(numbered)] or None


def _sub_question(value: Any) -> tuple[str, tuple[Pattern, ...]]:
    if isinstance(value, str):
        return _line(value), ()
    if isinstance(value, list):
        return "", tuple(_patterns(value))
    if not isinstance(value, dict):
        return "", ()
    values = {key_name(key): each for key, each in value.items()}
    words = next((_line(values[key]) for key in _TEXT_KEYS if isinstance(values.get(key), str)), "")
    listed: list[Any] = next((values[key] for key in _PATTERN_KEYS if isinstance(values.get(key), list)), [])
    return words, tuple(_patterns(listed))


def _patterns(listed: list[Any]) -> Iterator[Pattern]:
    """Yield the triples in a list; a list of three strings is one triple."""
    triples = [listed] if len(listed) == 3 and all(isinstance(each, str) for each in listed) else listed
    for triple in triples[:MAX_TEXTS]:
        parts = list(triple.values()) if isinstance(triple, dict) else triple
        if isinstance(parts, list) and len(parts) == 3 and all(isinstance(each, str | int | float) for each in parts):
            subject, relation, object_ = (_line(str(each)) for each in parts)
            if subject or relation or object_:
                yield subject, relation, object_


def read_verdict(text: str) -> Reading[Verdict]:
    """Read a verdict: the key `verdict` of an object, or else the last "Yes" or "No" of the reply.

    A yes beside anything that failed is a no. A yes within a sentence, such as "I cannot say yes", is none.
    """
    rest = last_part(text)
    for found in reversed(json_values(rest)):
        known, value = find_key(found.value, ("verdict",)) if isinstance(found.value, dict) else (False, None)
        if isinstance(value, bool):
            value = "yes" if value else "no"
        verdict = _stated(value[:100]) if known and isinstance(value, str) else None
        if verdict is not None:
            failed = find_key(found.value, ("failed",))[1]
            holds = verdict == "yes" and failed in (None, [], "", "none")
            return Reading(Verdict("yes" if holds else "no", _numbers(failed), prose(rest)), found.repaired)
        if known:
            return _NO_VERDICT
    verdict = _stated(rest)
    return _NO_VERDICT if verdict is None else Reading(Verdict(verdict, (), prose(rest)), repaired=True)


def _stated(text: str) -> VerdictName | None:
    """Return the last yes or no of a text; None if there is neither, or the last is a yes within a sentence."""
    last = max(_VERDICT.finditer(text), key=lambda found: found.end(), default=None)
    if last is None:
        return None
    if last[1].casefold() == "no":
        return "no"
    return "yes" if any(found.end() == last.end() for found in _STATED_YES.finditer(text)) else None


_NO_VERDICT: Reading[Verdict] = Reading(None, problem='It is not of the form {"failed": [], "verdict": "yes"}.')


def _numbers(value: Any) -> tuple[int, ...]:
    listed: Iterable[Any] = value if isinstance(value, list) else [value]
    texts = (str(each).strip() for each in listed if isinstance(each, str | int))
    numbers = (int(each) for each in texts if each.isdecimal() and len(each) < 4)
    return tuple(sorted({number for number in numbers if number > 0}))


def read_prose(text: str) -> Reading[str]:
    """Read a reply that is a text; an empty one is unusable."""
    found = prose(last_part(text))
    return Reading(found or None, problem="It has no text.")


def prose(text: str) -> str:
    """Return a text without unsafe characters, at most `MAX_PROSE_CHARS` long."""
    return safe_text(text[:MAX_PROSE_CHARS]).strip()


def _line(text: str) -> str:
    return clean(text[:MAX_TEXT_CHARS]).strip()


def read_question(text: str) -> Reading[str]:
    """Read a sub-question: the string under a key such as `question`, or a reply of one line."""
    rest = last_part(text)
    for found in reversed(json_values(rest)):
        words, _ = _sub_question(found.value)
        if words:
            return Reading(words, found.repaired)
    lines = [line for line in rest.splitlines() if line.strip()]
    if len(lines) == 1 and _line(lines[0]).strip("\"'`[]{} "):
        return Reading(_line(lines[0]).strip("\"'` "), repaired=True)
    return Reading(None, problem='It is not of the form {"question": "..."}.')


def read_patterns(text: str) -> Reading[tuple[Pattern, ...]]:
    """Read a list of triples; an empty one is unusable."""
    for found in reversed(json_values(last_part(text))):
        value = found.value if isinstance(found.value, list) else find_key(found.value, _PATTERN_KEYS)[1]
        patterns = tuple(_patterns(value)) if isinstance(value, list) else ()
        if patterns:
            return Reading(patterns, found.repaired or len(patterns) < len(value))
    return Reading(None, problem='It is not of the form {"triples": [["...", "...", "..."]]}.')


def read_copies(text: str, *, listed: Sequence[str]) -> Reading[tuple[int, ...]]:
    """Read texts that were copied from a list; return their positions. A text that is not in the list is left out."""
    places = {normalise(each): at for at, each in reversed(list(enumerate(listed)))}
    for found in reversed(json_values(last_part(text))):
        known, value = (True, found.value) if isinstance(found.value, list) else find_key(found.value, _COPY_KEYS)
        if known and isinstance(value, list):
            copied = [" ".join(map(str, each)) if isinstance(each, list) else each for each in value]
            names = [normalise(_NUMBER.sub("", each)) for each in copied if isinstance(each, str)]
            kept = tuple(dict.fromkeys(places[name] for name in names if name in places))
            return Reading(kept, found.repaired or len(kept) < len(value))
    return Reading(None, problem='It is not of the form {"facts": ["..."]}.')


_COPY_KEYS = ("facts", "triples")
_NUMBER = re.compile(r"^\s*\d{1,3}\. ")
