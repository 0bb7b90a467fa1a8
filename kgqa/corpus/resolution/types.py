"""Which types two names of one entity may have."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from kgqa.corpus.items import normal_name
from kgqa.corpus.resolution.word_lists import word_rows


@lru_cache(1 << 14)
def types_agree(one: str, other: str) -> bool:
    """Return whether two types may be those of one entity; an empty type agrees only with itself.

    They are equal, or stand in one row of `types` in `words.toml`.
    """
    one, other = normal_name(one), normal_name(other)
    rows = _rows()
    return one == other or bool(rows.get(one, frozenset()) & rows.get(other, frozenset()))


@lru_cache(1)
def _rows() -> dict[str, frozenset[int]]:
    """Return the numbers of the rows that contain each type."""
    found: dict[str, set[int]] = defaultdict(set)
    for number, row in enumerate(word_rows("types")):
        for type_ in row:
            found[type_].add(number)
    return {type_: frozenset(numbers) for type_, numbers in found.items()}
