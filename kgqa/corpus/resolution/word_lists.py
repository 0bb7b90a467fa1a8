"""The lists of words that the rules look up, from `words.toml`."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any


def word_list(name: str) -> frozenset[str]:
    """Return the words or phrases of a list."""
    return _entries(_table()[name])


def word_sequence(name: str) -> tuple[str, ...]:
    """Return the words of a list, in order."""
    return tuple(str(_table()[name]).split())


def word_rows(name: str) -> list[frozenset[str]]:
    """Return the words or phrases of each row of a list of rows."""
    return [_entries(row) for row in _table()[name]]


def _entries(text: str) -> frozenset[str]:
    return frozenset(
        " ".join(part.split()) for part in (text.split("|") if "|" in text else text.split()) if part.strip()
    )


@lru_cache(1)
def _table() -> dict[str, Any]:
    return tomllib.loads(files("kgqa.corpus.resolution").joinpath("words.toml").read_text(encoding="utf-8"))
