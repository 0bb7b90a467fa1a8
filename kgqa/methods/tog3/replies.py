"""Readers of the replies in ToG-3's rounds: verdicts, sub-questions, keywords, edits of the evidence graph."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kgqa.llm.replies.answers import read_answers
from kgqa.llm.replies.json_values import Reading, find_key, json_values, key_name, last_part, plain_text
from kgqa.llm.replies.quoted_answers import QuotedAnswer, read_quoted_answer
from kgqa.text.words import clean

MAX_QUESTION_CHARS = 500
MAX_NAME_CHARS = 300
MAX_MISSING_CHARS = 1000
MAX_EDITS = 20
MAX_TEXT_CHARS = 20_000
_REFERENCE = re.compile(r"#\d|\[(?:answer|name|entity)[^\]]*\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reflection:
    """What a reply says about the evidence.

    Attributes:
        sufficient: Whether it suffices.
        missing: What is missing, in words.
        questions: Sub-questions that ask for it.
    """

    sufficient: bool = False
    missing: str = ""
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """An answer and what the same reply says about the evidence."""

    answer: QuotedAnswer
    reflection: Reflection


@dataclass(frozen=True, slots=True)
class ProposedFact:
    """A fact that a reply adds. `passage`: its position in the prompt, from 0."""

    subject: str
    relation: str
    object: str
    passage: int
    quote: str


@dataclass(frozen=True, slots=True)
class Refinement:
    """Edits of the evidence graph that a reply proposes.

    Attributes:
        keep: Positions of the facts to keep, from 0; None for all.
        same: Pairs of names that mean the same.
        add: New facts.
        refused: Number of proposals without the required form.
    """

    keep: frozenset[int] | None = None
    same: tuple[tuple[str, str], ...] = ()
    add: tuple[ProposedFact, ...] = ()
    refused: int = 0


def read_verdict(text: str) -> Reading[bool]:
    """Read a verdict: `{"verdict": "YES"}`, or only YES or NO. Never raises; what is unclear has no value."""
    for found in reversed(_objects(text)):
        verdict = _verdict(found)
        if verdict is not None:
            return Reading(verdict)
    word = plain_text(text).strip(" .*`\"'").casefold()
    if word in ("yes", "no"):
        return Reading(word == "yes", repaired=True)
    return Reading(None, problem='It is not of the form {"verdict": "YES"} or {"verdict": "NO"}.')


def read_questions(text: str, *, most: int) -> Reading[Reflection]:
    """Read at most `most` sub-questions and what is missing. Never raises."""
    for found in reversed(_objects(text)):
        if (reflection := _reflection(found, most)) is not None:
            return Reading(reflection)
    return Reading(None, problem='It is not of the form {"missing": "...", "questions": ["..."]}.')


def read_reflection(text: str, *, most: int) -> Reading[Reflection]:
    """Read a verdict with sub-questions; a reply without a verdict has no value. Never raises."""
    for found in reversed(_objects(text)):
        verdict = _verdict(found)
        if verdict is not None:
            reflection = _reflection(found, most) or Reflection()
            return Reading(Reflection(verdict, reflection.missing, () if verdict else reflection.questions))
    return Reading(None, problem='It is not of the form {"verdict": "NO", "missing": "...", "questions": ["..."]}.')


def read_turn(text: str, *, size: int, most: int) -> Reading[Turn]:
    """Read an answer from `size` pieces together with a verdict and sub-questions.

    An answer without a verdict counts as insufficient. Never raises.
    """
    answer = read_quoted_answer(text, size=size)
    if answer.value is None:
        return Reading(None, problem=answer.problem)
    reflection = read_reflection(text, most=most)
    value = reflection.value or read_questions(text, most=most).value or Reflection()
    return Reading(Turn(answer.value, value), answer.repaired or reflection.value is None)


def read_keywords(text: str, *, most: int) -> Reading[tuple[str, ...]]:
    """Read at most `most` keywords. Never raises."""
    for found in reversed(_objects(text)):
        given = find_key(found, ("keywords", "synonyms", "terms"))[1]
        if isinstance(given, list | str):
            listed = re.split(r"[,^;\n]", given) if isinstance(given, str) else given
            return Reading(tuple(dict.fromkeys(filter(None, map(_name, listed))))[:most])
    return Reading(None, problem='It is not of the form {"keywords": ["..."]}.')


def read_plain_answer(text: str) -> Reading[QuotedAnswer]:
    """Read an answer in free text: `answers` is what `read_answers` finds, otherwise the whole text. Never raises."""
    whole = clean(last_part(text)[:MAX_TEXT_CHARS]).strip()
    if not whole:
        return Reading(None, problem="It has no answer.")
    found = read_answers(text).value
    answers = found if found is not None else (read_answers(f"Answer: {whole}").value or ())
    return Reading(QuotedAnswer(answers, whole))


def read_refinement(text: str, *, facts: int, passages: int) -> Reading[Refinement]:
    """Read edits of a list of `facts` facts from `passages` passages. Never raises.

    An empty list of facts to keep is no decision: all of them stay.
    """
    for found in reversed(_objects(text)):
        known = {key_name(key): value for key, value in found.items()}
        if not known.keys() & {"keep", "same", "add"}:
            continue
        numbers = [each for each in map(_number, _list(known.get("keep"))) if each is not None]
        keep = frozenset(each - 1 for each in numbers if 1 <= each <= facts)
        pairs = [_pair(each) for each in _list(known.get("same"))[:MAX_EDITS]]
        added = [_fact(each, passages) for each in _list(known.get("add"))[:MAX_EDITS]]
        refused = pairs.count(None) + added.count(None)
        same = tuple(pair for pair in pairs if pair is not None)
        add = tuple(fact for fact in added if fact is not None)
        return Reading(Refinement(keep or None, same, add, refused))
    return Reading(None, problem='It is not of the form {"keep": [1], "same": [], "add": []}.')


def _objects(text: str) -> list[dict[str, Any]]:
    return [each.value for each in json_values(last_part(text)) if isinstance(each.value, dict)]


def _verdict(found: dict[str, Any]) -> bool | None:
    value = find_key(found, ("verdict", "sufficient"))[1]
    if isinstance(value, bool):
        return value
    word = value.strip(" .").casefold() if isinstance(value, str) else ""
    return {"yes": True, "no": False, "true": True, "false": False}.get(word)


def _reflection(found: dict[str, Any], most: int) -> Reflection | None:
    there, given = find_key(found, ("questions", "sub questions", "subquestions", "question"))
    if not there:
        return None
    listed = given if isinstance(given, list) else [given]
    texts = [clean(each[:MAX_QUESTION_CHARS]).strip() for each in listed if isinstance(each, str)]
    complete = [each for each in texts if each and not _REFERENCE.search(each)]
    missing = find_key(found, ("missing",))[1]
    words = clean(missing[:MAX_MISSING_CHARS]).strip() if isinstance(missing, str) else ""
    return Reflection(False, words, tuple(dict.fromkeys(complete))[:most])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> int | None:
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value.strip()[:9])
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _name(value: Any) -> str:
    return clean(value[:MAX_NAME_CHARS]).strip() if isinstance(value, str) else ""


def _pair(value: Any) -> tuple[str, str] | None:
    names = [_name(each) for each in value] if isinstance(value, list) else []
    return (names[0], names[1]) if len(names) == 2 and all(names) and names[0] != names[1] else None


def _fact(value: Any, passages: int) -> ProposedFact | None:
    if not isinstance(value, dict):
        return None
    values = {key_name(key): each for key, each in value.items()}
    subject, relation, end = (_name(values.get(key)) for key in ("subject", "relation", "object"))
    number = _number(values.get("passage", values.get("piece")))
    quote = values.get("quote")
    if not (subject and relation and end) or number is None or not 1 <= number <= passages:
        return None
    return ProposedFact(subject, relation, end, number - 1, quote.strip()[:4000] if isinstance(quote, str) else "")


def distinct_questions(given: Iterable[str], asked: Iterable[str]) -> list[str]:
    """Return the questions that differ from those asked before in more than case and punctuation."""
    known = {_words(each) for each in asked}
    found = []
    for each in given:
        if (words := _words(each)) and words not in known:
            known.add(words)
            found.append(each)
    return found


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
