"""Says, for a question without an answer, which paths came nearest and what would help."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from kgqa.model import Answer, NearPath, Usage
from kgqa.settings.values import Settings
from kgqa.text.hints import Hint, Option
from kgqa.trace import Event, Expanded, Kept, Linked, PathsRanked, Pool, Rated, Rejected, Retrieved

MAX_NEAREST = 5
MAX_HINTS = 4
_LIMITS = {"seconds": "more time", "queries": "more queries", "calls": "more model calls", "tokens": "more tokens",
           "cost": "a higher cost in USD"}  # fmt: skip
Advice = list[tuple[bool, str]]
"""Hints, each with whether it applies."""


def with_advice(answer: Answer, events: Sequence[Event], usage: Usage, settings: Settings, *, models: bool) -> Answer:
    """Return the answer with its nearest paths and hints, if no path was accepted or the budget was used up.

    Args:
        answer: the answer of a method.
        events: the trace of the question.
        usage: the usage of the question.
        settings: the settings of the question.
        models: whether a language model compares the paths.
    """
    if answer.status in ("answered", "failed"):
        return answer
    # over text, paths were searched only to find passages
    from_text = any(isinstance(event, Retrieved) for event in events)
    if answer.status == "unsupported":
        advice = _to_support(settings, models)
    elif answer.status == "budget_exhausted":
        advice = _for_more(usage, settings)
    else:
        advice = _to_read(usage, settings) if from_text else _to_answer(events, usage, settings, models)
    hints = [hint for applies, hint in advice if applies]
    nearest = () if answer.answers or from_text else _nearest(events)
    return replace(answer, nearest=nearest, hints=tuple(hints[:MAX_HINTS]))


def _nearest(events: Sequence[Event]) -> tuple[NearPath, ...]:
    """Return the first paths of the last comparison, or if there was none, the winners of the last hop."""
    for event in reversed(events):
        if isinstance(event, PathsRanked):
            return tuple(NearPath(each.path, each.score) for each in event.paths[:MAX_NEAREST])
        if isinstance(event, Kept) and event.paths:
            return tuple(NearPath(path) for path in event.paths[:MAX_NEAREST])
    return ()


def _to_support(settings: Settings, models: bool) -> Advice:
    return [(not models, f"Let a language model read the question: {_choose_model(settings)}")]


def _choose_model(settings: Settings) -> Option | Hint:
    model = Option("llm", "MODEL")
    chosen = settings.rank.chooser in ("auto", "llm")
    return model if chosen else Hint(Option("chooser", "llm"), " ", model, client=model)


def _for_more(usage: Usage, settings: Settings) -> Advice:
    # a reply that would be late is not awaited to the end of the time
    spent = {"seconds": usage.seconds / 0.95, "queries": usage.queries, "calls": usage.calls, "cost": usage.cost or 0.0}
    spent["tokens"] = usage.prompt_tokens + usage.completion_tokens
    limits = {name: getattr(settings.budget, name) for name in _LIMITS}
    reached = [name for name, limit in limits.items() if limit is not None and spent[name] >= limit]
    return [
        # a batch of calls that would exceed the limit is not sent
        (limits[name] is not None, f"Allow {_LIMITS[name]}: {Option(f'max-{name}', 2 * (limits[name] or 0) or 10)}")
        for name in reached or ["calls"]
    ]


def _to_read(usage: Usage, settings: Settings) -> Advice:
    unread = any(stage.unparsed for stage in usage.stages)
    return [
        (unread, f"Use another language model: {Option('llm', 'MODEL')}"),
        (unread, f"Repeat unusable prompts more often: {Option('reask', settings.llm.reask + 2)}"),
    ]


def _to_answer(events: Sequence[Event], usage: Usage, settings: Settings, models: bool) -> Advice:
    rejected = [event.score or 0.0 for event in events if isinstance(event, Rejected)]
    linked = [mention for event in events if isinstance(event, Linked) for mention in event.mentions]
    rated = [event.confidence for event in events if isinstance(event, Rated) and event.confidence is not None]
    hops = [event.hop for event in events if isinstance(event, Pool | Kept)]
    whole = max(hops, default=0) >= settings.explore.depth
    alone = not any(hops) and any(isinstance(event, Expanded | Kept) for event in events)
    score = math.floor(max(rejected[:1], default=0.0) * 1000) / 1000
    own, model = settings.ask.compose == "ends", _choose_model(settings)
    return [
        (any(len(mention.entities) > 1 for mention in linked), f"Choose another topic: {Option('topic', 'ID')}"),
        *_to_read(usage, settings),
        (score > 0, f"Accept lower scores: {Option('accept', score)}"),
        (bool(rejected), f"Take the best path although it was not accepted: {Option('on-exhausted', 'best')}"),
        (bool(rejected) and not models, f"Let a language model compare the paths: {model}"),
        (
            bool(rejected) and models and own,
            f"Let the language model use its own knowledge too: {Option('compose', 'composed')}",
        ),
        (bool(rated), f"Accept answers with lower scores: {Option('min-score', (rated or [0.0])[-1])}"),
        (whole, f"Follow longer paths: {Option('depth', settings.explore.depth + 1)}"),
        (alone and not whole, f"Choose another topic, one with relations: {Option('topic', 'ID')}"),
        (alone and not whole, f"Describe the relations of the graph in a schema: {Option('schema', 'FILE')}"),
    ]
