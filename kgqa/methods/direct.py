"""Baselines without a graph: the model alone, asked at once (`io`) or let think step by step (`cot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa.llm.client import Prompt
from kgqa.llm.model_chooser import ask_and_read
from kgqa.llm.replies.answers import read_numbered_answers
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Literal, Named, Question, Value
from kgqa.trace import Trace


def answer_io(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """The model's answer, from its memory. Arguments and errors as of `top.answer`; topics are not used."""
    return recalled(question, "io", resources, trace)


def answer_cot(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
) -> Answer:
    """The model's answer after thinking step by step, from its memory. Arguments and errors as of `top.answer`."""
    return recalled(question, "cot", resources, trace)


def recalled(question: Question, prompt: str, resources: Resources, trace: Trace) -> Answer:
    """What the model answers to a prompt of `prompts/direct`."""
    assert resources.models is not None
    messages = resources.prompts.render(f"direct/{prompt}", question=question.text)
    models = resources.models.for_question(trace)
    reask = resources.settings["llm.reask"]
    said = ask_and_read(models, resources.prompts, [Prompt(messages, "decide")], [read_numbered_answers], reask=reask)[
        0
    ]
    notes = (f"Answered by {models.name} from its own knowledge.",)
    if not said:
        reason = "the language model knew no answer" if said == () else "the language model's answer could not be read"
        return Answer(question, "no_answer", method=prompt, notes=notes, reason=reason)
    answers = tuple(Named(Literal(text), "", text) for text in map(str, said))
    return Answer(question, "answered", answers=answers, grounding="model", method=prompt, notes=notes)
