"""Baselines without a graph: the language model answers directly (`io`) or after thinking step by step (`cot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kgqa.llm.replies.answers import read_numbered_answers
from kgqa.llm.replies.reply import Reply
from kgqa.methods.resources import Resources
from kgqa.model import Answer, Literal, Named, Question, Value
from kgqa.trace.trace import Trace

UNREADABLE = "The language model's reply could not be read."


def answer_io(
    question: Question,
    *,
    resources: Resources,
    trace: Trace,
    topics: Sequence[Named] = (),
    names: Mapping[Value, Sequence[str]] = {},
    prompt: str = "io",
) -> Answer:
    """Answer from the language model's memory; arguments and errors as in `top.answer`, but topics are ignored.

    `prompt`: the name of a prompt in `prompts/direct`.
    """
    asked = resources.prompts.prompt(f"direct/{prompt}", "decide", Reply(read_numbered_answers), question=question.text)
    (texts,) = resources.ask([asked], trace)
    assert resources.models is not None
    if not texts:
        reason = "The language model knew no answer." if texts == () else UNREADABLE
        return Answer(question, "no_answer", method=prompt, reason=reason)
    answers = tuple(Named(Literal(text), "", text) for text in map(str, texts))
    notes = (f"Answered by {resources.models.name} from its own knowledge.",)
    return Answer(question, "answered", answers=answers, grounding="model", method=prompt, notes=notes)


answer_cot = partial(answer_io, prompt="cot")
"""Answers from the language model's memory after thinking step by step."""
