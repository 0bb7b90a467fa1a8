"""Samples and parts of question sets that are the same on every machine and under every version of Python.

What is drawn depends on seed and ids alone: each question has the SHA-256 of both for a number, and those with the
smallest numbers are the sample. So a sample of 100 is within that of 200, and the order of the file does not matter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from kgqa.errors import SettingsError
from kgqa.evaluation.questions import GoldQuestion


def sample(questions: Sequence[GoldQuestion], n: int, seed: int = 0) -> list[GoldQuestion]:
    """`n` of the questions, or all if there are fewer, in the order they came in.

    Raises:
        SettingsError: `n` is less than 1.
    """
    if n < 1:
        raise SettingsError(f"A sample has at least one question, not {n}.")
    ranked = sorted(range(len(questions)), key=lambda place: (_number(questions[place].id, seed), place))
    return [questions[place] for place in sorted(ranked[:n])]


def shard(questions: Sequence[GoldQuestion], i: int, n: int) -> list[GoldQuestion]:
    """The `i`-th (from 1) of `n` parts: every `n`-th question, so that each part has of all that a file is sorted by.

    Raises:
        SettingsError: there is no such part.
    """
    if not 1 <= i <= n:
        raise SettingsError(f"There is no part {i} of {n}: parts are counted from 1.")
    return list(questions[i - 1 :: n])


def _number(ident: str, seed: int) -> bytes:
    # an id read from JSON may hold half a character
    return hashlib.sha256(f"{seed}\0{ident}".encode("utf-8", "surrogatepass")).digest()
