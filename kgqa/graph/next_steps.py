"""The next steps of a path: the queries that look them up, and which of several steps with the same meaning is kept.

A relation means the same as its reverse property walked backwards. In Wikidata, a fact may be stored twice: as a direct
edge (a claim), and as a node with details (a statement). The two steps through the statement mean the same as the one
step along the claim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgqa.errors import StoreTimeout
from kgqa.graph.queries import Errors, Lookup, Queries
from kgqa.graph.query.text import (
    Node,
    PathPattern,
    Variable,
    pattern_text,
    render_term,
    returns,
    term_list,
    values_clause,
)
from kgqa.graph.store import count_value
from kgqa.graph.tables.declarations import SIDES
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Direction, Entity, RelationPath, Step, Value
from kgqa.settings.table import WalkRule

OUT, IN, LOOP, FRONTIER = map(Variable, ("out", "in", "loop", "frontier"))


@dataclass(slots=True, eq=False)
class OpenPath:
    """A path whose next steps are looked up: the values of each variable, the steps, or the error of a query."""

    path: RelationPath
    walk: PathPattern
    columns: dict[str, set[Value]] = field(default_factory=dict)
    steps: set[Step] = field(default_factory=set)
    error: Exception | None = None

    @property
    def frontier(self) -> int:
        """The number of the ends, up to one more than the cap; 0 for a topic."""
        return max(map(count_value, self.columns.get("frontier", ())), default=0)


def find_steps(
    paths: Sequence[OpenPath],
    queries: Queries,
    tables: GraphTables,
    *,
    rule: WalkRule,
    cap: int,
    noise: bool = False,
    tolerated: Errors = (),
) -> None:
    """Find the next steps of paths, without noise, and of the steps with the same meaning only one.

    Args:
        cap: maximum number of ends of a path that are explored.
        noise: whether noise is found, too.
        tolerated: the errors that a path may have.
    """
    not_topic = rule in ("topic-not-end", "topic-never")
    lookups = [
        _relations_lookup(
            each.walk,
            cap=cap,
            not_node=each.path.topic if not_topic else None,
            returning=_returning(each, tables, rule),
        )
        for each in paths
    ]
    _ask(paths, lookups, queries, tolerated)
    # the relations that lead from a topic only to itself are left out
    topics = [(each, each.columns) for each in paths if each.columns.get("loop")]
    onward = [_onward_lookup(each.path.topic, sorted(first["loop"], key=str)) for each, first in topics]
    _ask([each for each, _ in topics], onward, queries, tolerated)
    for each, first in topics:
        each.columns = {side: first[side] - first["loop"] | each.columns[side] for side in SIDES}
    found = [each for each in paths if not each.error]
    for each in found:
        each.steps = _without_twins(each.columns, tables, noise)
    _fold_statements([each for each in found if each.path.steps], queries, tables, rule, cap, tolerated)


def _ask(paths: Sequence[OpenPath], lookups: Sequence[Lookup], queries: Queries, tolerated: Errors) -> None:
    """Look up the values of the variables for each path, or set its error."""
    for each, lookup, rows in zip(paths, lookups, queries.look_up(lookups, tolerated=tolerated)):
        if isinstance(rows, Exception):
            each.error = rows
        else:
            each.columns = {
                name.name: {value for row in rows if (value := row[place]) is not None}
                for place, name in enumerate(lookup.variables)
                if isinstance(name, Variable)
            }


def _returning(each: OpenPath, tables: GraphTables, rule: WalkRule) -> list[Step]:
    """Return the steps that must not lead back to the node before the end of a path."""
    if rule != "no-return" or not each.path.steps:
        return []
    inverse, last = tables.inverses.get, each.path.steps[-1]
    twins = {last.relation, inverse(last.relation), *tables.declarations.inverse_of.get(last.relation, ())}
    possible = [Step(name, side) for name in sorted(filter(None, twins)) for side in SIDES]
    return [step for step in possible if returns(step, last, inverse)]


def _relations_lookup(walk: PathPattern, *, cap: int, not_node: Entity | None, returning: Collection[Step]) -> Lookup:
    """Return the look-up of the relations that leave (?out) and enter (?in) the ends of a path.

    The distinct ends are found first, which at hubs takes milliseconds instead of seconds. Literal ends are filtered
    out where the edges are joined, because Virtuoso would scan the whole graph for such a filter in the subquery of the
    ends. Virtuoso may also scan the graph for the edges, because it estimates the number of ends by the LIMIT. The join
    order is therefore fixed; Virtuoso keeps this order only if the edges are in a subquery of their own.

    At the topic, edges are not tested, because testing each edge of a hub takes most of the time. Instead, the
    relations that lead from the topic to itself are returned (?loop).

    Args:
        cap: maximum number of ends that are explored; ?frontier is the number of ends up to one more.
        not_node: edges to this node do not count.
        returning: steps that must not lead back to the node before the end.
    """
    end = render_term(walk.end)
    kept = _end_nodes(walk) if returning else [walk.end]
    ends = (
        f"    {{ SELECT DISTINCT{term_list(kept)} WHERE {{\n{pattern_text(walk)}\n    }} LIMIT " if walk.edges else ""
    )
    parts = []
    for side, edge in _edges_at(end):
        lines = [f"{ends}{cap} }}"] if walk.edges else []
        lines += [f"    FILTER(!isLiteral({end}))"] if walk.edges and side == "in" else []
        lines.append(f"    {edge}")
        if walk.edges and not_node:
            lines.append(f"    FILTER(?next != {render_term(not_node)})")
        for step in returning:
            if step.direction == side:
                relation, previous = render_term(Entity(step.relation)), render_term(walk.nodes[-2])
                lines.append(f"    FILTER(?{side} != {relation} || ?next != {previous})")
        parts.append("\n".join([f"  {{ SELECT DISTINCT ?{side} WHERE {{", *lines, "  } }"]))
    if walk.edges:
        parts.append(f"  {{ SELECT (COUNT(*) AS ?frontier) WHERE {{\n{ends}{cap + 1} }}\n  }} }}")
    elif not_node:
        parts.append(f"  {{ SELECT DISTINCT ?loop WHERE {{ {end} ?loop {end} . }} }}")
    more = (FRONTIER,) if walk.edges else (LOOP,) if not_node else ()
    return Lookup((OUT, IN, *more), "\n  UNION\n".join(parts), fixed_order=True)


def _edges_at(node: str) -> Iterable[tuple[Direction, str]]:
    return ("out", f"{node} ?out ?next ."), ("in", f"?next ?in {node} .")


def _end_nodes(walk: PathPattern) -> list[Node]:
    """Return the last node of a path, and the node before it unless that is the topic."""
    return [node for node in walk.nodes[-2:] if node == walk.end or isinstance(node, Variable)]


def _onward_lookup(node: Entity, relations: Sequence[Value]) -> Lookup:
    """Return the look-up of those of the relations that lead from a node (?out), or to it (?in), to another node."""
    parts = [
        f"  {{ SELECT DISTINCT ?{side} WHERE {{\n    {values_clause(Variable(side), relations)}\n    {edge}\n"
        f"    FILTER(?next != {render_term(node)})\n  }} }}"
        for side, edge in _edges_at(render_term(node))
    ]
    return Lookup((OUT, IN), "\n  UNION\n".join(parts))


def _unclaimed_lookup(walk: PathPattern, step: Step, claim: str, *, cap: int, untrue: Sequence[str]) -> Lookup:
    """Return the look-up of statements at the end of a path that have no claim with the same subject and value.

    Args:
        step: the step out of the statements, and `claim` the relation of their claims.
        untrue: the predicate and values that mark a statement as untrue; see `Schema.mediator_untrue`.
    """
    entered_from, other = walk.nodes[-2], Variable("other")
    owner, value = (entered_from, other) if step.direction == "out" else (other, entered_from)
    exit_ = Entity(step.relation)
    edge = [walk.end, exit_, value] if step.direction == "out" else [owner, exit_, walk.end]
    kinds = [[walk.end, Entity(untrue[0]), Entity(kind)] for kind in untrue[1:]]
    absent = [[owner, Entity(claim), value], *kinds]
    lines = [
        f"  {{ SELECT DISTINCT{term_list(_end_nodes(walk))} WHERE {{\n{pattern_text(walk)}\n  }} LIMIT {cap} }}",
        f" {term_list(edge)} .",
        *(f"  FILTER NOT EXISTS {{{term_list(triple)} . }}" for triple in absent),
    ]
    return Lookup((walk.end,), "\n".join(lines), fixed_order=True)


def _fold_statements(
    paths: Sequence[OpenPath], queries: Queries, tables: GraphTables, rule: WalkRule, cap: int, tolerated: Errors
) -> None:
    """Leave out the steps through a statement that mean the same as the step along its claim.

    In Wikidata, p:P36 followed by ps:P36 means the same as the claim wdt:P36.
    """
    asked = []
    for each in paths:
        last = each.path.steps[-1]
        for enter, exit_, direct in tables.schema.mediator_pairs:
            first, second = (enter, exit_) if last.direction == "out" else (exit_, enter)
            local = last.relation.removeprefix(first)
            if last.relation.startswith(first) and "/" not in local:
                if rule != "free":
                    each.steps.discard(last.reversed())  # a statement has one subject and one value
                step = Step(second + local, last.direction)
                asked += [(each, step, direct + local)] if step in each.steps else []
    lookups = [
        _unclaimed_lookup(each.walk, step, claim, cap=cap, untrue=tables.schema.mediator_untrue)
        for each, step, claim in asked
    ]
    rows_of = queries.look_up(lookups, limit=1, tolerated=(StoreTimeout, *tolerated))
    for (each, step, _), rows in zip(asked, rows_of):
        if isinstance(rows, StoreTimeout) or not rows:  # the step along the claim is a candidate anyway
            each.steps.discard(step)
        elif isinstance(rows, Exception):
            each.error = rows


def _without_twins(columns: Mapping[str, Iterable[Value]], tables: GraphTables, noise: bool) -> set[Step]:
    """Return the steps, without noise unless it is wanted, and without those that walk a reverse property backwards."""
    steps = {Step(node.iri, side) for side in SIDES for node in columns[side] if isinstance(node, Entity)}
    kept = {step for step in steps if noise or not tables.is_noise(step.relation)}
    for step in [step for step in kept if step.direction == "out"]:
        twins = {*tables.declarations.inverse_of.get(step.relation, ()), tables.inverses.get(step.relation)}
        kept -= {Step(twin, "in") for twin in twins if twin}
    return kept
