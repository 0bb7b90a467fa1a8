"""The word lists by which questions are read, and patterns that contain them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from kgqa.rank.lexical import stem


@cache
def word_table(name: str, language: str = "") -> Mapping[str, Any]:
    """Return a table of `words.toml`; with a language, one that this language has."""
    tables = tomllib.loads(files("kgqa.search").joinpath("words.toml").read_text(encoding="utf-8"))
    table: Mapping[str, Any] = tables[language][name] if language else tables[name]
    return table


@cache
def word_list(name: str, language: str = "en") -> tuple[str, ...]:
    """Return the words of a list, or the words to which a table gives a meaning, in the order of the file."""
    words = word_table(language)[name]
    return tuple(words.split() if isinstance(words, str) else words)


@cache
def stem_list(name: str) -> tuple[str, ...]:
    """Return the stems of the words of an English list."""
    return tuple(map(stem, word_list(name)))


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of all words of a text, stopwords included."""
    return tuple(stem(word) for word in re.findall(r"[^\W_]+", text.lower()))


@cache
def pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression for any case, in which `{name}` stands for any word of an English list."""
    return re.compile(re.sub(r"\{([a-z_]+)\}", lambda found: _any_of(word_list(found[1])), text), re.IGNORECASE)


def _any_of(words: tuple[str, ...]) -> str:
    longest_first = sorted(words, key=len, reverse=True)
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in longest_first) + ")"
