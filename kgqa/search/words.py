"""The word lists by which questions are read, and patterns that contain them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from kgqa.rank.lexical import stem

_IN_ANY_CASE = str.maketrans("ıİſ", "iis")


@cache
def _all_tables() -> Mapping[str, Any]:
    return tomllib.loads(files("kgqa.search").joinpath("words.toml").read_text(encoding="utf-8"))


def word_table(name: str, language: str = "") -> Any:
    """Return a table of `words.toml`, or the tables of one name; with a language, one that this language has."""
    return _all_tables()[language][name] if language else _all_tables()[name]


@cache
def word_list(name: str, language: str = "en") -> tuple[str, ...]:
    """Return the words of a list, or the words to which a table gives a meaning, in the order of the file."""
    words = word_table(language)[name]
    return tuple(words.split() if isinstance(words, str) else words)


def meaning(table: str, words: str) -> Any:
    """Return what an English table says about a word or phrase, in any case and spacing."""
    return word_table(table, "en")[folded(words)]


def folded(words: str) -> str:
    """Return words in lower case, with the letters that equal others in any case (ı, İ, ſ) as these."""
    return " ".join(words.translate(_IN_ANY_CASE).lower().split())


@cache
def stem_list(name: str) -> tuple[str, ...]:
    """Return the stems of the words of an English list."""
    return tuple(map(stem, word_list(name)))


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of all words of a text, stopwords included."""
    return tuple(stem(word) for word in re.findall(r"[^\W_]+", text.lower()))


@cache
def pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression for any case.

    `{name}` in it stands for an English pattern, or for any word of an English list.
    """
    return re.compile(_expanded(text), re.IGNORECASE)


def _expanded(text: str) -> str:
    return re.sub(r"\{([a-z_]+)\}", lambda found: _named(found[1]), "".join(map(str.strip, text.splitlines())))


def _named(name: str) -> str:
    patterns = word_table("patterns", "en")
    if name in patterns:
        return _expanded(patterns[name])
    longest_first = sorted(word_list(name), key=len, reverse=True)
    return "(?:" + "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in longest_first) + ")"
