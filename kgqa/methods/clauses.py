"""Cuts a question about several entities into a clause for each (thesis, section 6.2.1), so that every topic's paths are
compared by what is said of that topic alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kgqa.llm.client import Prompt
from kgqa.llm.model_chooser import ask_and_read
from kgqa.llm.replies.json_values import Reading, read_json
from kgqa.methods.resources import Resources
from kgqa.methods.showing import Shown
from kgqa.model import Entity, Named
from kgqa.trace import Trace
from kgqa.words import clean

LONGEST = 500


def clauses_of(shown: Shown, topics: Sequence[Named], resources: Resources, trace: Trace) -> Mapping[Entity, str]:
    """The clause of each topic; empty where there is one topic only or the model gives none that can be used.

    Raises:
        BudgetExhausted, ModelUnavailable: see `top.answer`.
    """
    if len(topics) < 2 or resources.models is None:
        return {}
    marks = {shown.topic(topic.value): topic.value for topic in topics if isinstance(topic.value, Entity)}
    messages = resources.prompts.render("top/clauses", question=shown.question, topics=list(marks))
    (said,) = ask_and_read(
        resources.models.for_question(trace),
        resources.prompts,
        [Prompt(messages, "clauses")],
        [_reader(list(marks))],
        reask=resources.settings["llm.reask"],
    )
    trace.event("clauses", clauses=said or {})
    shown.texts.update((said or {}).values())  # the model may have guessed a name, which later prompts then carry
    return {marks[mark]: clause for mark, clause in (said or {}).items()}


def _reader(marks: Sequence[str]) -> Callable[[str], Reading[dict[str, str]]]:
    def read(text: str) -> Reading[dict[str, str]]:
        value, repaired = read_json(text)
        found = value.get("clauses", value) if isinstance(value, dict) else {}
        texts = {m: clean(str(found[m]))[:LONGEST] for m in marks if isinstance(found, dict) and found.get(m)}
        if len(texts) == len(marks) and all(texts.values()):
            return Reading(texts, repaired, "")
        return Reading(None, repaired, f"It has not a clause for each of {', '.join(marks)}, as JSON.")

    return read
