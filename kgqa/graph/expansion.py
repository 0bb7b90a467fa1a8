"""Finds the possible next steps of a relation path, and folds them: keeps one of several steps with the same meaning.

A relation means the same as its reverse property walked backwards. In Wikidata, a fact may be stored twice: as a direct
edge (a claim), and as a node with details (a statement). The two steps through the statement mean the same as the one
step along the claim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, cast

from kgqa.errors import StoreTimeout
from kgqa.graph.batches import TIME_SHARE, CallEach, in_batches
from kgqa.graph.charged_queries import ChargedQueries
from kgqa.graph.query.patterns import Node, TypeTest, path_pattern, returns
from kgqa.graph.query.templates import Variable, render_part
from kgqa.graph.store import Row, Rows, count_value
from kgqa.graph.tables.declarations import SIDES
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Candidate, Entity, Step, Value
from kgqa.schema import Schema
from kgqa.settings.table import WalkRule

BATCH = 20
"""Most paths whose steps are found by one query. It has three branches per path, and Virtuoso accepts some 300."""
Columns = defaultdict[str, set[Value]]
"""The distinct values of each variable of a result."""


@dataclass(frozen=True, slots=True)
class StatementExit:
    """A step out of a statement. Together with the step into the statement, it means the same as a claim.

    In Wikidata, p:P36 followed by ps:P36 means the same as the claim wdt:P36.
    """

    step: Step
    claim: str


def statement_exits(schema: Schema, last: Step) -> list[StatementExit]:
    """Return the exits of the statements to which a step leads; empty if it does not lead to statements."""
    found = []
    for enter, exit_, direct in schema.mediator_pairs:
        first, second = (enter, exit_) if last.direction == "out" else (exit_, enter)
        local = last.relation.removeprefix(first)
        if last.relation.startswith(first) and "/" not in local:
            found.append(StatementExit(Step(second + local, last.direction), direct + local))
    return found


def fold_steps(
    steps: set[Step],
    last: Step | None,
    *,
    schema: Schema,
    noise: AbstractSet[str],
    inverses: Mapping[str, str],
    inverse_of: Mapping[str, Sequence[str]],
    says_more: Callable[[StatementExit], bool],
    may_return: bool,
) -> tuple[Step, ...]:
    """Fold the possible next steps of a path, and sort the remaining steps: outward steps first, then by name.

    Args:
        last: the last step of the path; None for a path without steps.
        noise: noise relations in addition to those of the schema.
        inverses: map from each relation to its reverse property.
        inverse_of: map from each relation to the relations that declare it as their reverse.
        says_more: tells whether some statement at the end of the path has no claim; called only if needed.
        may_return: whether a walk may go back over the edge by which it reached a node.
    """
    kept = {step for step in steps if step.relation not in noise and not schema.is_noise(step.relation)}
    for step in [step for step in kept if step.direction == "out"]:
        twins = {*inverse_of.get(step.relation, ()), inverses.get(step.relation)}
        kept -= {Step(twin, "in") for twin in twins if twin}
    if last is None:
        exits, way_back = [], None
    else:
        exits, way_back = statement_exits(schema, last), last.reversed()
    for leaving in exits:
        if not may_return and way_back:
            # a statement has one subject and one value
            kept.discard(way_back)
        if leaving.step in kept and not says_more(leaving):
            kept.discard(leaving.step)
    return tuple(sorted(kept, key=lambda step: (step.direction == "in", step.relation)))


@dataclass(frozen=True, slots=True)
class Expansion:
    """The possible next steps of a path.

    `approximate` is true if steps may be missing, because the path has too many ends.
    """

    steps: tuple[Step, ...]
    approximate: bool


class StepsFinder:
    """Finds the possible next steps of many paths.

    Args:
        queries: runs the queries.
        call_each: calls a function for each item; see `batches.CallEach`.
        tables: the tables of the graph.
        walks: the walk rule.
        cap: maximum number of nodes at the end of a path that are explored.
        timeout: maximum seconds for the query of a single path.
    """

    def __init__(
        self,
        queries: ChargedQueries,
        call_each: CallEach,
        *,
        tables: GraphTables,
        walks: WalkRule,
        cap: int,
        timeout: float,
    ) -> None:
        self._queries = queries
        self._call_each = call_each
        self._tables = tables
        self._walks: WalkRule = walks
        self._cap = cap
        self._timeout = timeout

    def find(self, candidates: Sequence[Candidate], *, tolerated: tuple[type[Exception], ...]) -> list[Any]:
        """Return the expansion of each candidate's path, or the error of its query. See `next_steps_of`."""
        paths = [
            PathExpansion(each, queries=self._queries, tables=self._tables, walks=self._walks, cap=self._cap)
            for each in candidates
        ]
        found: dict[int, Any] = {}
        # paths without steps have other variables
        for some in ([n for n, path in enumerate(paths) if path.is_onward is onward] for onward in (False, True)):
            columns = in_batches(
                [paths[n] for n in some],
                self._batch,
                lambda path: path.columns(self._queries.select("relations", **path.values())),
                size=BATCH,
                call_each=self._call_each,
                tolerated=tolerated,
            )
            found |= dict(zip(some, columns))
        whole = [n for n in range(len(paths)) if not isinstance(found[n], tolerated)]
        found |= dict(zip(whole, self._call_each(lambda n: paths[n].expansion(found[n]), whole, tolerated=tolerated)))
        return [found[n] for n in range(len(paths))]

    def _batch(self, paths: Sequence[PathExpansion]) -> list[Columns]:
        rows = self._queries.select_within(
            TIME_SHARE * self._timeout,
            "relations_of",
            recorded=False,
            parts=[render_part("_relations", **path.values()) for path in paths],
            variables=paths[0].variables,
        )
        several: list[list[Row]] = [[] for _ in paths]
        for number, *row in rows:
            several[count_value(number)].append(tuple(row))
        return [path.columns(Rows(rows.variables[1:], own)) for path, own in zip(paths, several)]


