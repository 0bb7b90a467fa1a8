"""Splits the text of a document into chunks of limited size, at the ends of sections, paragraphs or sentences.

Where a chunk ends depends on the text nearby: of the best places in its last part, the one with the smallest hash is
taken. After a change in the middle of a document, the splits before and after the change therefore agree again a few
chunks later, and the replies of models for the chunks with unchanged text are found again.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Literal

from kgqa.corpus.documents.document import Document
from kgqa.corpus.documents.sentences import Cut, Strength, grapheme_cut, sentence_cuts, word_cuts
from kgqa.corpus.items import ChunkItem
from kgqa.errors import SettingsError

CountTokens = Callable[[Sequence[str]], list[int]]
"""Counts the tokens of texts, without the marks that a model adds at their ends."""
MIN_SIZE = 20
MIN_FILL = 0.75
"""The part of a chunk's size after which it may end at a sentence; it may end earlier at a paragraph or section."""
MIN_FILL_PARAGRAPH = 0.6
_BATCH = 256
_MAX_CHARACTERS = 6
"""Characters of a token in most texts."""
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """How long chunks are. `overlap`: at most so much of the end of a chunk is repeated, in whole sentences."""

    size: int
    overlap: int = 0
    unit: Literal["tokens", "characters"] = "tokens"

    def __post_init__(self) -> None:
        if self.unit not in ("tokens", "characters"):
            raise SettingsError(f"Chunks are measured in tokens or characters, not in {self.unit!r}.")
        if self.size < MIN_SIZE:
            raise SettingsError(f"A chunk needs at least {MIN_SIZE} {self.unit}.")
        if not 0 <= self.overlap <= self.size // 2:
            raise SettingsError(f"The overlap of chunks must be from 0 to half of their size, {self.size // 2}.")


PRESETS = {"1024/20": ChunkSize(1024, 20), "400/50": ChunkSize(400, 50)}


def split_chunks(
    document: Document, size: ChunkSize, *, count_tokens: CountTokens | None = None, language: str = "en"
) -> list[ChunkItem]:
    """Split a document into chunks.

    The chunks contain all text except white space. They are cut within a sentence only if the sentence is longer than a
    chunk.

    Args:
        document: The document.
        size: The largest size of a chunk.
        count_tokens: Counts tokens; needed if the unit is tokens.
        language: Language code for the abbreviations after which no sentence ends.
    """
    return next(split_documents([document], size, count_tokens=count_tokens, language=language))


def split_documents(
    documents: Iterable[Document], size: ChunkSize, *, count_tokens: CountTokens | None = None, language: str = "en"
) -> Iterator[list[ChunkItem]]:
    """Yield the chunks of each document, as `split_chunks` does; tokens of many documents are counted together."""
    measure = _characters if size.unit == "characters" else count_tokens
    if measure is None:
        raise SettingsError("Chunks measured in tokens need an embedding model.", "Measure them in characters.")
    rest = iter(documents)
    while batch := list(islice(rest, _BATCH)):
        for document, spans in zip(batch, _split_batch(batch, size, measure, language)):
            yield [
                ChunkItem(document.iri, begin, end, document.text[begin:end], document.page(begin))
                for begin, end in spans
            ]


def _characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def _split_batch(
    documents: Sequence[Document], size: ChunkSize, measure: CountTokens, language: str
) -> list[list[tuple[int, int]]]:
    trimmed = [_trim(document.text, 0, len(document.text)) for document in documents]
    fits = _fit([document.text for document in documents], trimmed, size, measure)
    return [
        ([span] if span[0] < span[1] else []) if whole else _Splitter(document, size, measure, language).spans(*span)
        for document, span, whole in zip(documents, trimmed, fits)
    ]


def _fit(texts: Sequence[str], spans: Sequence[tuple[int, int]], size: ChunkSize, measure: CountTokens) -> list[bool]:
    """Return which of `text[begin:end]` are not longer than a chunk."""
    fits = [
        # each token of ASCII text has at least one character
        end - begin <= size.size and (size.unit == "characters" or text.isascii())
        for text, (begin, end) in zip(texts, spans)
    ]
    # a text that is much longer is split at once, with the same result
    limit = _MAX_CHARACTERS * size.size if size.unit == "tokens" else 0
    asked = [i for i, (begin, end) in enumerate(spans) if not fits[i] and end - begin < limit]
    for i, count in zip(asked, measure([texts[i][slice(*spans[i])] for i in asked]) if asked else ()):
        fits[i] = count <= size.size
    return fits


