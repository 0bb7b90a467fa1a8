"""Sees to it that questions can be asked of a rewired graph: each has an answer, and none that is true.

Exchanges at random leave some questions without an answer (their conditions no longer meet) and others with one that
was true. Each such question proposes exchanges; one is made if it leaves all questions together better off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kgqa.evaluation.fictional.facts import Progress
from kgqa.evaluation.fictional.patterns import Missing, Pattern, answers, solutions
from kgqa.evaluation.fictional.rewiring import Port, Rewiring

ROUNDS = 3
TRIES = 40
TRIES_FOR_EACH = 6
"""More tries for each answer that is still true."""
MOST_TRIES = 400
PARTNERS = 3
LEAST = 1e-9

Move = tuple[int, int, int]
"""An exchange: the group, and two of its units."""


@dataclass
class Tended:
    """A pattern that some questions ask, and what was true. `cost` is 0 where it has answers and none is true, 1 to 2
    where some are, 2 where it has none.
    """

    pattern: Pattern
    true: frozenset[int]
    weight: int = 1
    found: set[int] = field(default_factory=set)
    reads: set[Port] = field(default_factory=set)

    @property
    def cost(self) -> float:
        if not self.found:
            return 2.0
        wrong = len(self.found & self.true)
        return 1 + wrong / len(self.found) if wrong else 0.0


class Mender:
    """Mends a rewiring for questions.

    Args:
        asked: patterns, the numbers of what was true for them, and how much they count; equal ones count together.
    """

    def __init__(self, world: Rewiring, asked: Iterable[tuple[Pattern, frozenset[int], int]]) -> None:
        self.world = world
        self._asked: list[Tended] = []
        self._reading: dict[Port, set[int]] = defaultdict(set)
        weights: dict[tuple[Pattern, frozenset[int]], int] = defaultdict(int)
        for pattern, true, weight in asked:
            weights[pattern, true] += weight
        for (pattern, true), weight in weights.items():
            tended = Tended(pattern, true, weight)
            self._asked.append(tended)
            if not self._look(len(self._asked) - 1):
                self._forget(len(self._asked) - 1)
                self._asked.pop()

    def run(self, progress: Progress = lambda *_: None) -> int:
        """Mend, and give how many of the patterns are still without an answer or with a true one."""
        for turn in range(ROUNDS):
            open_ = [n for n, tended in enumerate(self._asked) if tended.cost]
            for done, number in enumerate(open_):
                progress(f"mending {turn + 1}/{ROUNDS}", done, len(open_))
                self._mend(number)
            if not open_:
                break
        return sum(bool(tended.cost) for tended in self._asked)

    def _mend(self, number: int) -> None:
        tended = self._asked[number]
        tries = min(MOST_TRIES, TRIES + TRIES_FOR_EACH * len(tended.found & tended.true))
        for proposal in self._proposals(tended, tries):
            if proposal:
                self._attempt(proposal)

    def _proposals(self, tended: Tended, tries: int) -> Iterator[list[Move]]:
        """Exchanges that may help a question, at most so many."""
        for turn in range(tries):
            if not tended.cost:
                return
            if not tended.found:
                yield self._plan(tended, 1 + turn % 3, restoring=turn > tries // 3)
            else:
                yield self._break(tended)

    def _break(self, tended: Tended) -> list[Move]:
        """Take an edge out of a derivation of an answer that is true."""
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

    def _plan(self, tended: Tended, missing: int, *, restoring: bool) -> list[Move]:
        """Give a question without an answer one that is not true.

        Args:
            restoring: an edge on the way may be one that was true: there may be no other way.
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
        """An exchange that makes an edge."""
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
        """Make the exchanges if they leave all questions together better off."""
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
        """Ask a question anew; whether that could be done."""
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
