"""Recall of supporting passages: how many of them the pieces contain that a method retrieved, step by step.

Some data sets name the passages that support the answer to a question. A supporting passage is found if one of the
retrieved pieces is a part of it: a chunk of its text, or a statement or hyperedge that was read there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from kgqa.evaluation.metrics.measures import Interval, mean

CUTS = (2, 5, 10)
"""The numbers of pieces k for which recall@k is computed."""
MAX_STEPS = 50
Support = Sequence[Collection[str]]
"""For each supporting passage, the IRIs of the pieces that are parts of it."""


@dataclass(frozen=True, slots=True)
class Step:
    """The pieces that were retrieved for one sub-question, or for the question itself.

    `lists`: the pieces of each retrieval, best first. `channels`: the channel of each retrieval.
    """

    number: int
    lists: tuple[tuple[str, ...], ...] = ()
    channels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reached:
    """The share of supporting passages that were found (`recall`), and whether all were (`chain`, 0 or 1)."""

    recall: float
    chain: float


@dataclass(frozen=True)
class RetrievalScores:
    """How much of the supporting passages of one question was retrieved.

    `at`: in the first k pieces, by k; the lists of all retrievals are interleaved, best pieces first. `all`: in all
    pieces. `kept`: in the pieces that prompts showed, None if the trace does not contain them. `steps`: in all pieces
    up to each step; the first steps of channels with sub-questions of their own count as one step, and so do the second
    ones. `channels`: the recall up to each step, from the pieces of one channel. `in_corpus`: share of the
    supporting passages that the corpus contains.
    """

    at: Mapping[int, Reached]
    all: Reached
    kept: Reached | None
    steps: tuple[Reached, ...]
    channels: Mapping[str, tuple[float, ...]]
    in_corpus: float


def retrieval_steps(trace: Iterable[Mapping[str, Any]]) -> list[Step]:
    """Collect the `retrieved` events of a trace by step, in the order in which the steps first occur."""
    found: dict[int, list[tuple[tuple[str, ...], str]]] = {}
    for event in trace:
        if event.get("kind") == "retrieved":
            step = event.get("step")
            number = step if isinstance(step, int) else 0
            found.setdefault(number, []).append((_iris(event), str(event.get("channel") or "")))
    return [
        Step(number, tuple(pieces for pieces, _ in each), tuple(channel for _, channel in each))
        for number, each in found.items()
    ]


def retrieval_scores(trace: Sequence[Mapping[str, Any]], support: Support) -> RetrievalScores | None:
    """Compute the recall of the supporting passages of a question; None if it has none.

    Args:
        trace: the events of the question, as in an answer object.
        support: the supporting passages; a passage without pieces is not in the corpus and is never found.
    """
    if not support:
        return None
    steps = retrieval_steps(trace)
    lists = [pieces for step in steps for pieces in step.lists]
    ranked = list(dict.fromkeys(iri for row in zip_longest(*lists) for iri in row if iri is not None))
    kept = [_iris(event) for event in trace if event.get("kind") == "pieces_kept"]
    channels = dict.fromkeys(channel for step in steps for channel in step.channels if channel)
    return RetrievalScores(
        at={k: _reached(ranked[:k], support) for k in CUTS},
        all=_reached(ranked, support),
        kept=_reached([iri for pieces in kept for iri in pieces], support) if kept else None,
        steps=tuple(_cumulative(steps, support)),
        channels={name: tuple(each.recall for each in _cumulative(steps, support, name)) for name in channels},
        in_corpus=sum(bool(pieces) for pieces in support) / len(support),
    )


def _iris(event: Mapping[str, Any]) -> tuple[str, ...]:
    pieces = event.get("pieces")
    return tuple(map(str, pieces)) if isinstance(pieces, (list, tuple)) else ()


def _cumulative(steps: Sequence[Step], support: Support, channel: str = "") -> Iterable[Reached]:
    """Yield what was found up to each step, from one channel or from all."""
    seen: set[str] = set()
    for together in _aligned(steps)[:MAX_STEPS]:
        for step in together:
            for pieces, name in zip(step.lists, step.channels, strict=True):
                if channel in ("", name):
                    seen.update(pieces)
        yield _reached(seen, support)


def _aligned(steps: Sequence[Step]) -> list[list[Step]]:
    """Put steps of different channels together: the first step of each channel, the second, and so on."""
    found: list[list[Step]] = []
    counts: Counter[str] = Counter()
    for step in steps:
        place = max((counts[name] for name in step.channels), default=0)
        counts.update({name: place + 1 - counts[name] for name in set(step.channels)})
        if place == len(found):
            found.append([])
        found[place].append(step)
    return found


def _reached(pieces: Collection[str], support: Support) -> Reached:
    there = set(pieces)
    found = sum(not there.isdisjoint(passage) for passage in support)
    return Reached(found / len(support), float(found == len(support)))


@dataclass
class RetrievalTable:
    """The retrieval of all questions of a run that have supporting passages."""

    rows: list[RetrievalScores] = field(default_factory=list)

    def add(self, trace: Sequence[Mapping[str, Any]], support: Support) -> None:
        """Add a question; without supporting passages, nothing is added."""
        if scores := retrieval_scores(trace, support):
            self.rows.append(scores)

    def summary(self, interval: Interval = "bootstrap") -> dict[str, Any]:
        """Summarise the questions as plain JSON data; empty if nothing was retrieved.

        Keys:
            n: number of questions with supporting passages; a question without retrieval counts as 0.
            in_corpus: mean share of the supporting passages that the corpus contains.
            recall@k, full_chain@k, recall, full_chain: means with intervals.
            kept_recall, kept_full_chain: the same for the pieces that prompts showed, if known.
            by_step: [{step, n, recall, full_chain}]; n questions have so many steps, the others keep their last value.
            by_channel: {channel: [recall after each step]}.
        """
        rows = self.rows
        if not any(row.steps for row in rows):
            return {}
        found: dict[str, Any] = {"n": len(rows), "in_corpus": _average([row.in_corpus for row in rows])}
        parts = {f"@{k}": [row.at[k] for row in rows] for k in CUTS} | {"": [row.all for row in rows]}
        for name, each in parts.items():
            found[f"recall{name}"] = mean([value.recall for value in each], interval=interval).as_json()
            found[f"full_chain{name}"] = mean([value.chain for value in each], interval=interval).as_json()
        if kept := [row.kept for row in rows if row.kept is not None]:
            found["kept_recall"] = mean([value.recall for value in kept], interval=interval).as_json()
            found["kept_full_chain"] = mean([value.chain for value in kept], interval=interval).as_json()
        found["by_step"] = [
            {
                "step": step,
                "n": sum(len(row.steps) >= step for row in rows),
                "recall": _average([_after([each.recall for each in row.steps], step) for row in rows]),
                "full_chain": _average([_after([each.chain for each in row.steps], step) for row in rows]),
            }
            for step in range(1, max(len(row.steps) for row in rows) + 1)
        ]
        names = dict.fromkeys(name for row in rows for name in row.channels)
        found["by_channel"] = {
            name: [
                _average([_after(row.channels.get(name, ()), step) for row in rows])
                for step in range(1, len(found["by_step"]) + 1)
            ]
            for name in names
        }
        return found


def _after(values: Sequence[float], step: int) -> float:
    """Return the value after a step, or the last value if there are fewer steps; 0 without any."""
    return values[min(step, len(values)) - 1] if values else 0.0


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)
