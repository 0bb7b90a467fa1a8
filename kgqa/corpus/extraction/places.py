"""The place of a fact in a chunk: the sentence that holds its names."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from functools import cached_property

from kgqa.corpus.documents.document import Span
from kgqa.corpus.extraction.names import NameFinder, folded_name
from kgqa.corpus.extraction.sentences import sentence_spans

_MAX_PLACES = 50  # of one name that are looked at
_MOST = 0.6  # the share of a name's words that a sentence must contain if it does not contain the name


class PlaceFinder:
    """Finds names and facts in one text. Positions count code points in this text.

    Args:
        text: The text.
        borders: Offsets at which no sentence goes on.
    """

    def __init__(self, text: str, borders: Collection[int] = ()) -> None:
        self.text = text
        self._borders = borders
        self.names = NameFinder(text)

    @cached_property
    def sentences(self) -> list[Span]:
        return sentence_spans(self.text, self._borders)

    @cached_property
    def _begins(self) -> list[int]:
        return [begin for begin, _ in self.sentences]

    def name_place(self, name: str) -> Span | None:
        """Return where a name first stands; None if it does not."""
        return self.names.find(name)

    def fact_place(self, first: str, second: str, relation: str = "") -> Span | None:
        """Return the sentence that states a fact.

        That is the first sentence with both names, preferably one with the most words of the relation. If there is no
        such sentence, it is the one with the second name, or with most of its words, and then the one with the first
        name. None if there is no such sentence.
        """
        with_first, with_second = self._sentences_with(first), self._sentences_with(second)
        if both := sorted(with_first & with_second):
            return self.sentences[both[0] if len(both) == 1 else max(both, key=lambda at: self._share(at, relation))]
        if with_second:
            return self.sentences[min(with_second)]
        shares = [self._share(at, second) + (at in with_first) / 10 for at in range(len(self.sentences))]
        if shares and max(shares) >= _MOST:
            return self.sentences[shares.index(max(shares))]
        return self.sentences[min(with_first)] if with_first else None

    def _sentences_with(self, name: str) -> set[int]:
        found: set[int] = set()
        for number, (begin, end) in enumerate(self.names.places(name)):
            at = bisect_right(self._begins, begin) - 1
            if at >= 0 and end <= self.sentences[at][1]:
                found.add(at)
            if number >= _MAX_PLACES:
                break
        return found

    def _share(self, sentence: int, words: str) -> float:
        """Return the share of some words that a sentence contains."""
        wanted = folded_name(words).split()
        return sum(word in self._words[sentence] for word in wanted) / max(1, len(wanted))

    @cached_property
    def _words(self) -> list[set[str]]:
        """The words of each sentence."""
        return [set(folded_name(self.text[begin:end]).split()) for begin, end in self.sentences]
