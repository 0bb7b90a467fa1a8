"""Finds the solutions of a question: the paths, alone or joined, that end in exactly the gold answers.

The search follows all paths up to a depth, without a beam. Joined paths start from two topics, or from three if two do
not suffice. There are two kinds of joins: the ends of the paths are intersected, or the second path ends on mediators
of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice, product
from typing import TypeVar

from kgqa.errors import PartialResult, ResultCapped, StoreTimeout
from kgqa.evaluation.metrics.keys import Key, answer_keys, needs_names
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Join, Literal, Named, RelationPath, Step, Value
from kgqa.search.beam import BeamSettings, path_cost

MOST_HOPS = 4
"""Most hops of a solution; a search that goes on until it has an answer has no limit."""
EXPANSIONS = 1500
END_SETS = 600
NEIGHBOURS = 5000
PAIRS = 20_000

Solution = tuple[RelationPath, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reach:
    """The solutions found: single paths first, then joins, each with the main path first.

    `capped`: True if a limit ended the search, and there may be more solutions.
    """

    solutions: tuple[Solution, ...] = ()
    capped: bool = False


@dataclass
class _Search:
    """The search for the solutions of one question.

    `expansions`, `end_sets`: how many more paths may be extended, or have their ends read; `ends`: the ends read so
    far, by path.
    """

    graph: KnowledgeGraph
    gold: frozenset[Key]
    settings: BeamSettings
    expansions: int
    end_sets: int
    capped: bool = False
    ends: dict[RelationPath, frozenset[Value]] = field(default_factory=dict)

    def steps(self, path: RelationPath) -> tuple[Step, ...]:
        if self.expansions <= 0:
            self.capped = True
            return ()
        self.expansions -= 1
        return self._read(lambda: self.graph.paths.steps([Candidate(path)])[0].steps, ())

    def ends_of(self, path: RelationPath) -> frozenset[Value]:
        if path not in self.ends:
            if self.end_sets <= 0:
                self.capped = True
                return frozenset()
            self.end_sets -= 1
            self.ends[path] = self._read(
                lambda: frozenset(self.graph.paths.ends([Candidate(path)])[0].values), frozenset()
            )
        return self.ends[path]

    def joined(self, path: RelationPath, join: Join) -> frozenset[Value]:
        return self._read(
            lambda: frozenset(self.graph.paths.ends([Candidate(path, joins=(join,))])[0].values), frozenset()
        )

    def _read(self, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except (StoreTimeout, PartialResult, ResultCapped):
            self.capped = True
            return otherwise

    def keys(self, values: frozenset[Value]) -> frozenset[Key]:
        if needs_names(self.gold):
            return answer_keys(self.graph.named(values), self.gold)
        short = self.graph.schema.short_id
        named = (Named(v, "", v.value) if isinstance(v, Literal) else Named(v, short(v.iri), "") for v in values)
        return answer_keys(named, self.gold)


def exact_paths(
    graph: KnowledgeGraph,
    topics: Sequence[Entity],
    gold: frozenset[Key],
    settings: BeamSettings,
    *,
    join: bool = True,
    expansions: int = EXPANSIONS,
    end_sets: int = END_SETS,
) -> Reach:
    """Find all solutions up to the depth in the settings, or `MOST_HOPS`.

    Args:
        settings: only the depth and the cost of mediators are used.
        join: also join paths from several topics.
        expansions: maximum number of paths to extend.
        end_sets: maximum number of paths whose ends are read.

    Raises:
        StoreError: a query failed. A timeout raises nothing and sets `capped`.
    """
    settings = replace(settings, depth=min(settings.depth, MOST_HOPS))
    search = _Search(graph, gold, settings, expansions, end_sets)
    arriving = _arriving(search)
    covering: dict[Entity, list[RelationPath]] = {}
    onto_mediators: dict[Entity, list[RelationPath]] = {}
    solutions: list[Solution] = []
    for topic in dict.fromkeys(topics):
        covering[topic], onto_mediators[topic] = [], []
        for path in _walk(search, topic):
            if graph.paths.ends_on_mediators(path):
                onto_mediators[topic].append(path)
            elif arriving is None or path.steps[-1] in arriving:
                found = search.keys(search.ends_of(path))
                if found >= gold:
                    covering[topic].append(path)
                if found == gold:
                    solutions.append((path,))
    if join and len(covering) > 1:
        # a path that is already a solution is not joined
        alone = {path for (path,) in solutions}
        open_ = {topic: [path for path in paths if path not in alone] for topic, paths in covering.items()}
        solutions += _at_the_end(search, open_)
        solutions += _on_mediators(search, open_, onto_mediators)
    return Reach(tuple(solutions), search.capped)


def _arriving(search: _Search) -> set[Step] | None:
    """Return the last steps by which a path can reach a gold answer; None if these steps are unknown."""
    entities = [ident for kind, ident in search.gold if kind == "id"]
    if not entities:
        return None
    graph = search.graph
    edges = graph.paths.neighbours(Entity(graph.schema.iri(min(entities))), limit=NEIGHBOURS)
    if len(edges) >= NEIGHBOURS:
        return None
    found = {step.reversed() for step, _ in edges}
    # a step and the opposite step of the inverse relation are equivalent; exploration returns only one of them
    pairs = {
        *graph.tables.inverses.items(),
        *((inverse, relation) for relation, inverse in graph.tables.inverses.items()),
    }
    twins = {Step(twin, step.direction).reversed() for step in found for name, twin in pairs if name == step.relation}
    return found | twins


def _walk(search: _Search, topic: Entity) -> Iterator[RelationPath]:
    """Yield all paths from a topic up to the depth, the shortest first."""
    graph, settings = search.graph, search.settings
    frontier = [RelationPath(topic)]
    while frontier:
        onward = []
        for parent in frontier:
            for step in search.steps(parent):
                path = parent.then(step)
                hops = path_cost(graph, path, settings)
                if hops > settings.depth:
                    continue
                yield path
                passing = graph.paths.ends_on_mediators(path) and settings.mediator_hop == "free"
                if hops < settings.depth or (passing and len(path) < 3 * settings.depth):
                    onward.append(path)
        frontier = onward


def _at_the_end(search: _Search, covering: dict[Entity, list[RelationPath]]) -> Iterator[Solution]:
    """Yield paths from two or three topics whose common ends are exactly the gold answers."""
    for count in (2, 3):
        found = False
        for topics in combinations(covering, count):
            for paths in islice(product(*(covering[topic] for topic in topics)), PAIRS):
                if search.keys(frozenset.intersection(*map(search.ends_of, paths))) == search.gold:
                    found = True
                    yield paths
        if found:
            return


def _on_mediators(
    search: _Search, covering: dict[Entity, list[RelationPath]], onto: dict[Entity, list[RelationPath]]
) -> Iterator[Solution]:
    """Yield pairs: a path through mediators, and a path from a different topic that selects some of these mediators."""
    for topic, paths in covering.items():
        others = [path for other, found in onto.items() if other != topic for path in found]
        for path in paths:
            for place in range(1, len(path)):
                inner = RelationPath(topic, path.steps[:place])
                if not search.graph.paths.ends_on_mediators(inner):
                    continue
                for other in others:
                    shared = search.ends_of(inner) & search.ends_of(other)
                    if shared and search.keys(search.joined(path, Join(place, other))) == search.gold:
                        yield path, other
