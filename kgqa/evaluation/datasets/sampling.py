"""Draws samples and shards of question sets, the same on every machine and in every version of Python.

A sample consists of the questions with the smallest SHA-256 hashes, computed from seed and id. Therefore a sample of
100 is part of the sample of 200, and the order of the file does not matter.
"""

from __future__ import annotations

import hashlib
import heapq
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.text.hints import Option


def sample(questions: Iterable[GoldQuestion], n: int, seed: int = 0) -> list[GoldQuestion]:
    """Draw `n` questions, in the order of the file; all questions if there are fewer than `n`.

    At most `n` questions are in memory.

    Raises:
        SettingsError: `n` is less than 1.
    """
    if n < 1:
        raise SettingsError(f"A sample needs 1 question or more, not {n}.", "Choose another size: ", Option("sample"))
    ranked = ((_number(question.id, seed), place, question) for place, question in enumerate(questions))
    return [question for *_, question in sorted(heapq.nsmallest(n, ranked), key=lambda item: item[1])]


def distinct_sample(read: Callable[[], Iterable[GoldQuestion]], n: int | None, seed: int = 0) -> list[GoldQuestion]:
    """Read questions, make their ids distinct, and draw a sample.

    Args:
        read: yields all questions; called a second time if ids are repeated.
        n: number of questions to draw; None for all.
        seed: seed of the sample.

    Raises:
        SettingsError: `n` is less than 1.
    """
    ids = QuestionIds()
    if n is None:
        return list(ids.made_distinct(list(ids.recorded(read()))))
    found = sample(ids.recorded(read()), n, seed)
    return sample(ids.made_distinct(read()), n, seed) if ids.repeated() else found


class QuestionIds:
    """Records the ids of questions, in eight bytes per question, and finds repeated ids."""

    def __init__(self) -> None:
        self._recorded = array("Q")
        self._sorted = np.empty(0, dtype=np.uint64)

    def recorded(self, questions: Iterable[GoldQuestion]) -> Iterator[GoldQuestion]:
        """Yield the questions, and record the id of each."""
        for question in questions:
            self._recorded.append(_eight_bytes(question.id))
            yield question

    def repeated(self) -> int:
        """Count the questions whose id was recorded before."""
        if len(self._sorted) != len(self._recorded):
            self._sorted = np.sort(np.frombuffer(self._recorded, dtype=np.uint64))
        return int((self._sorted[1:] == self._sorted[:-1]).sum())

    def made_distinct(self, questions: Iterable[GoldQuestion]) -> Iterator[GoldQuestion]:
        """Yield the recorded questions with distinct ids: `#2`, `#3`, ... is appended to repeated ids."""
        self.repeated()
        several = set(self._sorted[1:][self._sorted[1:] == self._sorted[:-1]].tolist())
        seen: Counter[str] = Counter()
        added: set[str] = set()
        for question in questions:
            ident = question.id
            if _eight_bytes(ident) in several:
                seen[ident] += 1
                number = seen[ident]
                while number > 1 and (ident in added or self._has(ident)):
                    ident, number = f"{question.id}#{number}", number + 1
                added.add(ident)
            yield question if ident == question.id else replace(question, id=ident)

    def _has(self, ident: str) -> bool:
        wanted = np.uint64(_eight_bytes(ident))
        place = int(np.searchsorted(self._sorted, wanted))
        return place < len(self._sorted) and self._sorted[place] == wanted


def shard(questions: Sequence[GoldQuestion], i: int, n: int) -> list[GoldQuestion]:
    """Return shard `i` (from 1) of `n`: every `n`-th question, because many files are sorted by kind of question.

    Raises:
        SettingsError: `i` is not from 1 to `n`.
    """
    if not 1 <= i <= n:
        raise SettingsError(
            f"There is no shard {i} of {n}.", f"Choose a shard from 1 to {n}: ", Option("shard", f"1/{n}")
        )
    return list(questions[i - 1 :: n])


def _eight_bytes(ident: str) -> int:
    digest = hashlib.blake2b(ident.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _number(ident: str, seed: int) -> bytes:
    # an id from JSON may contain half of a surrogate pair
    return hashlib.sha256(f"{seed}\0{ident}".encode("utf-8", "surrogatepass")).digest()
