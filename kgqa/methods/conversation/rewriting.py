"""Rewrites a question with a language model, so that it can be understood without the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kgqa.llm.replies.json_values import Reading, find_key, json_values, last_part
from kgqa.methods.conversation.referents import TURNS, Referents
from kgqa.methods.conversation.turns import Resolved
from kgqa.methods.resources import Resources
from kgqa.model import Entity, Named
from kgqa.search.topics import MAX_QUESTION_CHARS
from kgqa.text.words import clean
from kgqa.trace.trace import Trace

PROMPT, STAGE = "chat/rewrite", "link"
MAX_SHOWN = 10
"""Answers of a turn that are shown to the model."""
FORM = '{"question": "...", "refers_to": [1]}'


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What a reply says: the question, and the positions of the entities that it is about, from 0."""

    question: str
    refers_to: tuple[int, ...] = ()


def rewrite(question: str, referents: Referents, resources: Resources, trace: Trace) -> Resolved | None:
    """Return the question as a language model writes it; None if its reply cannot be read.

    Raises:
        BudgetExhausted: the budget of `trace` is used up, or the question was stopped.
        ModelUnavailable: the model cannot be used.
    """
    entities = _listed(referents)
    asked = resources.prompts.prompt(
        PROMPT,
        STAGE,
        turns=[
            {"question": turn.question, "answers": [each.name for each in turn.answers[:MAX_SHOWN]]}
            for turn in referents.turns
        ],
        entities=[{"name": each.name, "types": list(_types(each, referents))[:3]} for each in entities],
        question=question,
    )
    (read,) = resources.ask_model([asked], [partial(read_rewritten, size=len(entities))], trace)
    if read is None:
        return None
    topics = tuple(entities[at] for at in read.refers_to)
    changed = bool(topics) or read.question != question
    return Resolved(read.question, topics, by="model" if changed else "")


def read_rewritten(text: str, *, size: int) -> Reading[Rewritten]:
    """Read a reply to a prompt with `size` entities, numbered from 1.

    Returns:
        No value unless the reply has an object with a question and numbers of entities. Never raises.
    """
    for found in reversed(json_values(last_part(text))):
        if not isinstance(found.value, dict):
            continue
        question = find_key(found.value, ("question",))[1]
        numbers = find_key(found.value, ("refers to",))[1]
        numbers = [] if numbers is None else numbers
        if not isinstance(question, str) or not isinstance(numbers, list):
            continue
        question = clean(question)
        if not any(map(str.isalnum, question)) or len(question) > MAX_QUESTION_CHARS:
            return Reading(None, problem="The question is empty or too long.")
        if not all(type(each) is int and 0 < each <= size for each in numbers):
            return Reading(None, problem=f"refers_to must list numbers of entities, from 1 to {size}.")
        return Reading(Rewritten(question, tuple(each - 1 for each in dict.fromkeys(numbers))), found.repaired)
    return Reading(None, problem=f"It is not of the form {FORM}.")


def _listed(referents: Referents) -> list[Named]:
    """Return the entities of the last turns, the latest first."""
    found: dict[Any, Named] = {}
    for turn in list(reversed(referents.turns))[:TURNS]:
        for each in (*turn.answers[:MAX_SHOWN], *turn.topics):
            found.setdefault(each.value, each)
    return list(found.values())


def _types(named: Named, referents: Referents) -> Sequence[str]:
    return referents.types.get(named.value, ()) if isinstance(named.value, Entity) else ()
