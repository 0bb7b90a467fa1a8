"""The turns of a conversation, and a question whose references are resolved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kgqa.model import Answer, Entity, Named
from kgqa.text.words import clean

MAX_ENTITIES = 20
"""Answers of a turn to which a question can refer."""
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Turn:
    """A question that was asked, with names in place of references, and the entities to which the next one may refer.

    `answers`, `topics`: the entities among the answers, and the topics, in their order.
    """

    question: str
    answers: tuple[Named, ...] = ()
    topics: tuple[Named, ...] = ()

    @property
    def groups(self) -> tuple[tuple[Named, ...], tuple[Named, ...]]:
        """The entities to which a reference may lead, in the order in which they are tried."""
        return self.answers, self.topics


@dataclass(frozen=True, slots=True)
class Resolved:
    """What is asked.

    Attributes:
        question: The question with names in place of references.
        topics: The entities that it is about; empty if they are to be found in its text.
        notes: Sentences for the user, such as which other entities a reference may mean.
        by: What resolved the references; empty if the question is asked as it was given.
    """

    question: str
    topics: tuple[Named, ...] = ()
    notes: tuple[str, ...] = ()
    by: Literal["", "rules", "model"] = ""


def turn_of(answer: Answer) -> Turn:
    """Return the turn of an answered question."""
    return Turn(answer.question.text, _entities(answer.answers), _entities(answer.topics))


def turn_of_object(answer: Mapping[str, Any]) -> Turn:
    """Return the turn of an answer in JSON (docs/answer-json.md). What has another form is left out."""
    question = answer.get("question")
    return Turn(
        clean(question) if isinstance(question, str) else "",
        _entities(_named(answer.get("answers"))),
        _entities(_named(answer.get("topics"))),
    )


def _named(objects: Any) -> tuple[Named, ...]:
    return tuple(
        Named(Entity(each["iri"]), str(each.get("id") or ""), each["name"])
        for each in (objects if isinstance(objects, list) else ())
        if isinstance(each, dict) and isinstance(each.get("iri"), str) and isinstance(each.get("name"), str)
    )


def _entities(named: tuple[Named, ...]) -> tuple[Named, ...]:
    found = (each for each in named if isinstance(each.value, Entity) and clean(each.name))
    return tuple(Named(each.value, each.id, clean(each.name)[:_MAX_NAME]) for each in found)[:MAX_ENTITIES]
