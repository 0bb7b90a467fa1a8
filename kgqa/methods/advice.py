"""Says, for a question without an answer, which paths came nearest and what would help."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kgqa.model import Answer, NearPath, Usage
from kgqa.settings.values import Settings
from kgqa.text.hints import Hint, Option
from kgqa.trace import Event, Expanded, Kept, Linked, PathsRanked, Pool, Rated, Rejected, Retrieved

MAX_NEAREST = 5
MAX_HINTS = 4
_LIMITS = {"seconds": "more time", "queries": "more queries", "calls": "more model calls", "tokens": "more tokens",
           "cost": "a higher cost in USD"}  # fmt: skip


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
    causes = {"unsupported": _to_support, "budget_exhausted": _for_more}.get(answer.status)
    # over text, paths were searched only to find passages
    from_text = any(isinstance(event, Retrieved) for event in events)
    if causes:
        hints = causes(usage, settings, models)
    else:
        hints = _to_read(usage, settings) if from_text else _to_answer(events, usage, settings, models)
    nearest = () if answer.answers or from_text else _nearest(events)
    return replace(answer, nearest=nearest, hints=tuple(hints)[:MAX_HINTS])


def _nearest(events: Sequence[Event]) -> tuple[NearPath, ...]:
    """Return the first paths of the last comparison, or if there was none, the winners of the last hop."""
    for event in reversed(events):
        if isinstance(event, PathsRanked):
            return tuple(NearPath(each.path, each.score) for each in event.paths[:MAX_NEAREST])
        if isinstance(event, Kept) and event.paths:
            return tuple(NearPath(path) for path in event.paths[:MAX_NEAREST])
    return ()


def _to_support(usage: Usage, settings: Settings, models: bool) -> Iterator[str]:
    if not models:
        yield f"Let a language model read the question: {_choose_model(settings)}"


def _choose_model(settings: Settings) -> Option | Hint:
    model = Option("llm", "MODEL")
    return (
        model if settings.rank.chooser in ("auto", "llm") else Hint(Option("chooser", "llm"), " ", model, client=model)
    )


def _for_more(usage: Usage, settings: Settings, models: bool) -> Iterator[str]:
    # a reply that would be late is not awaited to the end of the time
    spent = {"seconds": usage.seconds / 0.95, "queries": usage.queries, "calls": usage.calls, "cost": usage.cost or 0.0}
    spent["tokens"] = usage.prompt_tokens + usage.completion_tokens
    limits = {name: getattr(settings.budget, name) for name in _LIMITS}
    reached = [name for name, limit in limits.items() if limit is not None and spent[name] >= limit]
    # a batch of calls that would exceed the limit is not sent
    for name in reached or [name for name in ("calls",) if limits[name] is not None]:
        yield f"Allow {_LIMITS[name]}: {Option(f'max-{name}', 2 * limits[name] or 10)}"


def _to_read(usage: Usage, settings: Settings) -> Iterator[str]:
    if any(stage.unparsed for stage in usage.stages):
        yield f"Use another language model: {Option('llm', 'MODEL')}"
        yield f"Repeat unusable prompts more often: {Option('reask', settings.llm.reask + 2)}"


def _to_answer(events: Sequence[Event], usage: Usage, settings: Settings, models: bool) -> Iterator[str]:
    rejected = next((event for event in events if isinstance(event, Rejected)), None)
    linked = [mention for event in events if isinstance(event, Linked) for mention in event.mentions]
    if any(len(mention.entities) > 1 for mention in linked):
        yield f"Choose another topic: {Option('topic', 'ID')}"
    yield from _to_read(usage, settings)
    if rejected is not None:
        if rejected.score is not None and rejected.score >= 0.001:
            yield f"Accept lower scores: {Option('accept', math.floor(rejected.score * 1000) / 1000)}"
        yield f"Take the best path although it was not accepted: {Option('on-exhausted', 'best')}"
        if not models:
            yield f"Let a language model compare the paths: {_choose_model(settings)}"
        elif settings.ask.compose == "ends":
            yield f"Let the language model use its own knowledge too: {Option('compose', 'composed')}"
    rated = next((event for event in reversed(events) if isinstance(event, Rated)), None)
    if rated is not None and rated.confidence is not None:
        yield f"Accept answers with lower scores: {Option('min-score', rated.confidence)}"
    hops = [event.hop for event in events if isinstance(event, Pool | Kept)]
    if max(hops, default=0) >= settings.explore.depth:
        yield f"Follow longer paths: {Option('depth', settings.explore.depth + 1)}"
    elif not any(hops) and any(isinstance(event, Expanded | Kept) for event in events):
        yield f"Choose another topic, one with relations: {Option('topic', 'ID')}"
        yield f"Describe the relations of the graph in a schema: {Option('schema', 'FILE')}"
