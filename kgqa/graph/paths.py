"""What a question looks up in a graph: the next steps, ends and walks of many paths, and the edges of many nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from kgqa.errors import StoreTimeout
from kgqa.graph.editing import batches
from kgqa.graph.next_steps import OpenPath, find_steps
from kgqa.graph.queries import NO_NODES, NODE, NODES, Errors, Lookup, Queries
from kgqa.graph.query.operations import candidate_pattern
from kgqa.graph.query.text import (
    Node,
    PathPattern,
    Variable,
    path_pattern,
    pattern_text,
    render_term,
    term_list,
    values_clause,
)
from kgqa.graph.store import Row, count_value
from kgqa.graph.tables.declarations import SIDES, mediator_filters
from kgqa.graph.tables.graph_tables import GraphTables, by_frequency
from kgqa.graph.tables.labels import is_blank_node
from kgqa.model import Candidate, Direction, Entity, Literal, RelationPath, Step, Value
from kgqa.settings.table import WalkRule

ANSWER, RELATION, VALUE, COUNT = map(Variable, ("answer", "relation", "value", "count"))
MAX_DESCRIBING = 12
MAX_EDGES = 2000
MAX_WALKED_ENDS = 50
"""Most ends to which walks are looked up at once. Servers are slow with longer VALUES lists, or refuse them."""
SAMPLED_ENDS = 50
MAX_NOISE = 1000
"""How many more edges of a node are requested than are wanted, because the graph may mark so many of them as noise."""


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
        walk_rule: which nodes a walk may visit twice; see `text.path_pattern`.
        returns_through_mediators: whether a hop through a mediator may lead back to the node before it.
        frontier_cap: maximum number of nodes at the end of a path that are explored further.
        labels: returns the labels of entities.
        noise: whether exploration follows relations that the schema or the graph marks as noise.
    """

    queries: Queries
    tables: GraphTables
    walk_rule: WalkRule
    returns_through_mediators: bool
    frontier_cap: int
    labels: Callable[[Sequence[Entity]], dict[Entity, str]]
    noise: bool = False

    # --- paths

    def steps(self, candidates: Sequence[Candidate], *, tolerated: Errors = ()) -> list[Any]:
        """Return the `Expansion` of each candidate's path: its possible next steps in both directions.

        Noise relations are left out, unless `noise`. If two steps have the same meaning, only one is returned: a
        relation rather than its inverse walked backwards, and a claim rather than the steps through its statement. A
        literal has no next steps.

        Args:
            candidates: paths with restrictions; joins and conditions are ignored.
        """
        inner = partial(path_pattern, rule=self.walk_rule, inverse=self.tables.inverses.get, final=False)
        found = [
            OpenPath(each.path, replace(inner(each.path.topic, each.path.steps), restricted=each.restricted))
            for each in candidates
        ]
        cap = self.frontier_cap
        find_steps(
            found, self.queries, self.tables, rule=self.walk_rule, cap=cap, noise=self.noise, tolerated=tolerated
        )
        self.tables.label_relations((step.relation for each in found for step in each.steps), self.labels)
        return [each.error or Expansion(tuple(sorted(each.steps, key=_place)), each.frontier > cap) for each in found]

    def ends(self, candidates: Sequence[Candidate], *, limit: int | None = None, tolerated: Errors = ()) -> list[Any]:
        """Return the `Ends` of each candidate's path, without mediators and without regard to its operation.

        Args:
            limit: maximum number of ends per path; None for all.

        Raises:
            PartialResult: `limit` is None, and a path has more ends than the store's row cap.
        """
        patterns = map(self.pattern, candidates)
        lookups = [Lookup((walk.end,), pattern_text(walk)) for walk in patterns]
        most = None if limit is None else limit + 1
        return [rows if isinstance(rows, Exception) else _ends(rows, limit)
                for rows in self.queries.look_up(lookups, limit=most, tolerated=tolerated)]  # fmt: skip

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
        chosen = ""
        if ends is not None:
            wanted = [end for end in ends if not is_blank_node(end)][:MAX_WALKED_ENDS]
            if not wanted:
                return [[] for _ in candidates]
            # Virtuoso replaces a single value by a constant, and then returns a boolean as the number 1
            alone = len(wanted) == 1 and isinstance(wanted[0], Literal)
            chosen = f"  {values_clause(ANSWER, [*wanted, Entity('urn:kgqa:nothing')] if alone else wanted)}\n"
        lookups = [
            Lookup(walk.nodes[1:], f"{chosen}{pattern_text(walk, nested=False)}")
            for walk in map(self.pattern, candidates)
        ]
        rows_of = self.queries.look_up(lookups, limit=limit, seconds=seconds, tolerated=tolerated)
        return [rows if isinstance(rows, Exception) else [(each.path.topic, *row) for row in rows]
                for each, rows in zip(candidates, rows_of)]  # fmt: skip

    def pattern(self, candidate: Candidate) -> PathPattern:
        """Return the pattern of a path with its joins, restrictions and conditions, and filters that exclude mediators.

        A hop through a mediator never leads back to the node before it: nobody is their own spouse.
        """
        path = candidate.path
        walk = candidate_pattern(candidate, self.walk_rule, self.tables.inverses.get)
        if not self.returns_through_mediators:
            through = [at for at in range(1, len(path)) if self.tables.leads_to_mediator(path.steps[at - 1])]
            others = [(walk.nodes[at + 1], walk.nodes[at - 1]) for at in through]
            walk = replace(walk, different=tuple(dict.fromkeys((*walk.different, *others))))
        if path.steps and self.tables.mediators.extent(path.steps[-1]) == "some":
            walk = replace(walk, not_mediator=mediator_filters(walk.end, self.tables.mediators))
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
        cap = self.queries.store.capabilities.row_cap if limit is not None else None
        most = limit if limit is None else limit + 1 if cap is None else min(limit + 1, cap - 1)
        rows_of = self._at_nodes(nodes, (ANSWER,), self._hop_text(steps, loops), most)
        return {node: _ends(rows, None).values for node, rows in rows_of.items() if rows}

    def hop_counts(self, nodes: Iterable[Entity], steps: Sequence[Step], *, loops: bool = False) -> dict[Entity, int]:
        """Count the entities and literals to which a hop leads from each node; see `hop`."""
        counted = _counted((NODE, ANSWER), self._hop_text(steps, loops), NODE)
        rows_of = self._at_nodes(nodes, (COUNT,), counted, None)
        return {node: count_value(rows[0][0]) if rows else 0 for node, rows in rows_of.items()}

    def _hop_text(self, steps: Sequence[Step], loops: bool) -> str:
        walk = self.pattern(Candidate(RelationPath(cast(Entity, NODE), tuple(steps))))
        walk = replace(walk, different=()) if loops and len(steps) == 1 else walk
        return f"  {NO_NODES}\n{pattern_text(walk, nested=False)}"

    def _at_nodes(
        self, nodes: Iterable[Entity], variables: tuple[Variable, ...], pattern: str, limit: int | None
    ) -> dict[Entity, list[Row]]:
        """Return the rows of a pattern with `NO_NODES` at each of the nodes that a query can name."""
        wanted = _askable(nodes)
        lookups = [Lookup(variables, pattern, most=NODES, node=node) for node in wanted]
        return dict(zip(wanted, self.queries.look_up(lookups, limit=limit)))

    def edges(
        self, nodes: Iterable[Entity], direction: Direction = "out", *, limit: int = MAX_EDGES
    ) -> list[tuple[Entity, Step, Value]]:
        """Return the edges of nodes, at most `limit` of each, noise included."""
        rows_of = self._at_nodes(nodes, (RELATION, VALUE), f"  {NO_NODES}\n{_edge(NODE, direction)}", limit)
        return [(node, *edge) for node, rows in rows_of.items() for edge in _edges(rows, direction)]

    def neighbours(self, node: Entity, *, limit: int = 100) -> list[tuple[Step, Value]]:
        """Return up to `limit` edges of a node in each direction, without noise."""
        schema = self.tables.schema
        noise = [Literal(prefix) for prefix in (*schema.noise_prefixes, *schema.label, *schema.alias)]
        prefixed = " || ".join(f"STRSTARTS(STR(?relation), {render_term(prefix)})" for prefix in noise)
        others = "".join(f"?relation = {render_term(Entity(relation))} || " for relation in schema.noise_except)
        quiet = f"\n  FILTER({others}!({prefixed}))" if noise else ""
        lookups = [Lookup((RELATION, VALUE), f"{_edge(node, side)}{quiet}") for side in SIDES]
        # the graph may mark too many relations as noise to list them in a query: request more edges instead
        rows_of = self.queries.look_up(lookups, limit=limit + MAX_NOISE)
        edges = (
            [(step, value) for step, value in _edges(rows, side) if not self.tables.is_noise(step.relation)]
            for side, rows in zip(SIDES, rows_of)
        )
        return [edge for kept in edges for edge in kept[:limit]]

    def degrees(self, nodes: Iterable[Entity]) -> dict[Entity, int]:
        """Count the edges of each node in both directions, noise included."""
        total = dict.fromkeys(nodes, 0)
        for _, node, count in self._edge_counts(total, NODE):
            total[node] += count if node in total else 0
        return total

    def relations_at(self, nodes: Iterable[Entity]) -> Counter[Step]:
        """Count the edges of nodes together, by relation and direction, noise included."""
        total: Counter[Step] = Counter()
        for side, relation, count in self._edge_counts(nodes, RELATION):
            total[Step(relation.iri, side)] += count
        return total

    def _edge_counts(self, nodes: Iterable[Entity], group: Variable) -> Iterator[tuple[Direction, Entity, int]]:
        """Count the distinct edges of nodes by direction and by the values of ?node or ?relation."""
        parts = list(batches(_askable(nodes), NODES))
        asked = [(side, f"  {values_clause(NODE, part)}{_edge(NODE, side)}") for side in SIDES for part in parts]
        lookups = [Lookup((group, COUNT), _counted((NODE, RELATION, VALUE), text, group), most=1) for _, text in asked]
        for (side, _), rows in zip(asked, self.queries.look_up(lookups)):
            for value, count in rows:
                if isinstance(value, Entity):  # rdflib counts one group without a value where there are no edges
                    yield side, value, count_value(count)

    def present(self, nodes: Iterable[Entity]) -> set[Entity]:
        """Return those of the nodes that any triple has as its subject or object."""
        wanted = _askable(nodes)
        edges = [f"  {{ {_edge(node, 'out')} }} UNION {{ {_edge(node, 'in')} }}" for node in wanted]
        rows_of = self.queries.look_up([Lookup((RELATION,), text, most=NODES) for text in edges], limit=1)
        return {node for node, rows in zip(wanted, rows_of) if rows}

    # --- relations

    def pairs(self, relation: Entity, *, limit: int) -> list[tuple[Entity, Value]]:
        """Return some pairs of nodes that a relation connects."""
        lookup = Lookup((ANSWER, VALUE), f"  ?answer {render_term(relation)} ?value .")
        return list(self.queries.look_up([lookup], limit=limit)[0])

    @property
    def samples_kinds(self) -> bool:
        """Whether `kinds` looks at some nodes, because the graph declares types for less than half of its relations."""
        return 2 * max(map(len, self.tables.types.values())) <= len(self.tables.relations)

    def kinds(self, steps: Iterable[Step]) -> dict[Step, frozenset[str]]:
        """Return the types or datatypes of the nodes to which each step leads; none if they are unknown.

        They are those that most of some nodes at the end of the step have, or else the type that the graph declares.
        """
        tables, steps = self.tables, list(dict.fromkeys(steps))
        declared = {step: frozenset([type_] if (type_ := tables.target_type(step)) else []) for step in steps}
        if not self.samples_kinds:
            return declared
        predicates = "|".join(render_term(Entity(each)) for each in tables.schema.types)
        types = f"  OPTIONAL {{ ?answer {predicates} ?value . }}" if predicates else ""
        common = partial(_common_kinds, noise=tables.schema.noise_prefixes)
        known = self._sampled("kinds", steps, (ANSWER, VALUE), types, common)
        return {step: known[step] or declared[step] for step in steps}

    def _sampled(
        self,
        name: str,
        steps: Iterable[Step],
        variables: tuple[Variable, ...],
        pattern: str,
        read: Callable[[list[Row]], frozenset[str]],
    ) -> dict[Step, frozenset[str]]:
        """Return what `read` makes of the rows of a pattern at some ends (?answer) of each step.

        It is kept by name, and is only a hint: no rows are read if it takes too long.
        """
        known: dict[Step, frozenset[str]] = self.tables.values.get(name, dict)
        new = [step for step in steps if step not in known]
        lookups = [Lookup(variables, f"{_some_ends(step)}\n{pattern}") for step in new]
        for step, rows in zip(new, self.queries.look_up(lookups, tolerated=(StoreTimeout,))):
            known[step] = read([] if isinstance(rows, StoreTimeout) else rows)
        return known

    def describing_relations(self, steps: Iterable[Step]) -> dict[Step, tuple[str, ...]]:
        """Return relations that describe the nodes each step leads to, if the graph declares types for few relations.

        An outward step is described by its own relation (`has genre` leads to a genre), an inward step by the most
        frequent relations of some nodes it leads to. In a graph that declares types for a tenth of its relations, the
        result is empty.
        """
        tables, steps = self.tables, list(steps)
        if 10 * max(map(len, tables.types.values())) > len(tables.relations):
            return dict.fromkeys(steps, ())
        inward = sorted({step for step in steps if step.direction == "in"}, key=_place)
        known = self._sampled("subject-relations", inward, (RELATION,), "  ?answer ?relation ?value .", self._relations)
        frequent = {
            step: tuple(by_frequency({each: tables.relations[each] for each in known[step] & tables.relations.keys()}))
            for step in inward
        }
        return {step: (step.relation,) if step.direction == "out" else frequent[step][:MAX_DESCRIBING]
                for step in steps}  # fmt: skip

    def _relations(self, rows: Iterable[Row]) -> frozenset[str]:
        return frozenset(
            each.iri for (each,) in rows if isinstance(each, Entity) and not self.tables.is_noise(each.iri)
        )

    def ends_on_mediators(self, path: RelationPath) -> bool:
        """Return whether all ends of a path are mediators. Such a path must be extended to give answers."""
        return bool(path.steps) and self.tables.leads_to_mediator(path.steps[-1])


