"""Measures the cost of tournaments and how often they keep the best of n candidates, with a chooser that errs.

The chooser is the noisy oracle of kgqa.testing with `others="coin"`. In a pair, the best candidate beats any other with
probability p, and a pair without the best is a fair coin. The places of a chunk are drawn one after the other
(Plackett-Luce); the best is drawn p / (1 - p) times as often as each other candidate. The pool is in random order, and
k candidates are kept. `calls` is the mean over all trials, `most` the maximum. `rounds` is the maximum number of
batches that had to run one after the other.

Groups of round robins are not part of kgqa; they are listed for comparison.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

from common import print_json, print_table

from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.rank.tournaments.chooser import Chooser
from kgqa.rank.tournaments.registry import tournament
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.testing.oracle import NoisyOracle

CHANCES = (0.7, 0.8, 0.9, 0.95)
QUESTION = "which one?"


def round_robin(
    question: str, candidates: Sequence[Candidate], chooser: Chooser, *, k: int, group: int | None = None
) -> list[Candidate]:
    """Compare all pairs and return the best `k` candidates.

    With `group`, candidates first play in groups of that size. Two candidates of each group advance; this is repeated
    until at most 2k candidates are left.
    """
    pool = list(candidates)
    while group and len(pool) > 2 * k:
        count = -(-len(pool) // group)
        tables = _won(question, [pool[start::count] for start in range(count)], chooser)
        pool = [table[place] for place in range(2) for table in tables if place < len(table)]
    return _won(question, [pool], chooser)[0][:k]


def _won(question: str, groups: list[list[Candidate]], chooser: Chooser) -> list[list[Candidate]]:
    """Sort each group by the number of matches won; tied candidates keep their order."""
    pairs = [pair for group in groups for pair in combinations(group, 2)]
    wins = {candidate: 0 for group in groups for candidate in group}
    for (first, second), reply in zip(pairs, chooser.prefer(question, pairs), strict=True):
        wins[second if reply < 0 else first] += 1
    return [sorted(group, key=lambda candidate: -wins[candidate]) for group in groups]


@dataclass(frozen=True, slots=True)
class System:
    """A row of the table: the tournament and the number of votes per decision."""

    name: str
    play: Callable[..., list[Candidate]]
    votes: int | None = None


def systems() -> list[System]:
    chunked = tournament("chunked").play
    return [
        System("one prompt over all", tournament("single").play),
        System("chunked, chunks of 20", partial(chunked, chunk_size=20)),
        System("chunked, chunks of 10", partial(chunked, chunk_size=10)),
        System("chunked, chunks of 5", partial(chunked, chunk_size=5)),
        System("pairwise merge", tournament("pairwise").play),
        System("pairwise merge, majority of 3", tournament("pairwise").play, votes=3),
        System("knockout with repechage", tournament("knockout").play),
        System("pointwise, 5 at once", tournament("pointwise").play),
        System("groups of 5 round robin, keep 2", partial(round_robin, group=5)),
        System("full round robin", round_robin),
    ]


def measure(system: System, *, n: int, k: int, trials: int, seed: int) -> dict[str, Any]:
    """Play `trials` times for each probability; `kept` is the share of trials that keep the best candidate."""
    topic = Entity("http://example.org/topic")
    truth = [Candidate(RelationPath(topic, (Step(f"http://example.org/{i}"),)), str(i)) for i in range(n)]
    calls, rounds, kept = [], 0, {}
    for chance in CHANCES:
        shuffle = random.Random(f"{seed} {chance}")
        hits = 0
        for _ in range(trials):
            pool = shuffle.sample(truth, n)
            oracle = NoisyOracle(truth, p=chance, seed=shuffle.getrandbits(64), others="coin")
            chooser: Chooser = VotingChooser(oracle, system.votes) if system.votes else oracle
            hits += truth[0] in system.play(QUESTION, pool, chooser, k=k)
            calls.append(oracle.calls)
            rounds = max(rounds, oracle.rounds)
        kept[f"{chance:g}"] = hits / trials
    return {
        "tournament": system.name,
        "calls": sum(calls) / len(calls),
        "most": max(calls),
        "rounds": rounds,
        "kept": kept,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000, help="per probability")
    parser.add_argument("--n", type=int, default=30, help="candidates")
    parser.add_argument("--k", type=int, default=3, help="candidates kept")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if min(options.trials, options.n, options.k) < 1:
        parser.error("--trials, --n and --k are 1 at least")
    lines = [measure(s, n=options.n, k=options.k, trials=options.trials, seed=options.seed) for s in systems()]
    error = 0.5 / math.sqrt(options.trials)
    if options.json:
        print_json({"n": options.n, "k": options.k, "trials": options.trials, "standard_error": error, "lines": lines})
        return
    print(
        f"n={options.n}, k={options.k}; {options.trials} trials for each chance, standard error at most {error:.3f}\n"
    )
    head = ["tournament", "calls", "most", "rounds", *(f"p={chance:g}" for chance in CHANCES)]
    print_table(head, [[x["tournament"], x["calls"], x["most"], x["rounds"], *x["kept"].values()] for x in lines])


if __name__ == "__main__":
    main()
