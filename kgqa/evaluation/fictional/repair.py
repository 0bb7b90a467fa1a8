"""Repair of a rewired graph for its questions: each should have answers, and none that is true.

Random exchanges leave some questions without answers and others with true ones. Each such question proposes
exchanges; an exchange is made if it improves all questions together.
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
"""Additional tries for each answer that is still true."""
MOST_TRIES = 400
PARTNERS = 3
LEAST = 1e-9

Move = tuple[int, int, int]
"""An exchange: the number of a group, and two of its units."""


@dataclass
class WatchedPattern:
    """A pattern that questions ask, with its true answers, present answers and the ports it reads."""

    pattern: Pattern
    true: frozenset[int]
    weight: int = 1
    found: set[int] = field(default_factory=set)
    reads: set[Port] = field(default_factory=set)

    @property
    def cost(self) -> float:
        """0 if it has answers and none is true, 1 to 2 if some are, 2 without answers."""
        if not self.found:
            return 2.0
        wrong = len(self.found & self.true)
        return 1 + wrong / len(self.found) if wrong else 0.0


class Repairer:
    """Repairs a rewiring for questions.

    Args:
        asked: patterns with the numbers of their true answers and their weights; equal ones are combined.
    """

    def __init__(self, world: Rewiring, asked: Iterable[tuple[Pattern, frozenset[int], int]]) -> None:
        self.world = world
        self._asked: list[WatchedPattern] = []
        self._reading: dict[Port, set[int]] = defaultdict(set)
        weights: dict[tuple[Pattern, frozenset[int]], int] = defaultdict(int)
        for pattern, true, weight in asked:
            weights[pattern, true] += weight
        for (pattern, true), weight in weights.items():
            tended = WatchedPattern(pattern, true, weight)
            self._asked.append(tended)
            if not self._look(len(self._asked) - 1):
                self._forget(len(self._asked) - 1)
                self._asked.pop()

    def run(self, progress: StageProgress = lambda *_: None) -> int:
        """Repair, and return how many patterns still have no answer or a true one."""
        for turn in range(ROUNDS):
            open_ = [n for n, tended in enumerate(self._asked) if tended.cost]
            for done, number in enumerate(open_):
                progress(f"repairing {turn + 1}/{ROUNDS}", done, len(open_))
                self._repair(number)
            if not open_:
                break
        return sum(bool(tended.cost) for tended in self._asked)

    def _repair(self, number: int) -> None:
        tended = self._asked[number]
        tries = min(MOST_TRIES, TRIES + TRIES_FOR_EACH * len(tended.found & tended.true))
        for proposal in self._proposals(tended, tries):
            if proposal:
                self._attempt(proposal)

    def _proposals(self, tended: WatchedPattern, tries: int) -> Iterator[list[Move]]:
        """Yield at most `tries` lists of exchanges that may help a pattern."""
        for turn in range(tries):
            if not tended.cost:
                return
            if not tended.found:
                yield self._plan(tended, 1 + turn % 3, restoring=turn > tries // 3)
            else:
                yield self._break(tended)

    def _break(self, tended: WatchedPattern) -> list[Move]:
        """Propose to remove an edge that leads to a true answer."""
        chance, world = self.world.chance, self.world
        true = sorted(tended.found & tended.true)
        wrong = true[chance.randrange(len(true))]
        found = next(solutions(tended.pattern, world, chance, bound={tended.pattern.answer: wrong}), None)
        if found is None:
            return []
        binding = found[0]
        edges = []
        for subject, relation, object_ in tended.pattern.edges:
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

    def _plan(self, tended: WatchedPattern, missing: int, *, restoring: bool) -> list[Move]:
        """Propose exchanges that give a pattern an answer that is not true.

        Args:
            restoring: edges of the true graph may be restored, as there may be no other solution.
        """
        world = self.world
        for binding, lacking in solutions(tended.pattern, world, world.chance, bound={}, missing=missing):
            if binding[tended.pattern.answer] in tended.true or not lacking:
                continue
            moves = [self._making(edge, restoring) for edge in lacking]
            if all(moves):
                return moves  # type: ignore[return-value]
        return []

    def _making(self, edge: Missing, restoring: bool) -> Move | None:
        """Return an exchange that makes an edge, None if none was found."""
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

    def _attempt(self, moves: list[Move]) -> bool:
        """Make the exchanges if they improve all patterns together."""
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
            known = self._look(n)
            change += self._asked[n].weight * ((self._asked[n].cost if known else 2.0) - before[n][2])
        if change < -LEAST:
            return True
        for number, first, second in reversed(made):
            world.exchange(number, first, second)
        for n, (found, reads, _) in before.items():
            self._forget(n)
            self._asked[n].found, self._asked[n].reads = found, reads
            for port in reads:
                self._reading[port].add(n)
        return False

    def _look(self, number: int) -> bool:
        """Match a pattern again; False if that is too much work."""
        tended = self._asked[number]
        self._forget(number)
        reads: set[Port] = set()
        found = answers(tended.pattern, self.world, reads)
        tended.found, tended.reads = found or set(), reads
        for port in reads:
            self._reading[port].add(number)
        return found is not None

    def _forget(self, number: int) -> None:
        for port in self._asked[number].reads:
            self._reading[port].discard(number)
