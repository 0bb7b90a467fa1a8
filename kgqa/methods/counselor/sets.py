"""Sets of nodes and literals that calls find, with the paths that lead to them; and how a hop extends the paths.

A set has all nodes to which a hop leads, the topic of the path included: the paths are those of a graph with the walk
rule `free`, in which only hops through mediators do not lead back. Values keep the order of the list from which they
were converted, if the schema names relations to lists (`relations.order`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Join, Literal, RelationPath, Step, Value
from kgqa.model.conditions import Condition, Operation
from kgqa.schema import Schema
from kgqa.storage.loading import parse_json
from kgqa.text.words import arrow_words

Pairs = Mapping[Entity, Sequence[Value]]
"""The values of each node."""
MAX_PICKED = 50
"""Most nodes to which a place of a path is restricted; a larger part of a set has no exact path."""
MAX_NEGATED = 5
"""Most nodes that are left out by a negated condition each."""


@dataclass(frozen=True, slots=True)
class SetPath:
    """A path and the values of a set to which it leads.

    Attributes:
        candidate: the path; without steps if the only value is its topic.
        values: those of its ends that are in the set, sorted.
        every: all its ends that were found.
        exact: whether the path's query returns exactly these, and those that were too many to be read.
    """

    candidate: Candidate
    values: tuple[Value, ...]
    every: frozenset[Value]
    exact: bool = True

    @property
    def whole(self) -> bool:
        """Whether the values are all that were found along the path, and its query returns no others."""
        return self.exact and len(self.values) == len(self.every)

    def among(self, wanted: Collection[Value]) -> SetPath | None:
        """Return the source with only those values that are wanted; None if none is."""
        kept = tuple(value for value in self.values if value in wanted)
        return replace(self, values=kept) if kept else None


@dataclass(frozen=True, slots=True)
class NodeSet:
    """The values that a call found. `approximate`: whether more belong to them, which were too many to be read."""

    sources: tuple[SetPath, ...]
    approximate: bool = False

    @property
    def values(self) -> tuple[Value, ...]:
        """The distinct values, sorted."""
        if len(self.sources) == 1:
            return self.sources[0].values
        return ordered(value for source in self.sources for value in source.values)

    @property
    def nodes(self) -> tuple[Entity, ...]:
        """The entities among the values."""
        return tuple(value for value in self.values if isinstance(value, Entity))

    @property
    def path(self) -> SetPath | None:
        """The path without an operation whose query returns exactly the set, with all that was not read."""
        if len(self.sources) != 1 or not self.sources[0].whole:
            return None
        candidate = self.sources[0].candidate
        return self.sources[0] if candidate.path.steps and candidate.operation is None else None

    def among(self, wanted: Collection[Value]) -> NodeSet:
        """Return the set with only those values that are wanted."""
        kept = (source.among(wanted) for source in self.sources)
        return NodeSet(tuple(source for source in kept if source), self.approximate)


NO_NODES = NodeSet(())


def ordered(values: Iterable[Value]) -> tuple[Value, ...]:
    """Return the distinct values in an order that does not depend on the store."""

    def place(value: Value) -> tuple[str, ...]:
        if isinstance(value, Entity):
            return "", value.iri
        return "literal", value.value, value.datatype, value.language

    return tuple(sorted(set(values), key=place))


def plain_text(value: Value) -> str:
    """Return the IRI of an entity, or the text of a literal."""
    return value.iri if isinstance(value, Entity) else value.value


def topic_set(entity: Entity, name: str) -> NodeSet:
    """Return a set of one node from which paths start."""
    return NodeSet((SetPath(Candidate(RelationPath(entity), name), (entity,), frozenset([entity])),))


def union(sets: Sequence[NodeSet]) -> NodeSet:
    """Return the union of sets; sources of the same path become one."""
    found: dict[object, SetPath] = {}
    for source in (source for each in sets for source in each.sources):
        known = found.get(source.candidate.identity)
        values = source.values if known is None else ordered((*known.values, *source.values))
        found[source.candidate.identity] = replace(source, values=values)
    return NodeSet(tuple(found.values()), any(each.approximate for each in sets))


def extended(
    graph: KnowledgeGraph, source: SetPath, hop: Sequence[Step], pairs: Pairs, *, cut: bool = False, exact: bool = True
) -> SetPath:
    """Return the source of what a hop leads to from the values of a source.

    Args:
        graph: The graph, whose words the new path has.
        source: The source.
        hop: The hop.
        pairs: What the hop leads to from each node; the values of a single node keep their order.
        cut: Whether some values are missing in `pairs`.
        exact: Whether `pairs` has all other values.
    """
    starts = [node for node in source.values if isinstance(node, Entity)]
    reached = [value for node in starts for value in pairs.get(node, ())]
    base, starts_exactly = start_of(source)
    labels, is_mediator = graph.tables.relation_labels, graph.tables.leads_to_mediator
    arrows = arrow_words("", RelationPath(base.path.topic, tuple(hop)), graph.schema, labels, is_mediator=is_mediator)
    path, approximate = base.path.then(*hop), base.approximate or cut
    candidate = replace(base, path=path, words=f"{base.words}{arrows}", hops=(), leads_to="", approximate=approximate)
    values = tuple(dict.fromkeys(reached)) if len(starts) == 1 else ordered(reached)
    return SetPath(candidate, values, frozenset(reached), exact and starts_exactly)


def start_of(source: SetPath) -> tuple[Candidate, bool]:
    """Return the candidate that a hop from the values extends: its last nodes are these values and no others.

    Returns:
        The candidate, and whether its path leads to exactly the values.
    """
    old, place = source.candidate, len(source.candidate.path)
    if not place or (source.whole and old.operation is None):
        return old, source.exact
    picked = tuple(value for value in source.values if isinstance(value, Entity))
    if len(picked) > MAX_PICKED:
        return replace(old, operation=None), False
    return replace(old, operation=None, restricted=(*old.restricted, (place, picked))), True


def returned(graph: KnowledgeGraph, candidate: Candidate) -> Sequence[Value]:
    """Return what the query of a candidate returns."""
    options = {**candidate.limits, "restricted": dict(candidate.restricted), "operation": candidate.operation}
    return graph.run_exported(graph.answer_query(candidate.path, **options))


def intersection(graph: KnowledgeGraph, first: NodeSet, second: NodeSet) -> NodeSet:
    """Return the values of both sets. Two paths that meet become one path with a join."""
    common = set(first.values) & set(second.values)
    approximate = first.approximate or second.approximate
    for one, other in ((first, second), (second, first)) if not approximate else ():
        main, joined = one.path, other.path
        if main and joined and _is_path(graph, joined.candidate, main.values):
            join = Join(len(main.candidate.path), joined.candidate.path)
            candidate = replace(main.candidate, joins=(*main.candidate.joins, join))
            return NodeSet((SetPath(candidate, ordered(common), frozenset(common)),))
    # a node that was only retrieved has no path of its own
    kept = first if any(source.candidate.path.steps for source in first.sources) else second
    return _part(kept, common, approximate)


def difference(graph: KnowledgeGraph, first: NodeSet, second: NodeSet) -> NodeSet:
    """Return the values of the first set that are not in the second, as a negated condition if it can be one."""
    approximate = first.approximate or second.approximate
    rest = _part(first, set(first.values) - set(second.values), approximate)
    one, other = first.path, second.path
    if one is None or approximate:
        return rest
    place, gone = len(one.candidate.path), set(one.values) & set(second.values)
    if other and _is_path(graph, other.candidate, one.values):
        back = tuple(step.reversed() for step in reversed(other.candidate.path.steps))
        negated = [Condition(place, back, other.candidate.path.topic, negated=True)]
    else:
        negated = [Condition(place, (), each, negated=True) for each in ordered(gone) if isinstance(each, Entity)]
        if len(negated) < len(gone) or len(gone) > MAX_NEGATED:
            return rest
    candidate = replace(one.candidate, conditions=(*one.candidate.conditions, *negated))
    return NodeSet((SetPath(candidate, rest.values, frozenset(rest.values)),))


def most_shared(
    graph: KnowledgeGraph, start: NodeSet, hop: Sequence[Step], pairs: Pairs, *, cut: bool
) -> tuple[NodeSet, int]:
    """Return what a hop leads to from the most nodes of a set, with all ties, and from how many nodes it does.

    The topics of the set's paths, to which all of its nodes lead back, are left out.

    Args:
        graph: The graph.
        start: The set.
        hop: The hop.
        pairs: What it leads to from each node.
        cut: Whether some nodes or values are missing.
    """
    topics: set[Entity] = {source.candidate.path.topic for source in start.sources if source.candidate.path.steps}
    shared = Counter(value for node in start.nodes for value in set(pairs.get(node, ())) - topics)
    best = max(shared.values(), default=0)
    chosen = {value for value, number in shared.items() if number == best}
    sources = [extended(graph, source, hop, pairs, cut=cut) for source in start.sources]
    if not chosen or len(sources) > 1 or not topics or not sources[0].exact:
        return NodeSet(tuple(kept for each in sources if (kept := each.among(chosen))), cut), best
    candidate, place = sources[0].candidate, len(start.sources[0].candidate.path)
    left_out = (Condition(len(candidate.path), (), each, negated=True) for each in topics & sources[0].every)
    operation = Operation("most", counted=True, at=place)
    candidate = replace(candidate, operation=operation, conditions=(*candidate.conditions, *left_out))
    return NodeSet((SetPath(candidate, ordered(chosen), frozenset(chosen)),), cut), best


def _part(nodes: NodeSet, wanted: Collection[Value], approximate: bool) -> NodeSet:
    """Return the wanted part of a set; its paths do not stand for what was not read."""
    kept = nodes.among(wanted).sources
    return NodeSet(tuple(replace(each, exact=each.exact and not approximate) for each in kept), approximate)


def _is_path(graph: KnowledgeGraph, candidate: Candidate, others: Collection[Value]) -> bool:
    """Return whether a candidate is a path and no more, so that it can be a join or a condition on the ends of another.

    In a join or condition, nothing keeps a walk from going back through a mediator. This makes no difference for a path
    of one hop if its topic is none of the ends of the other path.
    """
    path, is_more = candidate.path, candidate.joins or candidate.restricted or candidate.conditions
    through = any(graph.tables.mediators.extent(step) != "none" for step in path.steps[:-1])
    return not is_more and (not through or (len(path) == 2 and path.topic not in others))


def in_list_order(graph: KnowledgeGraph, pairs: Pairs, hop: Sequence[Step]) -> Pairs:
    """Return the values to which a hop leads in the order of their list, and others behind them, in their own order."""
    relation = relation_beside(graph, hop, graph.schema.order)
    several = [node for node, values in pairs.items() if len(values) > 1] if relation else []
    lists = graph.paths.hop(several, (Step(relation),)) if several else {}
    found: dict[Entity, Sequence[Value]] = {}
    for node, values in pairs.items():
        try:
            listed = parse_json(plain_text(lists[node][0]), list[str]) if node in lists else []
        except ValueError:
            listed = []
        place = {text: number for number, text in reversed(list(enumerate(listed)))}
        places = {value: place.get(plain_text(value), len(place)) for value in ordered(values)}
        found[node] = tuple(sorted(places, key=places.__getitem__))
    return found


def relation_beside(graph: KnowledgeGraph, hop: Sequence[Step], table: Sequence[tuple[str, str]]) -> str:
    """Return the relation that stands beside that of a hop: its prefix is another one; empty if the graph has none.

    Args:
        graph: The graph.
        hop: The hop.
        table: Pairs of prefixes, such as `schema.order` or `schema.degree`.
    """
    (step,) = hop if len(hop) == 1 else (Step(""),)
    iri = step.relation if step.direction == "out" else graph.tables.inverses.get(step.relation) or ""
    beside = (target + iri.removeprefix(prefix) for prefix, target in table if iri.startswith(prefix))
    return next((each for each in beside if each in graph.tables.relations), "")


def in_languages(schema: Schema, pairs: Pairs, hop: Sequence[Step]) -> tuple[Pairs, bool]:
    """Return names in the schema's languages, if a node has any, and whether these are all its names.

    Values of other hops than to names are returned as they are.
    """
    if len(hop) > 1 or hop[0].relation not in (*schema.label, *schema.alias):
        return pairs, True
    kept = {
        node: [each for each in values if isinstance(each, Literal) and each.language in schema.languages] or values
        for node, values in pairs.items()
    }
    return kept, all(len(kept[node]) == len(values) for node, values in pairs.items())
