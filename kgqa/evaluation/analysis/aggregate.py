"""The content of metrics.json: every metric of a run with its interval, and failures, costs and groups of questions.

The records are read once, and need a few hundred bytes of memory per question.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kgqa.evaluation.analysis.comparison import GROUPINGS
from kgqa.evaluation.metrics.measures import Interval, mean
from kgqa.evaluation.metrics.retrieval import RetrievalTable
from kgqa.evaluation.metrics.scores import METRIC_NAMES, all_scores
from kgqa.evaluation.metrics.turns import TurnTable
from kgqa.evaluation.runs.records import Record
from kgqa.model import StageUsage, Usage

COSTS = ("calls", "prompt_tokens", "completion_tokens", "tokens", "cost", "queries", "seconds")
GROUP_METRICS = ("hit@1", "f1", "em", "tog_em")
QUERY_CLASSES = ("exact", "restricted", "superset", "none")
COUNTED = ("statuses", "failures", "losses", "topics")
MAX_GROUPS = 50


def summary_of(records: Iterable[Record], *, interval: Interval = "bootstrap") -> dict[str, Any]:
    """Summarise a run as plain JSON data, with None for undefined values.

    Keys:
        n, scored, failed: number of all questions, of questions with gold answers, and of failed questions; each
            rollout of a question counts.
        scores: {metric: {value, low, high, n}} over the scored questions; a failed question scores 0. Rollouts of a
            question count as one question, with the mean of their scores.
        scores_without_failed: the same without the failed questions.
        lost_to_failures: {metric: mean without failed questions - mean with failed questions}.
        statuses, failures, losses: number of questions with each value, the most frequent first.
        topics: number of questions with topic entities of the data set (gold), found in the text (linked), or none.
        grounding, reproduced: shares of the answered questions.
        quotes: {n, answers, count, verified}: number of answered questions, share of them with a verified quote, number
            of quotes, share of verified quotes.
        retrieval: recall of supporting passages (see `RetrievalTable.summary`); empty if nothing was retrieved.
        turns: trials, turns, calls and edits (see `TurnTable.summary`); empty if no method acted in turns.
        leaks, unparsed: counts.
        usage: {each of COSTS: {n, mean, p50, p95, total}}.
        groups: {grouping: {name of the group: {n, metric...}}}.
    """
    table = _Table()
    for record in records:
        table.add(record)
    return table.summary(interval)


def _topics_of(record: Record) -> str:
    """Return where the topic entities of a question came from: gold, linked or none."""
    if any(isinstance(event, Mapping) and event.get("kind") == "linked" for event in record.answer.get("trace") or ()):
        return "linked"
    used = record.topics and (record.answer.get("topics") or record.status == "failed")
    return "gold" if used else "none"


class _Table:
    """Numbers in columns, with a row per question."""

    def __init__(self) -> None:
        self.n = self.failed = 0
        self.scores: dict[str, array[float]] = {name: array("d") for name in METRIC_NAMES}
        self.did_not_fail = array("b")
        self.question = array("q")
        """The number of the question that each row belongs to; the rollouts of a question share it."""
        self._numbers: dict[str, int] = {}
        self.groups: dict[str, list[str]] = {name: [] for name in GROUPINGS}
        self.costs: dict[str, array[float]] = {name: array("d") for name in COSTS}
        self.unpriced = 0
        self.without_reply = 0
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in (*COUNTED, "grounding", "reproduced")}
        self.leaked = self.leaks = self.calls = 0
        self.quoted = self.quotes = self.verified = 0
        self.stages: dict[str, Counter[str]] = {}
        self.retrieval = RetrievalTable()
        self.turns = TurnTable()
        self._names: dict[str, str] = {}

    def add(self, record: Record) -> None:
        answer = record.answer
        failed = record.status == "failed" or bool(record.failure)
        self.n += 1
        self.failed += failed
        self.counts["statuses"][record.status] += 1
        if failed:
            self.counts["failures"][record.failure or "unknown"] += 1
        self.counts["topics"][_topics_of(record)] += 1
        if record.loss:
            self.counts["losses"][record.loss] += 1
        if record.status == "answered":
            self.counts["grounding"][str(answer.get("grounding", "none"))] += 1
            self.counts["reproduced"][str(answer.get("query_class", "none"))] += 1
        self.leaked += record.leaks > 0
        self.leaks += record.leaks
        self._add_usage(answer.get("usage") or {}, record.seconds)
        self._add_quotes(answer)
        self.retrieval.add(answer.get("trace") or (), record.support)
        self.turns.add(answer.get("trace") or ())
        scores = all_scores(record.scores, answer, record.readings)
        if scores:
            self.did_not_fail.append(not failed)
            new = len(self.question)
            self.question.append(self._numbers.setdefault(record.group, new) if record.group else new)
            for name in METRIC_NAMES:
                self.scores[name].append(_number(scores.get(name)))
            for name, of in GROUPINGS.items():
                group = of(record)
                self.groups[name].append(self._names.setdefault(group, group))

    def _add_quotes(self, answer: Mapping[str, Any]) -> None:
        """Count the quotes that an answer cites, and those that stand where they are said to."""
        if answer.get("status") != "answered":
            return
        verified = [bool(each.get("verified")) for each in answer.get("citations") or () if each.get("quote")]
        self.quotes += len(verified)
        self.verified += sum(verified)
        self.quoted += any(verified)

    def _add_usage(self, usage: Mapping[str, Any], seconds: float) -> None:
        calls = _number(usage.get("calls"))
        self.calls += int(calls)
        for name in ("calls", "prompt_tokens", "completion_tokens", "queries"):
            self.costs[name].append(_number(usage.get(name)))
        self.costs["tokens"].append(_number(usage.get("prompt_tokens")) + _number(usage.get("completion_tokens")))
        self.costs["seconds"].append(seconds or _number(usage.get("seconds")))
        if usage.get("cost") is not None or not calls:
            self.costs["cost"].append(_number(usage.get("cost")))
        else:
            self.unpriced += 1
        for stage in usage.get("stages") or ():
            counts = self.stages.setdefault(str(stage.get("stage", "")), Counter())
            for what in ("calls", "unparsed", "repaired", "reasked", "failed"):
                counts[what] += int(_number(stage.get(what)))
        whats = ("calls", "unparsed", "reasked")
        every = [{what: int(_number(each.get(what))) for what in whats} for each in usage.get("stages") or ()]
        stages = tuple(StageUsage("", **each) for each in every)
        self.without_reply += Usage(stages=stages).no_usable_reply

    def summary(self, interval: Interval) -> dict[str, Any]:
        kept = np.array(self.did_not_fail, dtype=bool)
        columns = {name: np.array(values) for name, values in self.scores.items()}
        asked = np.array(self.question, dtype=np.int64)
        scores = {name: _mean(values, asked, interval) for name, values in columns.items()}
        # without failures both means are equal, and one bootstrap is enough
        others = scores if kept.all() else {name: _mean(v[kept], asked[kept], interval) for name, v in columns.items()}
        answered = self.counts["statuses"]["answered"]
        unparsed = sum(counts["unparsed"] for counts in self.stages.values())
        return {
            "n": self.n,
            "scored": int(kept.size),
            "failed": self.failed,
            "scores": scores,
            "scores_without_failed": others,
            "lost_to_failures": {name: _less(others[name]["value"], scores[name]["value"]) for name in scores},
            **{name: _counted(self.counts[name]) for name in COUNTED},
            "grounding": _shares(self.counts["grounding"], ("graph", "text", "model", "none"), answered),
            "reproduced": _shares(self.counts["reproduced"], QUERY_CLASSES, answered),
            "quotes": {
                "n": answered,
                "answers": _share(self.quoted, answered),
                "count": self.quotes,
                "verified": _share(self.verified, self.quotes),
            },
            "retrieval": self.retrieval.summary(interval),
            "turns": self.turns.summary(),
            "leaks": {"questions": self.leaked, "names": self.leaks, "share": _share(self.leaked, self.n)},
            "unparsed": {
                "count": unparsed,
                "calls": self.calls,
                "rate": _share(unparsed, self.calls),
                "questions": self.without_reply,
                "by_stage": {
                    name: {**counts, "rate": _share(counts["unparsed"], counts["calls"])}
                    for name, counts in sorted(self.stages.items())
                },
            },
            "usage": {name: _spread(values) for name, values in self.costs.items()} | {"unpriced": self.unpriced},
            "groups": {
                name: found for name, of in self.groups.items() if (found := self._grouped(of, columns, interval))
            },
        }

    def _grouped(self, of: Sequence[str], columns: Mapping[str, np.ndarray], interval: Interval) -> dict[str, Any]:
        """Return the means of each group, sorted by the name of the group; empty if no question has a group."""
        counts = Counter(of)
        if set(counts) <= {""}:
            return {}
        names = np.array(of)
        found = {}
        for group, count in sorted(counts.most_common(MAX_GROUPS)):
            here = names == group
            asked = np.array(self.question, dtype=np.int64)[here]
            scores = {name: _mean(columns[name][here], asked, interval) for name in GROUP_METRICS}
            found[group or "not known"] = {"n": count, **scores}
        return found


def _mean(values: np.ndarray, questions: np.ndarray, interval: Interval) -> dict[str, float | int | None]:
    """Return the mean over questions; rows with the same number of a question are one question with their mean."""
    _, places = np.unique(questions, return_inverse=True)
    if values.size and int(places.max()) + 1 < values.size:
        values = np.bincount(places, weights=values) / np.bincount(places)
    return mean(values, interval=interval).as_json()  # type: ignore[arg-type]


def _spread(values: array[float]) -> dict[str, float | int | None]:
    if not values:
        return {"n": 0, "mean": None, "p50": None, "p95": None, "total": 0.0}
    data = np.array(values)
    middle, high = np.percentile(data, (50, 95))
    return {
        "n": len(values),
        "mean": float(data.mean()),
        "p50": float(middle),
        "p95": float(high),
        "total": float(data.sum()),
    }


def _shares(counts: Counter[str], names: Sequence[str], of: int) -> dict[str, Any]:
    return {"n": of, **{name: _share(counts[name], of) for name in names}}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _less(one: Any, other: Any) -> float | None:
    return None if one is None or other is None else one - other


def _counted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def _number(value: Any) -> float:
    """Return a finite number, or 0 for any other value that a file may contain."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return float(value)
