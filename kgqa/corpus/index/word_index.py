"""BM25 over all texts of one kind (Robertson & Zaragoza 2009), on an index that is kept on disk (bm25s).

Words are those of `kgqa.rank.lexical`. Texts are compared without accents; scripts without spaces between words are
split into pairs of characters.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from kgqa.corpus.index.array_folder import ArrayFolder, ArrayWriter, DamagedIndex
from kgqa.model import PieceKind
from kgqa.rank.lexical import K1, B, terms

# Thai to Khmer, Japanese, Chinese, Korean
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\U00020000-\U0003ffff]+"
)


class _WithoutMarks(dict[int, int | None]):
    """A table for `str.translate` that removes accents, vowel signs and other marks."""

    def __missing__(self, char: int) -> int | None:
        self[char] = None if unicodedata.category(chr(char)).startswith("M") else char
        return self[char]


_WITHOUT_MARKS = _WithoutMarks()


def search_terms(text: str) -> list[str]:
    """Return the terms by which a text is found, in order.

    Besides the words of `kgqa.rank.lexical.terms`: characters of scripts without spaces one by one and in pairs.
    """
    if text.isascii():
        return terms(text)
    folded = unicodedata.normalize("NFKD", text).translate(_WITHOUT_MARKS)
    found: list[str] = []
    for word in terms(unicodedata.normalize("NFKC", folded)):
        unspaced = _UNSPACED.search(word)
        found += _characters(word) if unspaced else [word]
    return found


def _characters(word: str) -> list[str]:
    """Split a word into its runs of spaced letters, its unspaced characters, and the pairs of these."""
    found: list[str] = []
    at = 0
    for run in _UNSPACED.finditer(word):
        found += [word[at : run.start()]] if run.start() > at else []
        found += [*run[0], *map("".join, pairwise(run[0]))]
        at = run.end()
    return found + ([word[at:]] if at < len(word) else [])


class WordIndexBuilder:
    """Collects the texts of one kind, in the order of their rows, and writes their index."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[np.ndarray] = []

    def add(self, text: str) -> None:
        numbers = self._numbers
        found = [numbers.setdefault(term, len(numbers)) for term in search_terms(text)]
        self._texts.append(np.array(found, dtype=np.int32))

    def write(self, writer: ArrayWriter, kind: PieceKind) -> None:
        """Write the index; terms are numbered in their sorted order, so that equal texts give equal files."""
        words = sorted(self._numbers)
        numbers = np.empty(len(words), dtype=np.int32)
        numbers[[self._numbers[word] for word in words]] = np.arange(len(words), dtype=np.int32)
        scores, indices, starts = _weights([numbers[each] for each in self._texts], len(words))
        writer.add_texts(f"{kind}.words", words)
        writer.add(f"{kind}.words.scores", scores)
        writer.add(f"{kind}.words.texts", indices)
        writer.add(f"{kind}.words.starts", starts)
        writer.add(f"{kind}.words.count", np.array([len(self._texts)], dtype=np.int64))


def _weights(texts: Sequence[np.ndarray], words: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weight of each word in each text that contains it, by word: weights, texts, first weight of a word."""
    if not words:
        return np.empty(0, np.float32), np.empty(0, np.int32), np.zeros(1, np.int64)
    import bm25s

    model = bm25s.BM25(k1=K1, b=B, method="lucene")
    vocabulary = {str(number): number for number in range(words)}
    model.index(([each.tolist() for each in texts], vocabulary), create_empty_token=False, show_progress=False)
    found = model.scores
    return found["data"].astype(np.float32), found["indices"].astype(np.int32), found["indptr"].astype(np.int64)


class WordIndex:
    """The BM25 index of one kind.

    Raises:
        ValueError: The files are not what `WordIndexBuilder` writes.
    """

    def __init__(self, folder: ArrayFolder, kind: PieceKind) -> None:
        self._words = folder.texts(f"{kind}.words")
        self._scores = folder.array(f"{kind}.words.scores", "float32")
        self._texts = folder.array(f"{kind}.words.texts", "int32")
        self._starts = folder.array(f"{kind}.words.starts", "int64")
        count = folder.array(f"{kind}.words.count", "int64")
        if len(count) != 1 or not 0 <= count[0] < 1 << 31 or len(self._scores) != len(self._texts):
            raise ValueError(f"the index of words of the kind {kind} is damaged")
        if (
            len(self._starts) != len(self._words) + 1
            or self._starts[0] != 0
            or self._starts[-1] != len(self._scores)
            or (np.diff(self._starts) < 0).any()
        ):
            raise ValueError(f"the words of the kind {kind} are damaged")
        self._count = int(count[0])
        self._find = lru_cache(1 << 14)(self._words.find)

    def __len__(self) -> int:
        return self._count

    def scores(self, query: str) -> np.ndarray:
        """Return the score of every row for a query, float32 of shape (len(self),). A repeated word counts once.

        Raises:
            DamagedIndex: The index is damaged.
        """
        found = np.zeros(self._count, dtype=np.float32)
        try:
            for word in dict.fromkeys(search_terms(query)):
                at = self._find(word)
                if at is not None:
                    part = slice(self._starts[at], self._starts[at + 1])
                    found[self._texts[part]] += self._scores[part]  # a text stands once in the list of a word
        except IndexError as error:
            raise DamagedIndex("a word has a text that is not there") from error
        return found

    def score_of(self, query: str, text: str) -> float:
        """Return the score that a text of average length would have for a query, if the index contained it."""
        counts = Counter(search_terms(text))
        score = 0.0
        for word in dict.fromkeys(search_terms(query)):
            if count := counts[word]:
                at = self._find(word)
                having = 0 if at is None else int(self._starts[at + 1] - self._starts[at])
                weight = math.log(1 + (self._count - having + 0.5) / (having + 0.5))
                score += weight * count / (count + K1)
        return score
