"""Samples and parts of question sets that are the same on every machine and under every version of Python.

What is drawn depends on seed and ids alone: each question has the SHA-256 of both for a number, and those with the
smallest numbers are the sample. So a sample of 100 is within that of 200, and the order of the file does not matter.
"""

from __future__ import annotations

import hashlib
import heapq
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.questions import GoldQuestion


def sample(questions: Sequence[GoldQuestion], n: int, seed: int = 0) -> list[GoldQuestion]:
    """`n` of the questions, or all if there are fewer, in the order they came in.

    Raises:
        SettingsError: `n` is less than 1.
    """
    return sample_of(questions, n, seed)


def sample_of(questions: Iterable[GoldQuestion], n: int, seed: int = 0) -> list[GoldQuestion]:
    """As `sample`, of questions that pass by: no more than `n` are kept. Raises as it does."""
    if n < 1:
        raise SettingsError(f"A sample has at least one question, not {n}.")
    ranked = ((_number(question.id, seed), place, question) for place, question in enumerate(questions))
    return [question for *_, question in sorted(heapq.nsmallest(n, ranked), key=lambda item: item[1])]


class Ids:
    """The ids of questions that pass by, eight bytes each, and which of them came more than once."""

    def __init__(self) -> None:
        self._noted = array("Q")
        self._sorted = np.empty(0, dtype=np.uint64)

    def note(self, question: GoldQuestion) -> None:
        self._noted.append(_eight_bytes(question.id))

    def noted(self, questions: Iterable[GoldQuestion]) -> Iterator[GoldQuestion]:
        """The questions, each noted as it passes by."""
        for question in questions:
            self.note(question)
            yield question

    def repeated(self) -> int:
        """How many questions had an id that came before."""
        if len(self._sorted) != len(self._noted):
            self._sorted = np.sort(np.frombuffer(self._noted, dtype=np.uint64))
        return int((self._sorted[1:] == self._sorted[:-1]).sum())

    def made_distinct(self, questions: Iterable[GoldQuestion]) -> Iterator[GoldQuestion]:
        """The same questions again as `run_questions.distinct` gives them: a number added to an id that came before."""
        self.repeated()
        several = set(self._sorted[1:][self._sorted[1:] == self._sorted[:-1]].tolist())
        seen: Counter[str] = Counter()
        last: dict[str, int] = {}
        for question in questions:
            if _eight_bytes(question.id) not in several:
                yield question
                continue
            seen[question.id] += 1
            number = max(seen[question.id], last.get(question.id, 0) + 1)
            if number == 1:
                last[question.id] = 1
                yield question
                continue
            while self._has(f"{question.id}#{number}"):
                number += 1
            last[question.id] = number
            yield replace(question, id=f"{question.id}#{number}")

    def _has(self, ident: str) -> bool:
        wanted = np.uint64(_eight_bytes(ident))
        place = int(np.searchsorted(self._sorted, wanted))
        return place < len(self._sorted) and self._sorted[place] == wanted


def shard(questions: Sequence[GoldQuestion], i: int, n: int) -> list[GoldQuestion]:
    """The `i`-th (from 1) of `n` parts: every `n`-th question, so that each part has of all that a file is sorted by.

    Raises:
        SettingsError: there is no such part.
    """
    if not 1 <= i <= n:
        raise SettingsError(f"There is no part {i} of {n}: parts are counted from 1.")
    return list(questions[i - 1 :: n])


def _eight_bytes(ident: str) -> int:
    digest = hashlib.blake2b(ident.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _number(ident: str, seed: int) -> bytes:
    # an id read from JSON may hold half a character
    return hashlib.sha256(f"{seed}\0{ident}".encode("utf-8", "surrogatepass")).digest()
