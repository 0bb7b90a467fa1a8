"""Sub-questions: which answers each one needs, levels of independent ones, and grounding by earlier answers."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from typing import Any

from kgqa.methods.evidence import CheckedReply
from kgqa.methods.text.pattern_paths import Pattern, is_unknown
from kgqa.model import Piece
from kgqa.trace import SubQuestion

MAX_NAMES = 3
"""Most answers of a sub-question that are put into a later one."""
_PLACEHOLDER = re.compile(r"(?<![A-Za-z0-9_&])(?:Entity)?#(\d{1,2})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SubQuery:
    """A sub-question.

    Attributes:
        number: Its number, unique within a question.
        text: The sub-question; `#i` stands for the answer to sub-question i.
        patterns: The same in triples of words.
        needs: The numbers of the sub-questions whose answers it needs.
    """

    number: int
    text: str
    patterns: tuple[Pattern, ...] = ()
    needs: tuple[int, ...] = ()

    @property
    def event(self) -> SubQuestion:
        """The sub-question in an event."""
        return SubQuestion(self.number, self.text, self.needs)


@dataclass(frozen=True)
class AskedSubQuery:
    """A sub-question as it was asked, and the reply to it."""

    query: SubQuery
    reply: CheckedReply[Piece]

    @property
    def answers(self) -> tuple[str, ...]:
        """The answers; if some stand in verified quotes, only these."""
        return self.reply.stated or self.reply.answers

    @property
    def disputed(self) -> bool:
        """Whether answers without a verified quote were left out, or several answers have none."""
        return len(self.answers) < len(self.reply.answers) or (len(self.answers) > 1 and not self.reply.stated)

    @property
    def values(self) -> dict[str, Any]:
        """The sub-question with its answer as prompts show it."""
        names = "; ".join(self.answers[:MAX_NAMES])
        return {"number": self.query.number, "question": self.query.text, "answer": names}


def planned(plan: Iterable[tuple[str, tuple[Pattern, ...]]], question: str, first: int = 1) -> list[SubQuery]:
    """Return sub-questions in words and in triples numbered from `first`, and find which answers they need.

    A reference to the sub-question itself, to a later or to an unknown one is removed, unless the question contains the
    same characters, as in "the #1 hit". If nothing else is left, the question is the only sub-question.
    """
    found = []
    for number, (text, patterns) in enumerate(plan, first):
        kept = without_unknown(text, range(1, number), question)
        needs = sorted({int(match[1]) for match in _PLACEHOLDER.finditer(kept)} & set(range(1, number)))
        found.append(SubQuery(number, kept, patterns, tuple(needs)))
    return found if any(each.text or each.patterns for each in found) else [SubQuery(first, question)]


def without_unknown(text: str, known: Container[int], question: str) -> str:
    """Remove the references to numbers that are not known, unless the question contains the same characters."""
    literal = {each[0] for each in _PLACEHOLDER.finditer(question)}
    kept = _PLACEHOLDER.sub(lambda match: match[0] if int(match[1]) in known or match[0] in literal else "", text)
    return " ".join(kept.split())


def levels(queries: Sequence[SubQuery]) -> list[list[SubQuery]]:
    """Return sub-questions in levels: each needs only answers of earlier levels."""
    depth: dict[int, int] = {}
    for query in queries:
        depth[query.number] = max((depth[number] + 1 for number in query.needs), default=0)
    return [[query for query in queries if depth[query.number] == level] for level in sorted({*depth.values()})]


def fill_in(
    query: SubQuery, names: Mapping[int, Sequence[str]], texts: Mapping[int, str], *, most: int = MAX_NAMES
) -> list[SubQuery]:
    """Put answers into a sub-question: one name is put in, several give a sub-question each.

    A reference without an answer is replaced by the words of the sub-question that it refers to. If fewer sub-questions
    are allowed than there are names, one sub-question contains all names.

    Args:
        query: The sub-question.
        names: The answers by number of sub-question, best first.
        texts: The text of each earlier sub-question, as it was asked.
        most: Most sub-questions that are returned.
    """
    found = [list(dict.fromkeys(names.get(number, ())))[:MAX_NAMES] for number in query.needs]
    if prod(max(len(each), 1) for each in found) > most:
        found = [[" or ".join(each)] if each else [] for each in found]
    choices = [each or [_words_of(texts.get(number, ""))] for number, each in zip(query.needs, found)]
    grounded = []
    for chosen in islice(product(*choices), most):
        values = dict(zip(query.needs, chosen))
        patterns = tuple((_fill(s, values), _fill(p, values), _fill(o, values)) for s, p, o in query.patterns)
        grounded.append(SubQuery(query.number, _fill(query.text, values), patterns))
    return grounded


def _words_of(text: str) -> str:
    return f"[{text.strip().rstrip('?？').strip()}]"


def _fill(text: str, values: Mapping[int, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values.get(int(match[1]), match[0]), text)


def pattern_text(patterns: Sequence[Pattern]) -> str:
    """Return triples as a text."""
    return "; ".join(", ".join(pattern) for pattern in patterns)


def pattern_words(patterns: Sequence[Pattern]) -> str:
    """Return patterns as the words of a query: names and relations, without references; "" if they have no names."""
    if all(is_unknown(end) for subject, _, object_ in patterns for end in (subject, object_)):
        return ""
    parts = (part for pattern in patterns for part in pattern if not is_unknown(part))
    return " ".join(dict.fromkeys(" ".join(_PLACEHOLDER.sub("", part).split()) for part in parts))
