"""Queries that look up several things at once: patterns side by side in a UNION, or nodes side by side in VALUES.

They are written in Python and not as templates, because exploration sends thousands of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kgqa.graph.query.patterns import Node, PathPattern, pattern_text, term_list, values_clause
from kgqa.graph.query.templates import Variable, render_term
from kgqa.graph.store import Row, Rows, count_value
from kgqa.model import Direction, Entity, Literal, Value

FIXED_ORDER = "# from the first line to the last\n"
"""The comment by which a store keeps the order of the joins; see `endpoint.profiles`."""
MOST_ROWS = 2000
"""Most rows of a query about several nodes, if none of them may have more."""
NODE = Variable("node")
OUT, IN, NEXT, RELATION, VALUE = map(Variable, ("out", "in", "next", "relation", "value"))


@dataclass(frozen=True, slots=True)
class Branch:
    """A pattern that is looked up alone, or with others as a branch of a UNION. Its rows hold the `variables`.

    `fixed_order`: the store joins the triple patterns in the order of the text, and its rows are distinct already.
    """

    size: ClassVar = 20  # Virtuoso accepts some 300 branches, and a branch may have three of its own

    variables: tuple[Node, ...]
    pattern: str
    fixed_order: bool = False

    @property
    def kind(self) -> Any:
        """What look-ups in one query have in common."""
        return self.fixed_order

    @staticmethod
    def query(branches: Sequence[Branch], view: Sequence[Entity], limit: int | None) -> str:
        """Return the query for some branches, each with at most `limit` rows."""
        first = branches[0]
        select = "SELECT" if first.fixed_order else "SELECT DISTINCT"
        most = "" if limit is None else f" LIMIT {limit}"
        start = FIXED_ORDER if first.fixed_order else ""
        if len(branches) == 1:
            columns = term_list(first.variables)
            return f"{start}{select}{columns}\n{from_clause(view)}WHERE {{\n{first.pattern}\n}}{most}"
        parts = "\n  UNION ".join(
            f"{{ {select} ({number} AS ?number){term_list(branch.variables)} WHERE {{\n{branch.pattern}\n  }}{most} }}"
            for number, branch in enumerate(branches)
        )
        return f"{start}SELECT ?number{term_list(_columns(branches))}\n{from_clause(view)}WHERE {{\n  {parts}\n}}"

    @staticmethod
    def rows(branches: Sequence[Branch], rows: Rows, limit: int | None) -> list[list[Row]]:
        """Return the rows of each branch."""
        if len(branches) == 1:
            return [rows.rows]
        places = {name: place for place, name in enumerate(_columns(branches), start=1)}
        chosen = [[places[name] for name in branch.variables] for branch in branches]
        found: list[list[Row]] = [[] for _ in branches]
        for row in rows:
            number = count_value(row[0])
            found[number].append(tuple([row[place] for place in chosen[number]]))
        return found


def _columns(branches: Iterable[Branch]) -> list[Node]:
    return list(dict.fromkeys(name for branch in branches for name in branch.variables))


@dataclass(frozen=True, slots=True)
class NodeLookup:
    """A pattern with the variable ?node that is looked up for one node, or for several in VALUES.

    `before` and `after`: the text of the query before and after the VALUES clause, from WHERE on. Its rows hold the
    `columns`, without ?node.
    """

    size: ClassVar = 50  # servers are slow with longer VALUES lists, or refuse them

    node: Entity
    columns: str
    before: str
    after: str

    @property
    def kind(self) -> Any:
        """What look-ups in one query have in common."""
        return self.columns, self.before, self.after

    @staticmethod
    def query(lookups: Sequence[NodeLookup], view: Sequence[Entity], limit: int | None) -> str:
        """Return the query for some nodes."""
        first, nodes = lookups[0], values_clause(NODE, [each.node for each in lookups])
        most = "" if limit is None else f"\nLIMIT {_most_rows(len(lookups), limit)}"
        return f"SELECT {first.columns}\n{from_clause(view)}WHERE {{\n{first.before}{nodes}{first.after}{most}"

    @staticmethod
    def rows(lookups: Sequence[NodeLookup], rows: Rows, limit: int | None) -> list[list[Row]] | None:
        """Return the rows of each node; None if it is not known which rows a node has.

        The rows of one node may have taken the place of those of another, or the server may write an IRI in another way
        than the query. The rows of a single node are all its own.
        """
        if len(lookups) == 1:
            return [[row[1:] for row in rows][:limit]]
        if limit is not None and len(rows) >= _most_rows(len(lookups), limit):
            return None
        found: dict[Value | None, list[Row]] = {each.node: [] for each in lookups}
        for row in rows:
            if row[0] not in found:
                return None
            found[row[0]].append(row[1:])
        return [found[each.node][:limit] for each in lookups]


def _most_rows(nodes: int, limit: int) -> int:
    return max(limit, min(nodes * limit, MOST_ROWS))


def from_clause(view: Iterable[Entity]) -> str:
    """Return one FROM line for each graph."""
    return "".join([f"FROM {render_term(graph)}\n" for graph in view])


# --- patterns


def ends_branch(walk: PathPattern) -> Branch:
    """Return the look-up of the ends of a path."""
    return Branch((walk.end,), pattern_text(walk))


def walks_branch(walk: PathPattern, ends: Sequence[Value] | None) -> Branch:
    """Return the look-up of complete walks along a path, without the topic; only to these ends if some are given."""
    if ends is None:
        return Branch(walk.nodes[1:], pattern_text(walk, nested=False))
    # Virtuoso replaces a single value by a constant, and then returns a boolean as the number 1
    alone = len(ends) == 1 and isinstance(ends[0], Literal)
    chosen = values_clause(walk.end, [*ends, Entity("urn:kgqa:nothing")] if alone else ends)
    return Branch(walk.nodes[1:], f"  {chosen}\n{pattern_text(walk, nested=False)}")


def relations_branch(
    walk: PathPattern, *, cap: int, not_node: Entity | None, returning: Mapping[Direction, Sequence[Entity]]
) -> Branch:
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
        returning: for each direction, relations that must not lead back to the node before the end.
    """
    end = render_term(walk.end)
    previous = walk.nodes[-2] if walk.edges else None
    kept = [previous, walk.end] if any(returning.values()) and isinstance(previous, Variable) else [walk.end]
    ends = (
        f"    {{ SELECT DISTINCT{term_list(kept)} WHERE {{\n{pattern_text(walk)}\n    }} LIMIT " if walk.edges else ""
    )
    parts = []
    for side, edge, test in (
        ("out", f"{end} ?out ?next .", []),
        ("in", f"?next ?in {end} .", [f"    FILTER(!isLiteral({end}))"]),
    ):
        lines = [f"  {{ SELECT DISTINCT ?{side} WHERE {{"]
        if walk.edges:
            lines += [f"{ends}{cap} }}", *test]
        lines.append(f"    {edge}")
        if walk.edges and not_node:
            lines.append(f"    FILTER(?next != {render_term(not_node)})")
        for relation in returning["out" if side == "out" else "in"]:
            lines.append(f"    FILTER(?{side} != {render_term(relation)} || ?next != {render_term(previous)})")
        parts.append("\n".join([*lines, "  } }"]))
    variables: tuple[Node, ...] = (OUT, IN)
    if walk.edges:
        variables = (*variables, Variable("frontier"))
        parts.append(f"  {{ SELECT (COUNT(*) AS ?frontier) WHERE {{\n{ends}{cap + 1} }}\n  }} }}")
    elif not_node:
        variables = (*variables, Variable("loop"))
        parts.append(f"  {{ SELECT DISTINCT ?loop WHERE {{ {end} ?loop {end} . }} }}")
    return Branch(variables, "\n  UNION\n".join(parts), fixed_order=True)