def _trim(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return the span without white space at its ends; an empty span if there is nothing else."""
    found = _BLANK.match(text, begin, end)
    begin = found.end() if found else begin
    while end > begin and text[end - 1].isspace():
        end -= 1
    return begin, end


class _Splitter:
    """Splits one document."""

    def __init__(self, document: Document, size: ChunkSize, measure: CountTokens, language: str) -> None:
        self._document = document
        self._text = document.text
        self._size = size
        self._measure = measure
        self._language = language

    def spans(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the spans of the chunks of `text[begin:end]`, which is longer than one chunk."""
        cuts, lengths = self._segments(begin, end)
        spans = self._pack(cuts, lengths)
        if self._size.unit == "characters":
            return spans
        found: list[tuple[int, int]] = []
        for span in self._checked(spans):
            if found and span[1] <= found[-1][1]:  # a part of a chunk may be only the overlap
                continue
            while found and span[0] <= found[-1][0]:  # the overlap may contain the last parts of the chunk before
                found.pop()
            found.append(span)
        return found

    def _segments(self, begin: int, end: int) -> tuple[list[Cut], list[int]]:
        """Return the cuts, the two ends included, and the lengths of the segments between them."""
        cuts = [(begin, Strength.SECTION), *self._cuts(begin, end), (end, Strength.SECTION)]
        lengths = self._lengths(cuts)
        while True:
            parts = {
                number: [cuts[number], *self._finer_cuts(cuts[number][0], cuts[number + 1][0]), cuts[number + 1]]
                for number, length in enumerate(lengths)
                if length > self._size.size and cuts[number + 1][0] - cuts[number][0] > 1
            }
            if not parts:
                return cuts, lengths
            counted = iter(self._lengths(*parts.values()))
            cuts, lengths = (
                [cut for number, cut in enumerate(cuts) for cut in parts.get(number, [cut, cut])[:-1]],
                [
                    each
                    for number, length in enumerate(lengths)
                    for each in (islice(counted, len(parts[number]) - 1) if number in parts else [length])
                ],
            )

    def _finer_cuts(self, begin: int, end: int) -> list[Cut]:
        """Return the cuts in a segment that is longer than a chunk: between words, or in the middle of a word."""
        middle = begin + min((end - begin) // 2, self._size.size)
        return list(word_cuts(self._text, begin, end)) or [
            (grapheme_cut(self._text, begin, end, middle), Strength.GRAPHEME)
        ]

    def _lengths(self, *cuts: Sequence[Cut]) -> list[int]:
        """Return the lengths of the segments between cuts, for each sequence of cuts."""
        ends = [(begin, end) for each in cuts for (begin, _), (end, _) in pairwise(each)]
        if self._size.unit == "characters":
            return [end - begin for begin, end in ends]
        return self._measure([self._text[begin:end] for begin, end in ends])

    def _cuts(self, begin: int, end: int) -> list[Cut]:
        """Return the cuts within the text; of several at one place, the strongest."""
        strengths: dict[int, Strength] = {}
        after_heading = set()
        for element in self._document.elements:
            if element.kind == "heading":
                strengths[element.begin] = Strength.SECTION
                after_heading.add(_trim(self._text, element.end, end)[0])
            elif element.kind != "link":
                strengths[element.begin] = max(Strength.ITEM, strengths.get(element.begin, Strength.ITEM))
        at = begin
        for place in [*sorted(strengths), end]:
            if at < place:
                for cut, strength in sentence_cuts(self._text, at, min(place, end), self._language):
                    strengths[cut] = max(strength, strengths.get(cut, strength))
            at = max(at, place)
        for place in after_heading:
            if strengths.get(place) != Strength.SECTION:
                strengths[place] = Strength.LINE
        cuts: list[Cut] = []
        after = end
        for place in sorted(strengths, reverse=True):
            blank = _BLANK.match(self._text, place, end)
            if begin < place < end and (
                blank is None or blank.end() < after
            ):  # white space belongs to what is before it
                cuts.append((place, strengths[place]))
                after = place
        return cuts[::-1]

    def _pack(self, cuts: Sequence[Cut], lengths: Sequence[int]) -> list[tuple[int, int]]:
        totals = [0, *accumulate(lengths)]
        spans = []
        first, last = 0, len(lengths)
        while first < last:
            full = bisect_right(totals, totals[first] + self._size.size) - 1
            stop = last if full >= last else self._best_cut(cuts, totals, first, max(full, first + 1))
            span = _trim(self._text, cuts[first][0], cuts[stop][0])
            if span[0] < span[1]:
                spans.append(span)
            first = stop if stop == last else self._overlap_start(cuts, totals, first, stop)
        return spans

    def _best_cut(self, cuts: Sequence[Cut], totals: Sequence[int], first: int, full: int) -> int:
        """Return the number of the cut at which a chunk ends that begins at cut `first` and may reach cut `full`."""
        best, best_rank = full, (-1, 0, 0)
        for number in range(full, first, -1):
            fill = (totals[number] - totals[first]) / self._size.size
            if fill < MIN_FILL_PARAGRAPH:
                break
            at, strength = cuts[number]
            if fill < MIN_FILL and strength < Strength.PARAGRAPH:
                continue
            rank = (int(strength), -self._hash(at, cuts[number + 1][0]), number)
            if rank > best_rank:
                best, best_rank = number, rank
        return best

    def _hash(self, begin: int, end: int) -> int:
        return zlib.crc32(self._text[begin : min(end, begin + 100)].encode("utf-8", "surrogatepass"))

    def _overlap_start(self, cuts: Sequence[Cut], totals: Sequence[int], first: int, stop: int) -> int:
        """Return the number of the cut at which the chunk after cut `stop` begins."""
        start = stop
        if cuts[stop][1] == Strength.SECTION:
            return start
        # the next chunk must have room for a segment of its own
        room = min(self._size.overlap, self._size.size - (totals[stop + 1] - totals[stop]))
        while start - 1 > first and totals[stop] - totals[start - 1] <= room:
            start -= 1
        return start

    def _checked(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Split the chunks that have more tokens than their sentences together, which some tokenizers produce."""
        counts = self._measure([self._text[begin:end] for begin, end in spans]) if spans else []
        checked = []
        for (begin, end), count in zip(spans, counts):
            if count <= self._size.size or end - begin < 2:
                checked.append((begin, end))
                continue
            middle = (begin + end) // 2
            cuts = [at for at, _ in word_cuts(self._text, begin, end)]
            cut = min(cuts, key=lambda at: abs(at - middle)) if cuts else grapheme_cut(self._text, begin, end, middle)
            checked += self._checked([_trim(self._text, begin, cut), _trim(self._text, cut, end)])
        return checked
