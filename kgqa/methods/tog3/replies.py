"""The forms of replies in ToG-3's rounds: answers, verdicts, sub-questions, keywords, edits of the evidence graph."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from kgqa.llm.replies.answers import read_answers
from kgqa.llm.replies.json_values import Reading, last_part
from kgqa.llm.replies.quoted_answers import SUPPORT, QuotedAnswer, quoted_reply
from kgqa.llm.replies.reply import Form, Reply, reply_of
from kgqa.methods.text.replies import or_stated
from kgqa.text.words import clean

MAX_TEXT_CHARS = 20_000
ANSWER = {"answer": ["a name"], "response": "...", "support": [SUPPORT]}
FINAL = {"answer": ["a name"], "likely": ["a name"], "response": "...", "explanation": "...", "support": [SUPPORT]}
"""Final answers; the response is left out unless a report is wanted."""
_REFERENCE = re.compile(r"#\d|\[(?:answer|name|entity)[^\]]*\]", re.IGNORECASE)


def _complete(value: Any) -> str:
    text = clean(value[:500]).strip() if isinstance(value, str) else ""
    if not text or _REFERENCE.search(text):
        raise ValueError("no sub-question that can be understood alone")
    return text


Missing = Annotated[str, Form(chars=1000)]
Questions = Annotated[
    tuple[Annotated[str, Form(read=_complete)], ...], Form(keys=("sub questions", "subquestions", "question"))
]
Verdict = Annotated[Literal["YES", "NO"], Form(keys=("sufficient",))]


@dataclass(frozen=True, kw_only=True)
class Reflection:
    """Whether the evidence suffices, what is missing, and sub-questions that ask for it."""

    verdict: Verdict
    missing: Missing = ""
    questions: Questions = ()

    @property
    def sufficient(self) -> bool:
        """Whether the evidence suffices."""
        return self.verdict == "YES"


NOT_SUFFICIENT = Reflection(verdict="NO")


@dataclass(frozen=True, kw_only=True)
class _Gap:
    missing: Missing = ""
    questions: Questions


@dataclass(frozen=True, kw_only=True)
class _Sufficient:
    verdict: Verdict


def turn_reply(size: int) -> Reply[tuple[QuotedAnswer, Reflection]]:
    """Return the form of an answer from `size` pieces, together with a verdict and sub-questions."""
    answer, verdict, gap = quoted_reply(size, ANSWER), reply_of(Reflection), gap_reply()

    def read(text: str) -> Reading[tuple[QuotedAnswer, Reflection]]:
        reply, judgment = answer.read(text), verdict.read(text)
        reflection = judgment.value or gap.read(text).value or NOT_SUFFICIENT  # a reply without a verdict says no
        value = None if reply.value is None else (reply.value, reflection)
        return Reading(value, reply.repaired or judgment.repaired, reply.problem)

    first, second = answer.schema or {}, verdict.schema or {}
    properties = {**first["properties"], **second["properties"]}
    return Reply(read, {**first, "properties": properties, "required": list(properties)})


def gap_reply() -> Reply[Reflection]:
    """Return the form of sub-questions."""
    return reply_of(_Gap).then(lambda each: Reflection(verdict="NO", missing=each.missing, questions=each.questions))


def sufficient_reply() -> Reply[Reflection]:
    """Return the form of a verdict alone."""
    form = reply_of(_Sufficient).then(lambda each: Reflection(verdict=each.verdict))
    return or_stated(form, lambda verdict: Reflection(verdict="YES" if verdict == "yes" else "NO"))


def _words(value: Any) -> tuple[str, ...]:
    listed = re.split(r"[,^;\n]", value) if isinstance(value, str) else value if isinstance(value, list) else []
    names = (clean(each[:300]).strip() for each in listed if isinstance(each, str))
    return tuple(dict.fromkeys(filter(None, names)))


@dataclass(frozen=True, kw_only=True)
class Keywords:
    """Names and terms by which entities are found."""

    keywords: Annotated[tuple[str, ...], Form(keys=("synonyms", "terms"), read=_words)]


def read_plain_answer(text: str) -> Reading[QuotedAnswer]:
    """Read an answer in free text: `answers` is what `read_answers` finds, otherwise the whole text. Never raises."""
    whole = clean(last_part(text)[:MAX_TEXT_CHARS]).strip()
    if not whole:
        return Reading(None, problem="It has no answer.")
    found = read_answers(text).value
    answers = found if found is not None else (read_answers(f"Answer: {whole}").value or ())
    return Reading(QuotedAnswer(answers, whole))


Name = Annotated[str, Form(chars=300)]


@dataclass(frozen=True, kw_only=True)
class ProposedFact:
    """A fact that a reply adds. `passage`: the number of its passage, from 1."""

    subject: Name = ""
    relation: Name = ""
    object: Name = ""
    passage: Annotated[int, Form(keys=("piece",))] = 0
    quote: Annotated[str, Form(chars=4000, lines=True)] = ""


@dataclass(frozen=True, kw_only=True)
class Refinement:
    """Edits of the evidence graph that a reply proposes.

    Attributes:
        keep: Numbers of the facts to keep, from 1; empty for all.
        same: Pairs of names that mean the same.
        add: New facts.
    """

    keep: tuple[int, ...] = ()
    same: tuple[tuple[Name, ...], ...] = ()
    add: tuple[ProposedFact, ...] = ()