def _some_ends(step: Step) -> str:
    """Return a pattern for some of the nodes to which a step leads."""
    relation = render_term(Entity(step.relation))
    edge = f"?start {relation} ?answer" if step.direction == "out" else f"?answer {relation} ?next"
    return f"  {{ SELECT DISTINCT ?answer WHERE {{ {edge} }} LIMIT {SAMPLED_ENDS} }}"


def _common_kinds(rows: Iterable[Sequence[Value | None]], noise: tuple[str, ...]) -> frozenset[str]:
    """Return the types or datatypes that more than half of the nodes have, given rows of a node and a type of it."""
    kinds: dict[Value | None, set[str]] = defaultdict(set)
    for node, type_ in rows:
        kind = node.datatype if isinstance(node, Literal) else type_.iri if isinstance(type_, Entity) else ""
        kinds[node] |= {kind} if kind and not kind.startswith(noise) else set()
    counts = Counter(kind for found in kinds.values() for kind in found)
    return frozenset(kind for kind, count in counts.items() if 2 * count > len(kinds))


def _place(step: Step) -> tuple[bool, str]:
    return step.direction == "in", step.relation


def _askable(nodes: Iterable[Entity]) -> list[Entity]:
    """Return the distinct nodes that a query can name."""
    return [node for node in dict.fromkeys(nodes) if not is_blank_node(node)]


def _edge(node: Node, direction: Direction) -> str:
    name = render_term(node)
    return f"  {name} ?relation ?value ." if direction == "out" else f"  ?value ?relation {name} ."


def _counted(counted: Sequence[Variable], pattern: str, group: Variable) -> str:
    """Return the pattern of the number (?count) of distinct rows of a pattern, for each value of a variable."""
    column = f" {render_term(group)}"
    distinct = f"{{ SELECT DISTINCT{term_list(counted)} WHERE {{\n{pattern}\n  }} }}"
    return f"  {{ SELECT{column} (COUNT(*) AS ?count) WHERE {{\n  {distinct}\n  }} GROUP BY{column} }}"


def _edges(rows: Iterable[Row], direction: Direction) -> list[tuple[Step, Value]]:
    return [
        (Step(relation.iri, direction), value)
        for relation, value in rows
        if isinstance(relation, Entity) and value is not None
    ]


def _ends(rows: Sequence[Row], limit: int | None) -> Ends:
    values = tuple(value for (value,) in rows if value is not None)
    return Ends(values[:limit], approximate=limit is not None and len(values) > limit)
