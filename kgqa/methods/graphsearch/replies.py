"""The forms of replies to GraphSearch's prompts: sub-questions with triples, answers, drafts, verdicts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any

from kgqa.llm.replies.json_values import Reading, json_values, last_part
from kgqa.llm.replies.quoted_answers import SUPPORT, Names
from kgqa.llm.replies.reply import Form, Reply, reply_of, schema_like
from kgqa.methods.text.pattern_paths import Pattern
from kgqa.methods.text.replies import YesNo, or_stated, stated
from kgqa.text.words import clean, normalise

MAX_TEXTS = 20
"""Most sub-questions that are read."""
STEP = {"answers": ["a name"], "support": [{"piece": 1, "quote": "..."}]}
DRAFT = {"claims": [SUPPORT], "answers": ["a name"], "likely": ["a name"], "response": "..."}
_NUMBERED = re.compile(r"(?:sub\W?(?:question|query)\W*)?(\d{1,2})", re.IGNORECASE)


def _patterns(value: Any) -> tuple[Pattern, ...]:
    """Return the triples in a list; a list of three texts is one triple."""
    if not isinstance(value, list):
        raise ValueError("no list of triples")
    triples = [value] if len(value) == 3 and all(isinstance(each, str) for each in value) else value
    found = []
    for triple in triples[:MAX_TEXTS]:
        parts = list(triple.values()) if isinstance(triple, dict) else triple
        if isinstance(parts, list) and len(parts) == 3 and all(isinstance(each, str | int | float) for each in parts):
            subject, relation, object_ = (clean(str(each)[:500]).strip() for each in parts)
            found += [(subject, relation, object_)] if subject or relation or object_ else []
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """A sub-question in words and in triples; either may be empty."""

    question: Annotated[str, Form(keys=("text", "sub question", "query"))] = ""
    triples: Annotated[tuple[Pattern, ...], Form(keys=("patterns", "triple"), bare=True, read=_patterns)] = ()


Plan = tuple[Proposed, ...]


@dataclass(frozen=True, kw_only=True)
class _Plan:
    sub_questions: Annotated[
        tuple[Proposed, ...],
        Form(keys=("subquestions", "sub queries", "steps", "questions"), bare=True),
    ]


def plan_reply(*, empty: bool = False) -> Reply[Plan]:
    """Return the form of sub-questions with their triples; `empty`: whether there may be none."""

    def check(read: _Plan) -> Plan:
        plan = tuple(each for each in read.sub_questions if each.triples or re.search(r"\D", each.question))
        if not plan and not empty:
            raise ValueError("It has no sub-question.")
        return plan[:MAX_TEXTS]

    return reply_of(_Plan).then(check)


def numbered_reply(*, empty: bool = False) -> Reply[Plan]:
    """Return the form of sub-questions, or of triples, by number; a list is read, too."""
    plan = plan_reply(empty=empty)

    def read(text: str) -> Reading[Plan]:
        for found in reversed(json_values(last_part(text))):
            value = found.value if isinstance(found.value, dict) else {}
            named = chain(value.items(), *(each.items() for each in value.values() if isinstance(each, dict)))
            items = {int(match[1]): each for key, each in named if (match := _NUMBERED.fullmatch(key.strip()))}
            questions = tuple(_item(items[number]) for number in sorted(items))
            if any(each.question or each.triples for each in questions):
                return Reading(questions[:MAX_TEXTS], found.repaired)
        return plan.read(text)

    return Reply(read)


def _item(value: Any) -> Proposed:
    question = clean(value[:500]).strip() if isinstance(value, str) else ""
    return Proposed(question=question, triples=_patterns(value) if isinstance(value, list) else ())


def _failed(value: Any) -> tuple[int, ...]:
    """Return the numbers of claims; 0 stands for what is no number."""
    listed = value if isinstance(value, list) else [] if value in (None, "", "none") else [value]
    texts = (str(each).strip() if isinstance(each, str | int) else "" for each in listed)
    return tuple(sorted({int(text) if text.isdecimal() and len(text) < 4 else 0 for text in texts}))


def _yes_or_no(value: Any) -> YesNo:
    text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else value
    word = stated(text[:100]) if isinstance(text, str) else None
    if word is None:
        raise ValueError("neither yes nor no")
    return word


@dataclass(frozen=True, kw_only=True)
class DraftVerdict:
    """The verdict on a draft. `failed`: numbers of the claims that do not hold, from 1."""

    failed: Annotated[tuple[int, ...], Form(read=_failed)] = ()
    verdict: Annotated[YesNo, Form(read=_yes_or_no)]


def verdict_reply() -> Reply[DraftVerdict]:
    """Return the form of a verdict; a yes beside anything that failed is a no."""

    def check(read: DraftVerdict) -> DraftVerdict:
        return DraftVerdict(failed=tuple(filter(None, read.failed)), verdict="no" if read.failed else read.verdict)

    return or_stated(reply_of(DraftVerdict).then(check), lambda word: DraftVerdict(verdict=word))


@dataclass(frozen=True, kw_only=True)
class ShortAnswers:
    """The answer to a sub-question without quotes."""

    answers: Names


def question_reply() -> Reply[str]:
    """Return the form of a sub-question: an object, or one line."""

    def check(read: Proposed) -> str:
        if not read.question:
            raise ValueError("It has no question.")
        return read.question

    form = reply_of(Proposed, schema_like({"question": "..."})).then(check)

    def read(text: str) -> Reading[str]:
        lines = [line for line in last_part(text).splitlines() if line.strip()]
        words = clean(lines[0][:500]).strip(" \"'`[]{}") if len(lines) == 1 and not json_values(lines[0]) else ""
        return Reading(words, repaired=True) if words else form.read(text)

    return Reply(read, form.schema)


def triples_reply() -> Reply[tuple[Pattern, ...]]:
    """Return the form of triples; there must be one."""

    def check(read: Proposed) -> tuple[Pattern, ...]:
        if not read.triples:
            raise ValueError("It has no triple.")
        return read.triples

    return reply_of(Proposed, schema_like({"triples": [["a name"]]})).then(check)


def _lines(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError("no list")
    texts = (" ".join(map(str, each)) if isinstance(each, list) else each for each in value)
    return tuple(re.sub(r"^\s*\d{1,3}\. ", "", each) for each in texts if isinstance(each, str))


@dataclass(frozen=True, kw_only=True)
class _Copies:
    facts: Annotated[tuple[str, ...], Form(keys=("triples",), bare=True, read=_lines)]


def copies_reply(listed: Sequence[str]) -> Reply[tuple[int, ...]]:
    """Return the form of texts that are copied from a list; their positions are read, and other texts left out."""
    places = {normalise(each): at for at, each in reversed(list(enumerate(listed)))}

    def check(read: _Copies) -> tuple[int, ...]:
        return tuple(dict.fromkeys(places[name] for name in map(normalise, read.facts) if name in places))

    return reply_of(_Copies).then(check)
