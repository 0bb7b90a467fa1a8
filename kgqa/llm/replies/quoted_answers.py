"""Reader of replies that answer from numbered passages: short answers, a response, and quotes that support it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from kgqa.llm.replies.answers import read_answers
from kgqa.llm.replies.json_values import Reading, find_key, has_object, json_values, key_name, last_part
from kgqa.text.words import safe_text

MAX_RESPONSE_CHARS = 20_000
MAX_SUPPORTS = 100
MAX_QUOTE_CHARS = 4_000
_WORD = re.compile(r"[^\W_]")
FORM = '{"answers": ["a name"], "response": "...", "support": [{"claim": "...", "passage": 2, "quote": "..."}]}'


@dataclass(frozen=True, slots=True)
class Support:
    """A claim and the quote that it rests on. `passage`: the passage's position in the prompt, from 0."""

    claim: str
    passage: int
    quote: str


@dataclass(frozen=True, slots=True)
class QuotedAnswer:
    """What a reply says.

    Attributes:
        answers: The short answers; empty if the reply states that the passages do not contain the answer.
        response: The answer as a text; may be empty.
        supports: The quotes, not yet compared with the passages.
        unquoted: The claims without a quote from one of the passages.
        likely: If there are no answers, what may be the answer although the passages do not prove it.
    """

    answers: tuple[str, ...]
    response: str = ""
    supports: tuple[Support, ...] = ()
    unquoted: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()


def read_quoted_answer(text: str, *, size: int) -> Reading[QuotedAnswer]:
    """Read a reply to a prompt with `size` passages, numbered from 1.

    A quote of a passage that does not exist, or without words, is left out.

    Returns:
        No value if the reply has no JSON object with answers. Never raises, whatever the text.
    """
    objects = [each for each in json_values(last_part(text)) if isinstance(each.value, dict)]
    for found in reversed(objects):
        known, value = find_key(found.value, ("answers", "answer"))
        answers = _answers(value) if known else None
        if answers is None or answers.value is None:
            continue
        response = find_key(found.value, ("response", "explanation"))[1]
        given = find_key(found.value, ("support", "supports", "citations", "claims", "quotes"))[1]
        listed = given if isinstance(given, list) else [given] if has_object(given) else []
        kept = listed[:MAX_SUPPORTS]
        supports = tuple(support for each in kept if (support := _support(each, size)))
        unquoted = tuple(_claim(each) for each in kept if _support(each, size) is None)
        repaired = found.repaired or answers.repaired or len(supports) < len(listed)
        response = _text(response, MAX_RESPONSE_CHARS)
        likely = () if answers.value else _likely(found.value)
        return Reading(QuotedAnswer(answers.value, response, supports, unquoted, likely), repaired)
    return Reading(None, problem=f"It is not of the form {FORM}.")


def _likely(value: dict[str, Any]) -> tuple[str, ...]:
    known, likely = find_key(value, ("likely",))
    read = _answers(likely) if known else None
    return (read.value or ()) if read is not None else ()


def _answers(value: Any) -> Reading[tuple[str, ...]] | None:
    try:
        return read_answers(json.dumps({"answers": value}))
    except RecursionError:
        return None


def _support(value: Any, size: int) -> Support | None:
    if not isinstance(value, dict):
        return None
    values = {key_name(key): each for key, each in value.items()}
    number = values.get("passage", values.get("piece"))
    if isinstance(number, str) and number.strip().isdecimal():
        number = int(number.strip()[:9])
    quote = _text(values.get("quote"), MAX_QUOTE_CHARS)
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= size:
        return None
    if not _WORD.search(quote):
        return None
    return Support(_claim(value), number - 1, quote)


def _claim(value: Any) -> str:
    if not isinstance(value, dict):
        return _text(value, MAX_RESPONSE_CHARS)
    return next((_text(each, MAX_RESPONSE_CHARS) for key, each in value.items() if key_name(key) == "claim"), "")


def _text(value: Any, limit: int) -> str:
    return safe_text(value[:limit]).strip() if isinstance(value, str) else ""
