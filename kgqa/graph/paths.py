"""What a question looks up in a graph: the next steps, ends and walks of many paths, and the edges of many nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kgqa.errors import StoreTimeout
from kgqa.graph import lookups
from kgqa.graph.folding import StatementExit, fold_steps, in_order, statement_exits
from kgqa.graph.lookups import NODE, Branch
from kgqa.graph.queries import Errors, Queries
from kgqa.graph.query.conditions import candidate_pattern
from kgqa.graph.query.patterns import PathPattern, path_pattern, returns
from kgqa.graph.query.templates import Variable
from kgqa.graph.store import Row, count_value
from kgqa.graph.tables.declarations import SIDES
from kgqa.graph.tables.graph_tables import GraphTables, by_frequency
from kgqa.graph.tables.labels import is_blank_node
from kgqa.graph.tables.mediators import mediator_filters
from kgqa.model import Candidate, Direction, Entity, Literal, RelationPath, Step, Value
from kgqa.schema import Schema
from kgqa.settings.table import WalkRule

MAX_DESCRIBING = 12
MAX_WALKED_ENDS = 50
"""Most ends to which walks are looked up at once. Servers are slow with longer VALUES lists, or refuse them."""
SAMPLED_SUBJECTS = 50
WIDENINGS = (1, 10, 100)
"""Factors for the number of edges to request: the next factor is used if too many of the returned edges are noise."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """The possible next steps of a path. `approximate`: some may be missing, because the path has too many ends."""

    steps: tuple[Step, ...]
    approximate: bool


@dataclass(frozen=True, slots=True)
class Ends:
    """The distinct entities and literals at the end of a path. `approximate`: some are missing because of a limit."""

    values: tuple[Value, ...]
    approximate: bool


@dataclass(frozen=True)
class PathQueries:
    """Looks up paths and edges, many in one query; see `Queries.look_up` for the batches.

    All methods raise `StoreError` if a query fails. Where `tolerated` names types of errors, these are returned in
    place of a result instead.

    Attributes:
        walk_rule: which nodes a walk may visit twice; see `patterns.path_pattern`.
        returns_through_mediators: whether a hop through a mediator may lead back to the node before it.
        frontier_cap: maximum number of nodes at the end of a path that are explored further.
        labels: returns the labels of entities.
    """

    queries: Queries
    tables: GraphTables
    walk_rule: WalkRule
    returns_through_mediators: bool
    frontier_cap: int
    labels: Callable[[Sequence[Entity]], dict[Entity, str]]

    @property
    def schema(self) -> Schema:
        """The schema of the graph."""
        return self.tables.schema

    # --- paths

    def steps(self, candidates: Sequence[Candidate], *, tolerated: Errors = ()) -> list[Any]:
        """Return the `Expansion` of each candidate's path: its possible next steps in both directions.

        Noise relations are left out. If two steps have the same meaning, only one is returned: a relation rather than
        its inverse walked backwards, and a claim rather than the steps through its statement. A literal has no next
        steps.

        Args:
            candidates: paths with restrictions; joins and conditions are ignored.
        """
        walks = [self._onward_pattern(each) for each in candidates]
        branches = [self._relations_branch(each.path, walk) for each, walk in zip(candidates, walks)]
        results = self.queries.look_up(branches, tolerated=tolerated)
        found = [_Found(number, candidates[number].path, walks[number], _columns(branches[number], rows))
                 for number, rows in enumerate(results) if not isinstance(rows, Exception)]  # fmt: skip
        self._drop_loops([path for path in found if path.columns.get("loop")], tolerated)
        for path in found:
            path.steps = fold_steps(path.columns, self.tables)
        self._fold_statements([path for path in found if path.path.steps], tolerated)
        for path in found:
            frontier = max(map(count_value, path.columns.get("frontier", ())), default=0)
            expansion = Expansion(in_order(path.steps), approximate=frontier > self.frontier_cap)
            results[path.number] = path.error or expansion
        self.tables.label_relations((step.relation for path in found for step in path.steps), self.labels)
        return results

    def _onward_pattern(self, candidate: Candidate) -> PathPattern:
        path, inverse = candidate.path, self.tables.inverses.get
        walk = path_pattern(path.topic, path.steps, self.walk_rule, inverse=inverse, final=False)
        return replace(walk, restricted=candidate.restricted) if candidate.restricted else walk

    def _relations_branch(self, path: RelationPath, walk: PathPattern) -> Branch:
        returning: dict[Direction, list[Entity]] = {"out": [], "in": []}
        if self.walk_rule == "no-return" and path.steps:
            inverse, last = self.tables.inverses.get, path.steps[-1]
            twins = {last.relation, inverse(last.relation), *self.tables.inverse_of.get(last.relation, ())}
            relations = sorted(relation for relation in twins if relation)
            for side in SIDES:
                returning[side] = [Entity(name) for name in relations if returns(Step(name, side), last, inverse)]
        not_node = path.topic if self.walk_rule in ("topic-not-end", "topic-never") else None
        return lookups.relations_branch(walk, cap=self.frontier_cap, not_node=not_node, returning=returning)

    def _drop_loops(self, paths: Sequence[_Found], tolerated: Errors) -> None:
        """Leave out the relations that lead from a topic only to itself."""
        branches = [lookups.onward_branch(path.path.topic, sorted(path.columns["loop"], key=str)) for path in paths]
        for path, branch, rows in zip(paths, branches, self.queries.look_up(branches, tolerated=tolerated)):
            if isinstance(rows, Exception):
                path.error = rows
                continue
            onward = _columns(branch, rows)
            for side in SIDES:
                path.columns[side] = path.columns[side] - path.columns["loop"] | onward[side]

    def _fold_statements(self, paths: Sequence[_Found], tolerated: Errors) -> None:
        """Leave out the steps through a statement that mean the same as the step along its claim."""
        leaving = [(path, exit_) for path in paths for exit_ in statement_exits(self.schema, path.path.steps[-1])]
        for path, _ in leaving if self.walk_rule != "free" else ():
            path.steps.discard(path.path.steps[-1].reversed())  # a statement has one subject and one value
        asked = [(path, exit_) for path, exit_ in leaving if exit_.step in path.steps]
        branches = [self._unclaimed_branch(path.walk, exit_) for path, exit_ in asked]
        rows_of = self.queries.look_up(branches, limit=1, tolerated=(StoreTimeout, *tolerated))
        for (path, exit_), rows in zip(asked, rows_of):
            if isinstance(rows, StoreTimeout) or not rows:  # the step along the claim is a candidate anyway
                path.steps.discard(exit_.step)
            elif isinstance(rows, Exception):
                path.error = rows

    def _unclaimed_branch(self, walk: PathPattern, leaving: StatementExit) -> Branch:
        untrue = self.schema.mediator_untrue
        return lookups.unclaimed_branch(
            walk,
            Entity(leaving.step.relation),
            Entity(leaving.claim),
            out=leaving.step.direction == "out",
            cap=self.frontier_cap,
            untrue=[(Entity(untrue[0]), Entity(kind)) for kind in untrue[1:]],
        )

    def ends(self, candidates: Sequence[Candidate], *, limit: int | None = None, tolerated: Errors = ()) -> list[Any]:
        """Return the `Ends` of each candidate's path, without mediators and without regard to its operation.

        Args:
            limit: maximum number of ends per path; None for all.

        Raises:
            PartialResult: `limit` is None, and a path has more ends than the store's row cap.
        """
        branches = [lookups.ends_branch(self.pattern(each)) for each in candidates]
        most = None if limit is None else limit + 1
        return [rows if isinstance(rows, Exception) else _ends(rows, limit)
                for rows in self.queries.look_up(branches, limit=most, tolerated=tolerated)]  # fmt: skip

    def walks(
        self,
        candidates: Sequence[Candidate],
        *,
        ends: Iterable[Value] | None = None,
        limit: int = 100,
        seconds: float | None = None,
        tolerated: Errors = (),
    ) -> list[Any]:
        """Return some walks along each candidate's path: tuples of nodes, from the topic to an end.

        Args:
            ends: ends of the walks to return (only the first `MAX_WALKED_ENDS` are used); None for any end.
            limit: maximum number of walks per path.
            seconds: maximum seconds for a query, if less than the graph's own timeout.
        """
        wanted = None if ends is None else [end for end in ends if not is_blank_node(end)][:MAX_WALKED_ENDS]
        if wanted == []:
            return [[] for _ in candidates]
        branches = [lookups.walks_branch(self.pattern(each), wanted) for each in candidates]
        rows_of = self.queries.look_up(branches, limit=limit, seconds=seconds, tolerated=tolerated)
        return [rows if isinstance(rows, Exception) else [(each.path.topic, *row) for row in rows]
                for each, rows in zip(candidates, rows_of)]  # fmt: skip

    def pattern(self, candidate: Candidate) -> PathPattern:
        """Return the pattern of a path with its joins, restrictions and conditions, and filters that exclude mediators.

        A hop through a mediator never leads back to the node before it: nobody is their own spouse.

        Raises the same errors as `candidate_pattern`.
        """
        path = candidate.path
        walk = candidate_pattern(candidate, self.walk_rule, self.tables.inverses.get)
        if not self.returns_through_mediators:
            through = [at for at in range(1, len(path)) if self.tables.leads_to_mediator(path.steps[at - 1])]
            others = [(walk.nodes[at + 1], walk.nodes[at - 1]) for at in through]
            walk = replace(walk, different=tuple(dict.fromkeys((*walk.different, *others))))
        return self._without_mediators(walk, path.steps)

    def _without_mediators(self, walk: PathPattern, steps: Sequence[Step]) -> PathPattern:
        if steps and self.tables.mediators.extent(steps[-1]) == "some":
            return replace(walk, not_mediator=mediator_filters(walk.end, self.schema, self.tables.mediators))
        return walk

    # --- nodes

    def hop(
        self, nodes: Iterable[Entity], steps: Sequence[Step], *, loops: bool = False, limit: int | None = None
    ) -> dict[Entity, tuple[Value, ...]]:
        """Return the entities and literals to which a hop leads from each node; nodes without any are left out.

        The values of a node are the ends of the path that has this node as its topic and the hop as its steps.

        Args:
            steps: one step, or a step to mediators and a step from them.
            loops: whether one step may lead from a node to the node itself, as it may between inner nodes of a path.
            limit: if a node has more values than this, more than `limit` or as many as the store returns at once, but
                not all of them are returned.

        Raises:
            PartialResult: there is no limit and a node has more values than the store returns.
        """
        wanted = _askable(nodes)
        cap = self.queries.store.capabilities.row_cap if limit is not None else None
        most = limit if limit is None else limit + 1 if cap is None else min(limit + 1, cap - 1)
        rows_of = self.queries.look_up(lookups.hop_lookups(wanted, self._hop_pattern(steps, loops)), limit=most)
        return {node: tuple(value for (value,) in rows) for node, rows in zip(wanted, rows_of) if rows}

    def hop_counts(self, nodes: Iterable[Entity], steps: Sequence[Step], *, loops: bool = False) -> dict[Entity, int]:
        """Count the entities and literals to which a hop leads from each node; see `hop`."""
        wanted = _askable(nodes)
        rows_of = self.queries.look_up(lookups.hop_count_lookups(wanted, self._hop_pattern(steps, loops)))
        return {node: count_value(rows[0][0]) if rows else 0 for node, rows in zip(wanted, rows_of)}

    def _hop_pattern(self, steps: Sequence[Step], loops: bool) -> PathPattern:
        plain = len(steps) == 1 and (loops or self.walk_rule in ("free", "no-return"))
        back = plain or (len(steps) > 1 and self.returns_through_mediators)
        rule: WalkRule = "free" if back else "topic-not-end"
        return self._without_mediators(path_pattern(NODE, steps, rule, inverse=self.tables.inverses.get), steps)

    def edges(
        self, nodes: Iterable[Entity], direction: Direction = "out", *, limit: int = lookups.MOST_ROWS
    ) -> list[tuple[Entity, Step, Value]]:
        """Return the edges of nodes, at most `limit` of each, noise included."""
        wanted = _askable(nodes)
        rows_of = self.queries.look_up(lookups.edge_lookups(wanted, direction), limit=limit)
        return [(node, *edge) for node, rows in zip(wanted, rows_of) for edge in _edges(rows, direction)]

    def neighbours(self, node: Entity, *, limit: int = 100) -> list[tuple[Step, Value]]:
        """Return up to `limit` edges of a node in each direction, without noise."""
        schema = self.schema
        noise = [Literal(prefix) for prefix in (*schema.noise_prefixes, *schema.label, *schema.alias)]
        kept = [Entity(relation) for relation in schema.noise_except]
        branches = [lookups.quiet_edges_branch(node, side, noise=noise, kept=kept) for side in SIDES]
        # the graph may mark too many relations as noise to list them in a query: request more edges instead
        for asked in (limit * times for times in WIDENINGS):
            rows_of = self.queries.look_up(branches, limit=asked)
            edges = [
                [(step, value) for step, value in _edges(rows, side) if not self.tables.is_noise(step.relation)]
                for side, rows in zip(SIDES, rows_of)
            ]
            if all(len(quiet) >= limit or len(rows) < asked for quiet, rows in zip(edges, rows_of)):
                break
        return [edge for quiet in edges for edge in quiet[:limit]]

    def degrees(self, nodes: Iterable[Entity]) -> dict[Entity, int]:
        """Count the edges of each node in both directions, noise included."""
        total = dict.fromkeys(nodes, 0)
        wanted = _askable(total)
        asked = [each for side in SIDES for each in lookups.edge_count_lookups(wanted, side, by_relation=False)]
        for each, rows in zip(asked, self.queries.look_up(asked)):
            total[each.node] += sum(count_value(count) for (count,) in rows)
        return total

    def relations_at(self, nodes: Iterable[Entity]) -> Counter[Step]:
        """Count the edges of nodes together, by relation and direction, noise included."""
        total: Counter[Step] = Counter()
        wanted = _askable(nodes)
        asked = [(side, each) for side in SIDES for each in lookups.edge_count_lookups(wanted, side, by_relation=True)]
        for (side, _), rows in zip(asked, self.queries.look_up(each for _, each in asked)):
            for relation, count in rows:
                total[Step(relation.iri, side)] += count_value(count)
        return total

    def present(self, nodes: Iterable[Entity]) -> set[Entity]:
        """Return those of the nodes that any triple has as its subject or object."""
        wanted = _askable(nodes)
        rows_of = self.queries.look_up([lookups.present_branch(node) for node in wanted], limit=1)
        return {node for node, rows in zip(wanted, rows_of) if rows}

    # --- relations

    def pairs(self, relation: Entity, *, limit: int) -> list[tuple[Entity, Value]]:
        """Return some pairs of nodes that a relation connects."""
        (rows,) = self.queries.look_up([lookups.pairs_branch(relation)], limit=limit)
        return list(rows)

    def describing_relations(self, steps: Iterable[Step]) -> dict[Step, tuple[str, ...]]:
        """Return relations that describe the nodes each step leads to, if the graph declares types for few relations.

        An outward step is described by its own relation (`has genre` leads to a genre), an inward step by the most
        frequent relations of some nodes it leads to. In a graph that declares types for a tenth of its relations, the
        result is empty.
        """
        tables, steps = self.tables, list(steps)
        if 10 * max(map(len, tables.types.values())) > len(tables.relations):
            return dict.fromkeys(steps, ())
        known: dict[str, frozenset[str]] = tables.computed("subject-relations", dict)
        inward = {step.relation for step in steps if step.direction == "in"}
        new = sorted(relation for relation in inward if relation not in known)
        branches = [lookups.subject_relations_branch(Entity(name), sample=SAMPLED_SUBJECTS) for name in new]
        # the relations are only a hint: none if it takes too long
        for name, rows in zip(new, self.queries.look_up(branches, tolerated=(StoreTimeout,))):
            relations = [] if isinstance(rows, StoreTimeout) else [each for (each,) in rows if isinstance(each, Entity)]
            known[name] = frozenset(each.iri for each in relations if not tables.is_noise(each.iri))
        return {step: (step.relation,) if step.direction == "out" else self._frequent(known[step.relation])
                for step in steps}  # fmt: skip

    def _frequent(self, relations: Iterable[str]) -> tuple[str, ...]:
        counts = self.tables.relations
        return tuple(by_frequency({name: counts[name] for name in relations if name in counts}))[:MAX_DESCRIBING]

    def ends_on_mediators(self, path: RelationPath) -> bool:
        """Return whether all ends of a path are mediators. Such a path must be extended to give answers."""
        return bool(path.steps) and self.tables.leads_to_mediator(path.steps[-1])


@dataclass(slots=True, eq=False)
class _Found:
    """What is known of a path whose next steps are looked up: the values of each variable, the steps, or an error."""

    number: int
    path: RelationPath
    walk: PathPattern
    columns: dict[str, set[Value]]
    steps: set[Step] = field(default_factory=set)
    error: Exception | None = None


def _askable(nodes: Iterable[Entity]) -> list[Entity]:
    """Return the distinct nodes that a query can name."""
    return [node for node in dict.fromkeys(nodes) if not is_blank_node(node)]


def _columns(branch: Branch, rows: Sequence[Row]) -> dict[str, set[Value]]:
    """Return the distinct values of each variable."""
    return {name.name: {value for row in rows if (value := row[place]) is not None}
            for place, name in enumerate(branch.variables) if isinstance(name, Variable)}  # fmt: skip


def _edges(rows: Iterable[Row], direction: Direction) -> list[tuple[Step, Value]]:
    return [
        (Step(relation.iri, direction), value)
        for relation, value in rows
        if isinstance(relation, Entity) and value is not None
    ]


def _ends(rows: Sequence[Row], limit: int | None) -> Ends:
    values = tuple(value for (value,) in rows if value is not None)
    return Ends(values[:limit], approximate=limit is not None and len(values) > limit)
