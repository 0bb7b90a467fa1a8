"""Draws samples and shards of question sets, the same on every machine and in every version of Python.

A sample consists of the questions with the smallest SHA-256 hashes, computed from seed and id. Therefore a sample of
100 is part of the sample of 200, and the order of the file does not matter.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.questions import GoldQuestion


def sample(questions: Iterable[GoldQuestion], n: int, seed: int = 0) -> list[GoldQuestion]:
    """Draw `n` questions, in the order of the file; all questions if there are fewer than `n`.

    At most `n` questions are in memory.

    Raises:
        SettingsError: `n` is less than 1.
    """
    if n < 1:
        raise SettingsError(f"A sample needs 1 question or more, not {n}.", "Choose another size: --sample")
    ranked = ((_number(question.id, seed), place, question) for place, question in enumerate(questions))
    return [question for *_, question in sorted(heapq.nsmallest(n, ranked), key=lambda item: item[1])]


class QuestionIds:
    """Records the ids of questions, and finds repeated ids."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def recorded(self, questions: Iterable[GoldQuestion]) -> Iterator[GoldQuestion]:
        """Yield the questions, and record the id of each."""
        for question in questions:
            self._counts[question.id] += 1
            yield question

    def repeated(self) -> int:
        """Count the questions whose id was recorded before."""
        return self._counts.total() - len(self._counts)

    def made_distinct(self, questions: Iterable[GoldQuestion]) -> Iterator[GoldQuestion]:
        """Yield the recorded questions with distinct ids: `#2`, `#3`, ... is appended to repeated ids."""
        seen: Counter[str] = Counter()
        added: set[str] = set()
        for question in questions:
            ident = question.id
            seen[ident] += 1
            number = seen[ident]
            while number > 1 and (ident in added or ident in self._counts):
                ident, number = f"{question.id}#{number}", number + 1
            if ident != question.id:
                added.add(ident)
            yield question if ident == question.id else replace(question, id=ident)


def shard(questions: Sequence[GoldQuestion], i: int, n: int) -> list[GoldQuestion]:
    """Return shard `i` (from 1) of `n`: every `n`-th question, because many files are sorted by kind of question.

    Raises:
        SettingsError: `i` is not from 1 to `n`.
    """
    if not 1 <= i <= n:
        raise SettingsError(f"There is no shard {i} of {n}.", f"Choose a shard from 1 to {n}: --shard 1/{n}")
    return list(questions[i - 1 :: n])


def _number(ident: str, seed: int) -> bytes:
    # an id from JSON may contain half of a surrogate pair
    return hashlib.sha256(f"{seed}\0{ident}".encode("utf-8", "surrogatepass")).digest()
