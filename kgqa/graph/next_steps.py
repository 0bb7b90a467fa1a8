"""The next steps of a path: the patterns that look them up, and which of several steps with the same meaning is kept.

A relation means the same as its reverse property walked backwards. In Wikidata, a fact may be stored twice: as a direct
edge (a claim), and as a node with details (a statement). The two steps through the statement mean the same as the one
step along the claim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kgqa.graph.queries import Lookup
from kgqa.graph.query.patterns import Node, PathPattern, pattern_text, term_list, values_clause
from kgqa.graph.query.templates import Variable, render_term
from kgqa.graph.tables.declarations import SIDES
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Direction, Entity, Step, Value
from kgqa.schema import Schema

OUT, IN, LOOP, FRONTIER = map(Variable, ("out", "in", "loop", "frontier"))


def relations_lookup(walk: PathPattern, *, cap: int, not_node: Entity | None, returning: Collection[Step]) -> Lookup:
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


def onward_lookup(node: Entity, relations: Sequence[Value]) -> Lookup:
    """Return the look-up of those of the relations that lead from a node (?out), or to it (?in), to another node."""
    parts = [
        f"  {{ SELECT DISTINCT ?{side} WHERE {{\n    {values_clause(Variable(side), relations)}\n    {edge}\n"
        f"    FILTER(?next != {render_term(node)})\n  }} }}"
        for side, edge in _edges_at(render_term(node))
    ]
    return Lookup((OUT, IN), "\n  UNION\n".join(parts))


def unclaimed_lookup(walk: PathPattern, step: Step, claim: str, *, cap: int, schema: Schema) -> Lookup:
    """Return the look-up of statements at the end of a path that have no claim with the same subject and value.

    Args:
        step: the step out of the statements, and `claim` the relation of their claims; see `statement_exits`.
    """
    entered_from, other = walk.nodes[-2], Variable("other")
    owner, value = (entered_from, other) if step.direction == "out" else (other, entered_from)
    exit_ = Entity(step.relation)
    edge = [walk.end, exit_, value] if step.direction == "out" else [owner, exit_, walk.end]
    kinds = [[walk.end, Entity(schema.mediator_untrue[0]), Entity(kind)] for kind in schema.mediator_untrue[1:]]
    absent = [[owner, Entity(claim), value], *kinds]
    lines = [
        f"  {{ SELECT DISTINCT{term_list(_end_nodes(walk))} WHERE {{\n{pattern_text(walk)}\n  }} LIMIT {cap} }}",
        f" {term_list(edge)} .",
        *(f"  FILTER NOT EXISTS {{{term_list(triple)} . }}" for triple in absent),
    ]
    return Lookup((walk.end,), "\n".join(lines), fixed_order=True)


def statement_exits(schema: Schema, last: Step) -> list[tuple[Step, str]]:
    """Return the steps out of the statements to which a step leads, and the claims that mean the same as both steps.

    In Wikidata, p:P36 followed by ps:P36 means the same as the claim wdt:P36. Empty if the step leads to no statements.
    """
    exits = []
    for enter, exit_, direct in schema.mediator_pairs:
        first, second = (enter, exit_) if last.direction == "out" else (exit_, enter)
        local = last.relation.removeprefix(first)
        if last.relation.startswith(first) and "/" not in local:
            exits.append((Step(second + local, last.direction), direct + local))
    return exits


def fold_steps(relations: Mapping[str, Iterable[Value]], tables: GraphTables) -> set[Step]:
    """Return the steps without noise, and without those that walk a reverse property of another step backwards.

    Args:
        relations: the relations that lead on, by direction.
    """
    steps = (Step(node.iri, side) for side in SIDES for node in relations[side] if isinstance(node, Entity))
    kept = {step for step in steps if not tables.is_noise(step.relation)}
    for step in [step for step in kept if step.direction == "out"]:
        twins = {*tables.declarations.inverse_of.get(step.relation, ()), tables.inverses.get(step.relation)}
        kept -= {Step(twin, "in") for twin in twins if twin}
    return kept
