"""Counts in how many names each word stands, for more words than memory should hold."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

MAX_WORDS = 1_000_000


class WordCounts:
    """Counts words; whenever it has many, it writes them to a sorted file and begins anew.

    Args:
        folder: where those files are made.
        most: words to hold in memory.
    """

    def __init__(self, folder: Path, *, most: int = MAX_WORDS) -> None:
        self._folder = folder
        self._most = most
        self._counts: Counter[str] = Counter()
        self._files: list[Path] = []

    def add(self, words: Iterable[str]) -> None:
        """Count the words of one name, each once."""
        self._counts.update(words)
        if len(self._counts) > self._most:
            self._write()

    def sorted(self) -> Iterator[tuple[str, int]]:
        """All words with their counts, by letters."""
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


class Beginnings:
    """Collects words that come sorted by letters under their beginnings.

    Args:
        listed: for each length of a beginning how many of its words are kept, the most frequent ones.
    """

    def __init__(self, listed: dict[int, int]) -> None:
        self._listed = listed
        self._open: dict[int, tuple[str, list[tuple[int, str]]]] = {}

    def add(self, word: str, names: int) -> Iterator[tuple[str, list[tuple[str, int]]]]:
        """Take one word; gives the beginnings that are done with it, since no later word begins so."""
        for length in self._listed:
            beginning, words = self._open.get(length, ("", []))
            if words and word[:length] != beginning:
                yield self._done(length)
                words = []
            if len(word) >= length:
                self._open[length] = (word[:length], words)
                words.append((-names, word))
                if len(words) > 2 * self._listed[length] + 1000:
                    words[:] = heapq.nsmallest(self._listed[length], words)

    def rest(self) -> Iterator[tuple[str, list[tuple[str, int]]]]:
        """The beginnings that are still open."""
        for length in list(self._open):
            yield self._done(length)

    def _done(self, length: int) -> tuple[str, list[tuple[str, int]]]:
        beginning, words = self._open.pop(length)
        return beginning, [(word, -less) for less, word in heapq.nsmallest(self._listed[length], words)]
