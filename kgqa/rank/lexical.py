"""BM25 over a small pool of candidates (thesis, section 2.9), with the idf of Lucene, which never turns negative.

A pool is ranked once and thrown away, so nothing is indexed: only the question's own terms are counted. The idf as
published turns negative for a term in more than half of the texts, and of two texts or fewer it makes nothing of use;
it stands here to compare with, and so does the rank-bm25 library.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Literal

import numpy as np

Idf = Literal["lucene", "okapi"]
BM25Variant = Literal["own", "okapi"]

K1 = 1.5
B = 0.75
EPSILON = 0.25
SMALLEST_OKAPI_POOL = 3
_REMEMBERED_LENGTH = 500
_SPLIT = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
STOPWORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "being",
        "by",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "him",
        "his",
        "how",
        "i",
        "in",
        "into",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "our",
        "she",
        "so",
        "that",
        "the",
        "their",
        "them",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)


_ENDINGS = (
    ("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"),
    ("ing", ""), ("ed", ""), ("es", "e"), ("s", ""),
)  # fmt: skip


def stem(word: str) -> str:
    """A light English stemmer: plurals and the commonest verb endings, never below three letters."""
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(replacement) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + replacement
    return word


def terms(text: str) -> list[str]:
    """Lower-case stems of the content words of a text; dotted names and camelCase are split."""
    return list(_terms(text))


def bm25(query: str, texts: Sequence[str], *, idf: Idf = "lucene", variant: BM25Variant = "own") -> np.ndarray:
    """BM25 scores (Robertson & Zaragoza 2009) of texts for a query, float64 of shape (len(texts),).

    k1 = 1.5, b = 0.75; a term that the query repeats counts once.

    Args:
        idf: see `bm25_of_terms`.
        variant: "okapi" leaves pools of three texts and more to the rank-bm25 library, for published results; smaller
            ones it scores wrongly (a division by zero, negative scores, 0 for a match), so they stay here.
    """
    wanted = list(dict.fromkeys(_terms(query)))
    bags = [_terms(text) for text in texts]
    if variant == "okapi" and len(bags) >= SMALLEST_OKAPI_POOL and wanted and any(bags):
        from rank_bm25 import BM25Okapi

        return BM25Okapi(bags, k1=K1, b=B, epsilon=EPSILON).get_scores(wanted)
    return bm25_of_terms(wanted, bags, idf=idf)


def bm25_of_terms(wanted: Sequence[str], bags: Sequence[Sequence[str]], *, idf: Idf = "lucene") -> np.ndarray:
    """As `bm25`, for the distinct terms of a query and texts that are split into terms already.

    Args:
        idf: of a term t in n of N texts; "lucene": ln(1 + (N - n + 0.5) / (n + 0.5)); "okapi": ln((N - n + 0.5) /
            (n + 0.5)), and where that is negative a quarter of its mean over all terms of the pool, as rank-bm25 has
            it. That mean may be negative too.
    """
    place = {term: i for i, term in enumerate(wanted)}
    lengths = np.fromiter(map(len, bags), dtype=np.intp, count=len(bags))
    found = np.fromiter(map(place.get, chain.from_iterable(bags), repeat(-1)), dtype=np.intp, count=lengths.sum())
    hits = np.flatnonzero(found >= 0)
    if not len(hits):
        return np.zeros(len(bags))
    texts_of_words = np.repeat(np.arange(len(bags)), lengths)
    # which term, in which text, how often: only what occurs, in the order of the terms
    cells, counts = np.unique(found[hits] * len(bags) + texts_of_words[hits], return_counts=True)
    term, text = np.divmod(cells, len(bags))
    holding = np.bincount(term, minlength=len(wanted))
    if idf == "okapi":
        weights = _okapi_idf(holding, bags)
    else:
        weights = np.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    parts = weights[term] * counts * (K1 + 1) / (counts + norm[text])
    return np.bincount(text, weights=parts, minlength=len(bags))


def _okapi_idf(holding: np.ndarray, bags: Sequence[Sequence[str]]) -> np.ndarray:
    every = Counter(chain.from_iterable(map(set, bags)))
    pool = np.fromiter(every.values(), dtype=np.float64, count=len(every))
    floor = EPSILON * np.log((len(bags) - pool + 0.5) / (pool + 0.5)).mean()
    weights = np.log((len(bags) - holding + 0.5) / (holding + 0.5))
    return np.where(weights < 0, floor, weights)


def _terms(text: str) -> tuple[str, ...]:
    if len(text) > _REMEMBERED_LENGTH:
        return _split(text, _term.__wrapped__)
    return _remembered(text)


@lru_cache(maxsize=1 << 15)
def _remembered(text: str) -> tuple[str, ...]:
    """The same paths come again from question to question."""
    return _split(text, _term)


def _split(text: str, term: Callable[[str], str]) -> tuple[str, ...]:
    spaced = text if text.islower() else _CAMEL.sub(" ", text)
    return tuple(each for word in _SPLIT.findall(spaced) if (each := term(word)))


@lru_cache(maxsize=1 << 16)
def _term(word: str) -> str:
    """The term of a word, empty for a stopword."""
    lower = word.lower()
    return "" if lower in STOPWORDS else stem(lower)
