"""Splits a question with several topics into one clause per topic (thesis, section 6.2.1).

The paths from a topic are then compared with the clause of this topic only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kgqa.llm.replies.json_values import Reading, read_json
from kgqa.methods.prompt_view import PromptView
from kgqa.methods.resources import Resources
from kgqa.model import Entity, Named
from kgqa.text.words import clean
from kgqa.trace import Clauses
from kgqa.trace.trace import Trace

LONGEST = 500


def clauses_of(view: PromptView, topics: Sequence[Named], resources: Resources, trace: Trace) -> Mapping[Entity, str]:
    """Ask the language model for the clause of each topic; return {} for a single topic and after an unusable reply.

    Raises:
        BudgetExhausted: The question's budget is spent.
        ModelUnavailable: The language model failed.
    """
    if len(topics) < 2 or resources.models is None:
        return {}
    marks = {view.topic(topic.value): topic.value for topic in topics if isinstance(topic.value, Entity)}
    prompt = resources.prompts.prompt("top/clauses", "clauses", question=view.question, topics=list(marks))
    (replied,) = resources.ask_model([prompt], [partial(_read, marks=list(marks))], trace)
    clauses: dict[str, str] = replied or {}
    trace.record(Clauses(clauses=clauses))
    view.texts.update(clauses.values())  # searched for leaks, because the model may have guessed a topic's name
    return {marks[mark]: clause for mark, clause in clauses.items()}


def _read(text: str, *, marks: Sequence[str]) -> Reading[dict[str, str]]:
    value, repaired = read_json(text)
    found = value.get("clauses", value) if isinstance(value, dict) else {}
    texts = {m: clean(str(found[m]))[:LONGEST] for m in marks if isinstance(found, dict) and found.get(m)}
    if len(texts) == len(marks) and all(texts.values()):
        return Reading(texts, repaired, "")
    return Reading(None, repaired, f"It has not a clause for each of {', '.join(marks)}, as JSON.")
