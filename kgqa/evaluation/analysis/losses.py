"""Finds the step of a method at which the right answer was lost.

The trace is compared with the solutions: the paths that lead to exactly the gold answers.

The trace must contain the events `Pool`, `Shortlist`, `Kept`, `PathsRanked` and `Rejected` with the keys of paths
(`words.path_key`). Joined paths form one candidate; its key is `words.paths_key`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from kgqa.evaluation.analysis.reach import Reach, Solution
from kgqa.model import Answer, Entity, RelationPath, Step
from kgqa.schema import Schema
from kgqa.text.words import MEETING, path_key, paths_key
from kgqa.trace import Event, Kept, Linked, PathsRanked, Pool, Rejected, Shortlist

Loss = OneOf[
    "right",
    "unsupported",
    "failed",
    "budget",
    "linking",
    "no path",
    "unknown",
    "not expanded",
    "prefilter",
    "tournament",
    "joining",
    "depth",
    "last comparison",
    "rejected",
    "read",
    "not retrieved",
    "not kept",
    "misread",
    "not accepted",
]
LOSSES: dict[Loss, str] = {
    "right": "the answers are the gold answers",
    "unsupported": "the method declined the question before exploring the graph",
    "failed": "the question ended with an error, or a topic entity is not in the graph",
    "budget": "the question's budget was spent before a solution was found",
    "linking": "the graph was explored from other topic entities than those of the data set, or from none",
    "no path": "no path of the allowed depth, and no join of two paths, leads to exactly the gold answers",
    "unknown": "the search for a solution was incomplete, the trace has no path keys, or the data set of a method over "
    "text names no supporting passages",
    "not expanded": "a solution exists, but the beginning of its path was not kept",
    "prefilter": "the prefilter removed the solution",
    "tournament": "the solution lost a tournament",
    "joining": "one path of the solution was kept, but the join was not formed or not chosen",
    "depth": "the solution was kept, but a path of another length was ranked first",
    "last comparison": "the solution was kept, but another path of the same length was ranked first",
    "rejected": "the solution was ranked first, but not accepted",
    "read": "the solution was ranked first, but not all of its answers were read or selected",
    "not retrieved": "over text: a supporting passage was not retrieved",
    "not kept": "over text: a supporting passage was retrieved, but no prompt showed it",
    "misread": "over text: prompts showed all supporting passages, but none was answered rightly",
    "not accepted": "over text: a prompt was answered rightly, but this was not the answer in the end",
}
Hops = Callable[[RelationPath], int]


def paths_of(key: str, schema: Schema) -> list[RelationPath]:
    """Convert a key to the paths that it stands for.

    Raises:
        SchemaError: the key does not belong to graphs of this schema.
    """
    found = []
    for part in key.split(MEETING):
        topic, *rest = part.split(" ")
        edges = zip(rest[::2], rest[1::2])
        steps = tuple(Step(schema.iri(relation), "out" if arrow == "->" else "in") for arrow, relation in edges)
        found.append(RelationPath(Entity(schema.iri(topic)), steps))
    return found


@dataclass(frozen=True, slots=True)
class TraceKeys:
    """The path keys in a trace, by event.

    `ranked`: the keys of the last comparison, best first; `complete`: False if the trace contains no keys of paths.
    """

    pool: frozenset[str]
    shortlist: frozenset[str]
    kept: frozenset[str]
    ranked: tuple[str, ...]
    rejected: frozenset[str]
    complete: bool

    @classmethod
    def of(cls, events: Sequence[Event]) -> TraceKeys:
        """Collect the path keys of a trace."""
        ranked = [event.keys for event in events if isinstance(event, PathsRanked)]
        return cls(
            pool=frozenset(key for event in events if isinstance(event, Pool) for key in event.paths),
            shortlist=frozenset(key for event in events if isinstance(event, Shortlist) for key in event.paths),
            kept=frozenset(key for event in events if isinstance(event, Kept) for key in event.keys),
            ranked=ranked[-1] if ranked else (),
            rejected=frozenset(event.key for event in events if isinstance(event, Rejected)),
            complete=any(isinstance(event, Pool) for event in events),
        )


def lost_at(
    answer: Answer,
    reach: Reach,
    schema: Schema,
    *,
    right: bool,
    gold_topics: Sequence[Entity] = (),
    hops: Hops = len,
) -> Loss:
    """Find out at which step the gold answers were lost.

    If there are several solutions, the result is the step at which the last of them was lost.

    Args:
        reach: result of `exact_paths` for the gold topics.
        right: True if the answers are the gold answers.
        gold_topics: topic entities of the data set; if empty, entity linking is not checked.
        hops: computes the length of a path; by default the number of edges.
    """
    if right:
        return "right"
    early: dict[str, Loss] = {"unsupported": "unsupported", "failed": "failed"}
    if answer.status in early:
        return early[answer.status]
    if any(isinstance(event, Linked) and not event.mentions for event in answer.trace):
        return "linking"
    found = {topic.value for topic in answer.topics}
    if gold_topics and found and not found >= set(gold_topics):
        return "linking"
    if not reach.solutions:
        return "unknown" if reach.capped else "no path"
    traced = TraceKeys.of(answer.trace)
    if not traced.complete:
        return "budget" if answer.status == "budget_exhausted" else "unknown"
    furthest = max((_stage(solution, traced, answer, schema, hops) for solution in reach.solutions), key=_ORDER.index)
    if answer.status == "budget_exhausted" and furthest in ("not expanded", "depth", "last comparison", "read"):
        return "budget"
    return furthest


_ORDER: tuple[Loss, ...] = (
    "not expanded",
    "prefilter",
    "tournament",
    "joining",
    "depth",
    "last comparison",
    "rejected",
    "read",
)


def _stage(solution: Solution, traced: TraceKeys, answer: Answer, schema: Schema, hops: Hops) -> Loss:
    whole = paths_key(solution, schema)
    keys = {whole, *(path_key(path, schema) for path in solution)}
    first = traced.ranked[0] if traced.ranked else None
    if whole in traced.rejected:
        return "rejected"
    if whole == first:
        return "read"
    if whole in traced.kept or whole in traced.ranked:
        return "depth" if _other_length(whole, first, answer, schema, hops) else "last comparison"
    if len(solution) > 1 and keys & (traced.kept | set(traced.ranked)):
        return "joining"
    if keys & traced.shortlist:
        return "tournament"
    if keys & traced.pool:
        return "prefilter"
    return "not expanded"


def _other_length(whole: str, first: str | None, answer: Answer, schema: Schema, hops: Hops) -> bool:
    """Whether this solution differs in length from the path ranked first (from the answer's path if none is ranked)."""
    if first is None:
        if not answer.paths:
            return False
        first = paths_key((evidence.path for evidence in answer.paths), schema)
    longest = (max(map(hops, paths_of(key, schema))) for key in (whole, first))
    return next(longest) != next(longest)