def onward_branch(node: Entity, relations: Sequence[Value]) -> Branch:
    """Return the look-up of those of the relations that lead from a node (?out), or to it (?in), to another node."""
    name = render_term(node)
    parts = [
        f"  {{ SELECT DISTINCT ?{side} WHERE {{\n    {values_clause(Variable(side), relations)}\n    {edge}\n"
        f"    FILTER(?next != {name})\n  }} }}"
        for side, edge in (("out", f"{name} ?out ?next ."), ("in", f"?next ?in {name} ."))
    ]
    return Branch((OUT, IN), "\n  UNION\n".join(parts))


def unclaimed_branch(
    walk: PathPattern, exit_: Entity, claim: Entity, *, out: bool, cap: int, untrue: Sequence[tuple[Entity, Entity]]
) -> Branch:
    """Return the look-up of statement nodes at the end of a path that have no claim with the same subject and value.

    Args:
        exit_: the relation out of the statement, outwards or not; its other node is the value or the subject.
        claim: the relation from the subject to the value.
        untrue: pairs of a predicate and a type; statements with such a type do not count.
    """
    entered_from, end = walk.nodes[-2], render_term(walk.end)
    kept = [entered_from, walk.end] if isinstance(entered_from, Variable) else [walk.end]
    owner, value = (entered_from, Variable("other")) if out else (Variable("other"), entered_from)
    edge = term_list([walk.end, exit_, value] if out else [owner, exit_, walk.end])
    lines = [
        f"  {{ SELECT DISTINCT{term_list(kept)} WHERE {{\n{pattern_text(walk)}\n  }} LIMIT {cap} }}",
        f" {edge} .",
        f"  FILTER NOT EXISTS {{{term_list([owner, claim, value])} . }}",
        *(f"  FILTER NOT EXISTS {{ {end}{term_list(pair)} . }}" for pair in untrue),
    ]
    return Branch((walk.end,), "\n".join(lines), fixed_order=True)


