"""Tournaments of pairs: merge sort that stops at k (thesis, section 3.3.2), and knockout with repechage.

Pure functions over a `Chooser`. No pair is asked twice, and all matches that can be played at once are one batch.
A chooser need not be consistent: a > b > c > a still gives k different candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import Chooser

Recorder = Callable[..., None]
Match = tuple[int, int]
# asks for a batch of matches, is sent whether the first of each pair won, and returns candidates, best first
Play = Generator[list[Match], list[bool], list[int]]


def record_nothing(kind: str, /, **detail: Any) -> None:
    """Notes nothing."""


def pairwise(
    question: str, candidates: Sequence[Candidate], chooser: Chooser, *, k: int, record: Recorder = record_nothing
) -> list[Candidate]:
    """Merge sort of the pool whose merges end when they have `k` candidates, the better ones; stable.

    With k = 3 and n > 1 candidates at most 2n - 3 matches; for n = 30 that is 57, in at most 13 rounds.

    Args:
        candidates: in prefilter order, which decides a match that the chooser leaves open.
        record: called with `kind="match"` and what was decided, once a match.

    Returns:
        At most `k` candidates, best first, all of them from `candidates`.

    Raises:
        ValueError: `k` below 1.
    """
    return _play(question, candidates, chooser, k, record, _merge_sort)


def knockout(
    question: str, candidates: Sequence[Candidate], chooser: Chooser, *, k: int, record: Recorder = record_nothing
) -> list[Candidate]:
    """Single elimination; then, for each further place, those who lost to nobody but the placed play again.

    The earlier a candidate stands, the later it meets another early one. With n = 30 and k = 3 at most 38 matches
    in at most 11 rounds. Arguments, result and errors as in `pairwise`.
    """
    return _play(question, candidates, chooser, k, record, _eliminate)


def _play(
    question: str,
    candidates: Sequence[Candidate],
    chooser: Chooser,
    k: int,
    record: Recorder,
    system: Callable[[list[int], int], Play],
) -> list[Candidate]:
    """Let a system of play ask its matches of the chooser until it has a result."""
    if k < 1:
        raise ValueError("a tournament needs one winner at least")
    playing = system(list(range(len(candidates))), k)
    won: list[bool] | None = None
    while True:
        try:
            pairs = next(playing) if won is None else playing.send(won)
        except StopIteration as end:
            return [candidates[i] for i in end.value]
        won = _round(question, [(candidates[i], candidates[j]) for i, j in pairs], chooser, record)


def _round(question: str, pairs: list[tuple[Candidate, Candidate]], chooser: Chooser, record: Recorder) -> list[bool]:
    replies = list(chooser.prefer(question, pairs))[: len(pairs)]
    replies += [0] * (len(pairs) - len(replies))
    won = []
    for (first, second), reply in zip(pairs, replies):
        won.append(reply != -1)  # systems name the earlier candidate first, so that it wins ties
        detail = {"candidates": [first.words, second.words], "picked": [(first if won[-1] else second).words]}
        record("match", **detail, **({} if reply in (1, -1) else {"tie": True}))
    return won


def _merge_sort(pool: list[int], k: int) -> Play:
    if len(pool) < 2:
        return pool
    middle = len(pool) // 2
    left, right = yield from _side_by_side(_merge_sort(pool[:middle], k), _merge_sort(pool[middle:], k))
    merged: list[int] = []
    while left and right and len(merged) < k:
        (left_won,) = yield [(left[0], right[0])]
        merged.append((left if left_won else right).pop(0))
    return (merged + left + right)[:k]


def _side_by_side(*playing: Play) -> Generator[list[Match], list[bool], list[list[int]]]:
    """Several plays at once: a batch has the next matches of all that are not at their end."""
    results: list[list[int]] = [[] for _ in playing]
    wanted: dict[int, list[Match]] = {}

    def advance(place: int, won: list[bool] | None) -> None:
        try:
            wanted[place] = playing[place].send(won)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as end:
            wanted.pop(place, None)
            results[place] = end.value

    for place in range(len(playing)):
        advance(place, None)
    while wanted:
        asked = list(wanted.items())
        won = iter((yield [pair for _, pairs in asked for pair in pairs]))
        for place, pairs in asked:
            advance(place, [next(won) for _ in pairs])
    return results


def _eliminate(pool: list[int], k: int) -> Play:
    beaten: dict[int, list[int]] = {player: [] for player in pool}  # by whom, in the order of the matches
    placed: list[int] = []
    contenders = pool
    while contenders and len(placed) < k:
        winner = yield from _bracket(contenders, beaten)
        placed.append(winner)
        # whom it met last has come furthest: it enters the next bracket as its strongest
        contenders = beaten[winner][::-1]
    return placed


def _bracket(contenders: list[int], beaten: dict[int, list[int]]) -> Generator[list[Match], list[bool], int]:
    """Single elimination, strongest first: it meets the weakest, and has a bye where the number is odd."""
    while len(contenders) > 1:
        odd = len(contenders) % 2
        half = len(contenders) // 2
        ends = zip(contenders[odd : odd + half], contenders[: -half - 1 : -1])
        pairs = [(min(pair), max(pair)) for pair in ends]
        won = yield pairs
        winners = []
        for (first, second), first_won in zip(pairs, won):
            winner, loser = (first, second) if first_won else (second, first)
            beaten[winner].append(loser)
            winners.append(winner)
        contenders = contenders[:odd] + winners
    return contenders[0]