class PathExpansion:
    """The possible next steps of one path.

    Args:
        candidate: the path to extend, and the entities to which its nodes are restricted.
        queries: runs further queries, which few paths need.
        tables: the tables of the graph.
        walks: the walk rule.
        cap: maximum number of nodes at the end of the path that are explored.
    """

    def __init__(
        self, candidate: Candidate, *, queries: ChargedQueries, tables: GraphTables, walks: WalkRule, cap: int
    ) -> None:
        self._path = candidate.path
        pattern = path_pattern(candidate.path, walks, inverse=tables.inverses.get, final=False)
        self._pattern = replace(pattern, restricted=candidate.restricted) if candidate.restricted else pattern
        self._queries = queries
        self._tables = tables
        self._walks = walks
        self._cap = cap

    @property
    def is_onward(self) -> bool:
        """Whether the path has steps; if not, its only end is the topic."""
        return bool(self._path.steps)

    @property
    def variables(self) -> list[Variable]:
        """The variables of the query's result."""
        more = "frontier" if self.is_onward else "loop" if self._topic_is_no_end else ""
        return [Variable(name) for name in (*SIDES, more) if name]

    @property
    def _topic_is_no_end(self) -> bool:
        """Whether edges to the topic do not count as steps."""
        return self._walks in ("topic-not-end", "topic-never")

    @staticmethod
    def columns(rows: Rows) -> Columns:
        """Return the distinct values of each variable."""
        columns: Columns = defaultdict(set)
        for row in rows:
            for name, value in zip(rows.variables, row):
                if value is not None:
                    columns[name].add(value)
        return columns

    def expansion(self, found: Columns) -> Expansion:
        """Fold the steps that were found, after a further query if the topic has edges to itself."""
        if loops := found["loop"]:
            onward = self.columns(
                self._queries.select("past_loops", node=self._path.topic, relations=sorted(loops, key=str))
            )
            found |= {side: found[side] - loops | onward[side] for side in SIDES}
        frontier = max((count_value(count) for count in found["frontier"]), default=0)
        tables = self._tables
        steps = fold_steps(
            {Step(node.iri, side) for side in SIDES for node in found[side] if isinstance(node, Entity)},
            self._path.steps[-1] if self._path.steps else None,
            schema=tables.schema,
            noise=tables.noise,
            inverses=tables.inverses,
            inverse_of=tables.inverse_of,
            says_more=self.says_more,
            may_return=self._walks == "free",
        )
        return Expansion(steps, approximate=frontier > self._cap)

    def says_more(self, leaving: StatementExit) -> bool:
        """Return whether some statement at the end of the path has no claim, because a newer statement replaced it."""
        pattern, out = self._pattern, leaving.step.direction == "out"
        entered_from, other = pattern.nodes[-2], Variable("other")
        keep = [pattern.end] if isinstance(entered_from, Entity) else [entered_from, pattern.end]
        untrue = self._tables.schema.mediator_untrue
        try:
            return self._queries.ask(
                "says_more",
                walk=pattern,
                keep=keep,
                cap=self._cap,
                out=out,
                exit=Entity(leaving.step.relation),
                claim=Entity(leaving.claim),
                owner=entered_from if out else other,
                value=other if out else entered_from,
                untrue=[TypeTest(Entity(untrue[0]), Entity(kind)) for kind in untrue[1:]],
            )
        except StoreTimeout:
            return False  # the step along the claim is a candidate anyway

    def values(self) -> dict[str, Any]:
        """Return the values for the template of the query."""
        path, pattern = self._path, self._pattern
        returning: dict[str, list[Entity]] = {"out": [], "in": []}
        previous = pattern.nodes[-2] if len(path) else None
        keep: list[Node] = [pattern.end]
        if self._walks == "no-return" and len(path):
            returning = self._returning(path.steps[-1])
            if len(path) > 1:
                keep.insert(0, cast(Node, previous))
        return {
            "walk": pattern,
            "keep": keep,
            "cap": self._cap,
            "not_node": path.topic if self._topic_is_no_end else None,
            "not_out": returning["out"],
            "not_in": returning["in"],
            "previous": previous,
        }

    def _returning(self, last: Step) -> dict[str, list[Entity]]:
        """Return, for each direction, the relations by which a walk can go back over the edge of the last step."""
        inverse: Callable[[str], str | None] = self._tables.inverses.get
        known = {last.relation, inverse(last.relation), *self._tables.inverse_of.get(last.relation, ())}
        relations = sorted(relation for relation in known if relation)
        return {
            side: [Entity(relation) for relation in relations if returns(Step(relation, side), last, inverse)]
            for side in SIDES
        }
