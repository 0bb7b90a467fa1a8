"""Counts the names that contain each word, even if there are more words than fit in memory."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

MAX_WORDS_IN_MEMORY = 1_000_000


class WordCounts:
    """Counts words, and writes the counts to sorted files when there are too many words for memory.

    Args:
        folder: the folder for these files.
        max_words: the largest number of words in memory.
    """

    def __init__(self, folder: Path, *, max_words: int = MAX_WORDS_IN_MEMORY) -> None:
        self._folder = folder
        self._max_words = max_words
        self._counts: Counter[str] = Counter()
        self._files: list[Path] = []

    def add(self, words: Iterable[str]) -> None:
        """Count the words of one name. Each word must occur only once in `words`."""
        self._counts.update(words)
        if len(self._counts) > self._max_words:
            self._write()

    def sorted(self) -> Iterator[tuple[str, int]]:
        """Yield all words with their counts, alphabetically."""
        runs: list[Iterable[tuple[str, int]]] = [self._read(file) for file in self._files]
        runs.append(sorted(self._counts.items()))
        for word, found in groupby(heapq.merge(*runs), key=itemgetter(0)):
            yield word, sum(count for _, count in found)

    def _write(self) -> None:
        file = self._folder / f"words-{len(self._files)}"
        with file.open("w", encoding="utf-8") as lines:
            lines.writelines(f"{word} {count}\n" for word, count in sorted(self._counts.items()))
        self._files.append(file)
        self._counts.clear()

    @staticmethod
    def _read(file: Path) -> Iterator[tuple[str, int]]:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                word, _, count = line.rpartition(" ")
                yield word, int(count)


class PrefixLists:
    """Groups alphabetically sorted words by their prefixes.

    Args:
        sizes: the number of words to keep per prefix, by the length of the prefix. The most frequent words are kept.
    """

    def __init__(self, sizes: dict[int, int]) -> None:
        self._sizes = sizes
        self._open: dict[int, tuple[str, list[tuple[int, str]]]] = {}

    def add(self, word: str, names: int) -> Iterator[tuple[str, list[tuple[str, int]]]]:
        """Add a word; yield each prefix that no later word can have, with the words that begin with this prefix."""
        for length in self._sizes:
            prefix, words = self._open.get(length, ("", []))
            if words and word[:length] != prefix:
                yield self._close(length)
                words = []
            if len(word) >= length:
                self._open[length] = (word[:length], words)
                words.append((-names, word))
                if len(words) > 2 * self._sizes[length] + 1000:
                    words[:] = heapq.nsmallest(self._sizes[length], words)

    def rest(self) -> Iterator[tuple[str, list[tuple[str, int]]]]:
        """Yield each prefix that `add` has not yielded, with the words that begin with this prefix."""
        for length in list(self._open):
            yield self._close(length)

    def _close(self, length: int) -> tuple[str, list[tuple[str, int]]]:
        prefix, words = self._open.pop(length)
        return prefix, [(word, -negated) for negated, word in heapq.nsmallest(self._sizes[length], words)]
