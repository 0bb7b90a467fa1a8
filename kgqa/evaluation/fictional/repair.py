"""Repairs a rewired graph until each question has answers and no answer is true.

After random exchanges some questions have no answer, and others have true answers. For each such question, exchanges
are proposed; an exchange is made if it lowers the total cost of all questions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kgqa.evaluation.fictional.facts import StageProgress
from kgqa.evaluation.fictional.patterns import Missing, Pattern, answers, solutions
from kgqa.evaluation.fictional.rewiring import Port, Rewiring

ROUNDS = 3
TRIES = 40
TRIES_FOR_EACH = 6
"""Number of extra tries for each answer that is still true."""
MAX_TRIES = 400
PARTNERS = 3
LEAST = 1e-9

Move = tuple[int, int, int]
"""An exchange: the number of a group, and the numbers of two of its units."""


@dataclass
class WatchedPattern:
    """The pattern of one or more questions.

    `true`: answers in the true graph; `found`: answers in the rewired graph; `reads`: ports that matching the pattern
    reads; `weight`: weight of the questions in the repair.
    """

    pattern: Pattern
    true: frozenset[int]
    weight: int = 1
    found: set[int] = field(default_factory=set)
    reads: set[Port] = field(default_factory=set)

    @property
    def cost(self) -> float:
        """2 if there are no answers; 0 if there are answers but none is true; else 1 + the share of true answers."""
        if not self.found:
            return 2.0
        wrong = len(self.found & self.true)
        return 1 + wrong / len(self.found) if wrong else 0.0


class Repairer:
    """Repairs a rewired graph for questions.

    Args:
        world: the rewired graph.
        asked: pattern, true answers and weight of each question; equal patterns are combined.
    """

    def __init__(self, world: Rewiring, asked: Iterable[tuple[Pattern, frozenset[int], int]]) -> None:
        self.world = world
        self._asked: list[WatchedPattern] = []
        self._reading: dict[Port, set[int]] = defaultdict(set)
        weights: dict[tuple[Pattern, frozenset[int]], int] = defaultdict(int)
        for pattern, true, weight in asked:
            weights[pattern, true] += weight
        for (pattern, true), weight in weights.items():
            watched = WatchedPattern(pattern, true, weight)
            self._asked.append(watched)
            if not self._match(len(self._asked) - 1):
                self._forget(len(self._asked) - 1)
                self._asked.pop()

    def run(self, progress: StageProgress = lambda *_: None) -> None:
        """Repair the graph; some patterns may still have no answer, or a true answer."""
        for turn in range(ROUNDS):
            open_ = [n for n, watched in enumerate(self._asked) if watched.cost]
            for done, number in enumerate(open_):
                progress(f"repairing {turn + 1}/{ROUNDS}", done, len(open_))
                self._repair(number)
            if not open_:
                break

    def _repair(self, number: int) -> None:
        watched = self._asked[number]
        tries = min(MAX_TRIES, TRIES + TRIES_FOR_EACH * len(watched.found & watched.true))
        for proposal in self._proposals(watched, tries):
            if proposal:
                self._attempt(proposal)

    def _proposals(self, watched: WatchedPattern, tries: int) -> Iterator[list[Move]]:
        """Yield at most `tries` lists of exchanges that may lower the cost of a pattern."""
        for turn in range(tries):
            if not watched.cost:
                return
            if not watched.found:
                yield self._plan(watched, 1 + turn % 3, restoring=turn > tries // 3)
            else:
                yield self._break(watched)

    def _break(self, watched: WatchedPattern) -> list[Move]:
        """Propose an exchange that removes an edge of a match with a true answer."""
        chance, world = self.world.chance, self.world
        true = sorted(watched.found & watched.true)
        wrong = true[chance.randrange(len(true))]
        found = next(solutions(watched.pattern, world, chance, bound={watched.pattern.answer: wrong}), None)
        if found is None:
            return []
        binding = found[0]
        edges = []
        for subject, relation, object_ in watched.pattern.edges:
            edge = world.out[relation][binding.get(subject, subject)][binding.get(object_, object_)]
            edges += [edge] if edge[0] >= 0 else []
        if not edges:
            return []
        number, unit = edges[chance.randrange(len(edges))]
        group = world.units.groups[number]
        tries = ((4, 1, 1, 0), (0, 2, 2, 2), (0, 0, 0, 6))[chance.randrange(3)]
        for partner in world.pools[number].partners(unit, chance, tries):
            if world.may_exchange(group, unit, partner):
                return [(number, unit, partner)]
        return []

    def _plan(self, watched: WatchedPattern, missing: int, *, restoring: bool) -> list[Move]:
        """Propose exchanges that give a pattern an answer that is not true.

        Args:
            missing: maximum number of edges to create.
            restoring: allow exchanges that restore edges of the true graph.
        """
        world = self.world
        for binding, lacking in solutions(watched.pattern, world, world.chance, bound={}, missing=missing):
            if binding[watched.pattern.answer] in watched.true or not lacking:
                continue
            moves = [self._making(edge, restoring) for edge in lacking]
            if all(moves):
                return moves  # type: ignore[return-value]
        return []

    def _making(self, edge: Missing, restoring: bool) -> Move | None:
        """Return an exchange that creates an edge; None if there is none."""
        relation, subject, object_ = edge
        world, chance = self.world, self.world.chance
        mine = [unit for unit in world.out[relation].get(subject, {}).values() if unit[0] >= 0]
        yours = [unit for unit in world.into[relation].get(object_, {}).values() if unit[0] >= 0]
        for _ in range(PARTNERS):
            one, other = mine[chance.randrange(len(mine))], yours[chance.randrange(len(yours))]
            group = world.units.groups[one[0]]
            if one[0] == other[0] and world.may_exchange(group, one[1], other[1], restoring=restoring):
                return one[0], one[1], other[1]
        return None

    def _attempt(self, moves: list[Move]) -> None:
        """Make the exchanges if they lower the total cost of all patterns."""
        world, made, ports = self.world, [], set()
        for number, first, second in moves:
            if world.may_exchange(world.units.groups[number], first, second, restoring=True):
                ports |= world.ports(number, (first, second))
                world.exchange(number, first, second)
                ports |= world.ports(number, (first, second))
                made.append((number, first, second))
        noticed = sorted({number for port in ports for number in self._reading.get(port, ())})
        before = {n: (self._asked[n].found, self._asked[n].reads, self._asked[n].cost) for n in noticed}
        change = 0.0
        for n in noticed:
            known = self._match(n)
            change += self._asked[n].weight * ((self._asked[n].cost if known else 2.0) - before[n][2])
        if change < -LEAST:
            return
        for number, first, second in reversed(made):
            world.exchange(number, first, second)
        for n, (found, reads, _) in before.items():
            self._forget(n)
            self._asked[n].found, self._asked[n].reads = found, reads
            for port in reads:
                self._reading[port].add(n)

    def _match(self, number: int) -> bool:
        """Match a pattern again and update its answers; return False if the search is too large."""
        watched = self._asked[number]
        self._forget(number)
        reads: set[Port] = set()
        found = answers(watched.pattern, self.world, reads)
        watched.found, watched.reads = found or set(), reads
        for port in reads:
            self._reading[port].add(number)
        return found is not None

    def _forget(self, number: int) -> None:
        for port in self._asked[number].reads:
            self._reading[port].discard(number)