def present_branch(node: Entity) -> Branch:
    """Return the look-up of whether any triple has this node as its subject or object."""
    name = render_term(node)
    return Branch((OUT, IN), f"  {{ {name} ?out ?next . }} UNION {{ ?next ?in {name} . }}")


def pairs_branch(relation: Entity) -> Branch:
    """Return the look-up of pairs of nodes that a relation connects."""
    return Branch((NODE, VALUE), f"  ?node {render_term(relation)} ?value .")


def subject_relations_branch(relation: Entity, *, sample: int) -> Branch:
    """Return the look-up of the relations of some subjects of a relation."""
    subjects = f"{{ SELECT DISTINCT ?node WHERE {{ ?node {render_term(relation)} ?next }} LIMIT {sample} }}"
    return Branch((RELATION,), f"  {subjects}\n  ?node ?relation ?value .")


def quiet_edges_branch(
    node: Entity, direction: Direction, *, noise: Sequence[Literal], kept: Sequence[Entity]
) -> Branch:
    """Return the look-up of the edges of a node in one direction, without relations that begin with a noise prefix.

    Args:
        kept: relations that are no noise although they begin with such a prefix.
    """
    pattern = f"  {_edge(render_term(node), direction)}"
    if noise:
        prefixed = " || ".join(f"STRSTARTS(STR(?relation), {render_term(prefix)})" for prefix in noise)
        others = "".join(f"?relation = {render_term(relation)} || " for relation in kept)
        pattern += f"\n  FILTER({others}!({prefixed}))"
    return Branch((RELATION, VALUE), pattern)


# --- nodes


def hop_lookups(nodes: Iterable[Entity], walk: PathPattern) -> list[NodeLookup]:
    """Return the look-ups of the nodes and literals to which a hop from ?node leads."""
    end, after = render_term(walk.end), f"\n{pattern_text(walk, nested=False)}\n}}"
    return [NodeLookup(node, f"DISTINCT ?node {end}", "  ", after) for node in nodes]


def hop_count_lookups(nodes: Iterable[Entity], walk: PathPattern) -> list[NodeLookup]:
    """Return the look-ups of the number of nodes and literals to which a hop from ?node leads; no row for none."""
    before = f"  {{ SELECT DISTINCT ?node {render_term(walk.end)} WHERE {{\n  "
    after = f"\n{pattern_text(walk, nested=False)}\n  }} }}\n}}\nGROUP BY ?node"
    return [NodeLookup(node, "?node (COUNT(*) AS ?count)", before, after) for node in nodes]


def edge_lookups(nodes: Iterable[Entity], direction: Direction) -> list[NodeLookup]:
    """Return the look-ups of the edges of nodes in one direction."""
    after = f"\n  {_edge('?node', direction)}\n}}"
    return [NodeLookup(node, "DISTINCT ?node ?relation ?value", "  ", after) for node in nodes]


def edge_count_lookups(nodes: Iterable[Entity], direction: Direction, *, by_relation: bool) -> list[NodeLookup]:
    """Return the look-ups of the number of edges of nodes. A triple in two graphs of the view counts once."""
    group = "?node ?relation" if by_relation else "?node"
    after = f"\n    {_edge('?node', direction)}\n  }} }}\n}}\nGROUP BY {group}"
    before = "  { SELECT DISTINCT ?node ?relation ?value WHERE {\n    "
    return [NodeLookup(node, f"{group} (COUNT(*) AS ?edges)", before, after) for node in nodes]


def _edge(node: str, direction: Direction) -> str:
    return f"{node} ?relation ?value ." if direction == "out" else f"?value ?relation {node} ."
