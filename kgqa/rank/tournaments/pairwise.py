"""Tournaments of pairs: merge sort that stops at k (thesis, section 3.3.2), and knockout with a repechage for losers.

No pair is compared twice. Matches that do not depend on each other are sent to the chooser in one batch. A chooser
may contradict itself: with a > b > c > a, a tournament still returns k different candidates. If the chooser prefers
neither candidate of a pair, both are out of the tournament and cost no further match.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from kgqa.model import Candidate
from kgqa.rank.tournaments.chooser import NEITHER, Chooser
from kgqa.trace import MatchPlayed

Recorder = Callable[[MatchPlayed], None]
Pairing = tuple[int, int]
# yields batches of matches, receives one value per match (1: the first candidate won, -1: the second, NEITHER: both
# lost), returns the best first
Play = Generator[list[Pairing], list[int], list[int]]


def pairwise(
    question: str, candidates: Sequence[Candidate], chooser: Chooser, *, k: int, record: Recorder = lambda event: None
) -> list[Candidate]:
    """Sort the pool by merge sort, ending each merge at `k` candidates. The sort is stable.

    With k = 3, n > 1 candidates take at most 2n - 3 matches: for n = 30, at most 57 matches in 13 rounds.

    Args:
        question: The question's text.
        candidates: The pool in prefilter order. This order decides a match if the chooser reports a tie.
        chooser: Decides the matches.
        k: How many winners to return.
        record: Called with each match.

    Returns:
        At most `k` of the candidates, best first; none if the chooser prefers none.
    """
    return _play(question, candidates, chooser, k, record, _merge_sort)


def knockout(
    question: str, candidates: Sequence[Candidate], chooser: Chooser, *, k: int, record: Recorder = lambda event: None
) -> list[Candidate]:
    """Find the best candidate by single elimination; for each next rank, those who lost to the last winner play again.

    The best candidates of the prefilter meet each other as late as possible. With k = 3, 30 candidates take at most
    38 matches in 11 rounds. Arguments and result as in `pairwise`.
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
    """Play the matches of a tournament system until it has a result."""
    playing = system(list(range(len(candidates))), k)
    won: list[int] | None = None
    rejected: set[int] = set()
    all_rejected = True  # until a candidate wins a match
    while True:
        try:
            pairs = playing.send(won)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as end:
            left: list[int] = end.value
            break
        won = _round(question, [(candidates[i], candidates[j]) for i, j in pairs], chooser, record)
        rejected.update(i for pair in pairs for i in pair)
        all_rejected &= set(won) <= {NEITHER}
    if all_rejected and rejected and left:
        # the candidate that had no match is left over, not chosen
        (last,), other = left, min(rejected)
        (result,) = _round(question, [(candidates[last], candidates[other])], chooser, record)
        left = [last] if result == 1 else [other] if result == -1 else []
    return [candidates[i] for i in left]


def _round(question: str, pairs: list[tuple[Candidate, Candidate]], chooser: Chooser, record: Recorder) -> list[int]:
    won = []
    for (first, second), reply in zip(pairs, chooser.prefer(question, pairs), strict=True):
        won.append(reply or 1)  # the first candidate wins a tie, because it comes first in prefilter order
        picked = {1: (first.words,), -1: (second.words,), NEITHER: ()}[won[-1]]
        record(MatchPlayed(candidates=(first.words, second.words), picked=picked, tie=not reply))
    return won


def _merge_sort(pool: list[int], k: int) -> Play:
    if len(pool) < 2:
        return pool
    middle = len(pool) // 2
    left, right = yield from _side_by_side(_merge_sort(pool[:middle], k), _merge_sort(pool[middle:], k))
    merged: list[int] = []
    while left and right and len(merged) < k:
        (won,) = yield [(left[0], right[0])]
        if won == NEITHER:
            left, right = left[1:], right[1:]
        else:
            merged.append((left if won == 1 else right).pop(0))
    return (merged + left + right)[:k]


def _side_by_side(*playing: Play) -> Generator[list[Pairing], list[bool], list[list[int]]]:
    """Run several plays at once; each batch holds the next matches of every unfinished play."""
    results: list[list[int]] = [[] for _ in playing]
    pending: dict[int, list[Pairing]] = {}

    def advance(number: int, won: list[int] | None) -> None:
        try:
            pending[number] = playing[number].send(won)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as end:
            pending.pop(number, None)
            results[number] = end.value

    for number in range(len(playing)):
        advance(number, None)
    while pending:
        batch = list(pending.items())
        won = iter((yield [pair for _, pairs in batch for pair in pairs]))
        for number, pairs in batch:
            advance(number, [next(won) for _ in pairs])
    return results


def _eliminate(pool: list[int], k: int) -> Play:
    beaten: dict[int, list[int]] = {player: [] for player in pool}  # player to beaten opponents, in order of matches
    placed: list[int] = []
    contenders = pool
    while contenders and len(placed) < k:
        winner = yield from _bracket(contenders, beaten)
        if winner is None:
            break
        placed.append(winner)
        # the winner's last opponent won the most matches, so this opponent starts the next bracket as the strongest
        contenders = beaten[winner][::-1]
    return placed


def _bracket(contenders: list[int], beaten: dict[int, list[int]]) -> Generator[list[Pairing], list[int], int | None]:
    """Play a single elimination and return the winner; None if every candidate lost.

    In each round the strongest candidate meets the weakest. If the number of candidates is odd, the strongest candidate
    advances without a match.
    """
    while len(contenders) > 1:
        odd = len(contenders) % 2
        half = len(contenders) // 2
        ends = zip(contenders[odd : odd + half], contenders[: -half - 1 : -1])
        pairs = [(min(pair), max(pair)) for pair in ends]
        won = yield pairs
        winners = []
        for (first, second), result in zip(pairs, won):
            if result == NEITHER:
                continue
            winner, loser = (first, second) if result == 1 else (second, first)
            beaten[winner].append(loser)
            winners.append(winner)
        contenders = contenders[:odd] + winners
    return contenders[0] if contenders else None
