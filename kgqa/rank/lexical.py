"""BM25 over a small pool of candidates (thesis, section 2.9), with Lucene's idf, a term weight that is never negative.

No index is built, because each pool is ranked only once; only the terms of the question are counted. The published
("okapi") idf is negative for a term in more than half of the texts, and useless for one or two texts. The rank-bm25
library, which uses it, is available for comparison with published results.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import Literal

import numpy as np

BM25Variant = Literal["own", "okapi"]

K1 = 1.5
B = 0.75
SMALLEST_OKAPI_POOL = 3
_MAX_CACHED_LENGTH = 500
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
    """Remove the ending of an English plural or verb (-s, -es, -ed, -ing), if at least three letters remain."""
    for ending, replacement in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) + len(replacement) >= 3 and not word.endswith("ss"):
            return word[: -len(ending)] + replacement
    return word


def terms(text: str) -> list[str]:
    """Return the stems of a text's content words in lower case; dotted names and camelCase words are split."""
    return list(_cached_terms(text) if len(text) <= _MAX_CACHED_LENGTH else _split(text))


def bm25(query: str, texts: Sequence[str], *, variant: BM25Variant = "own") -> np.ndarray:
    """Score texts for a query by BM25 (Robertson & Zaragoza 2009); return float64 of shape (len(texts),).

    k1 is 1.5 and b is 0.75. A term that occurs twice in the query counts once. The weight of a term that occurs in n of
    N texts is ln(1 + (N - n + 0.5) / (n + 0.5)).

    Args:
        query: The text with which the pool is compared.
        texts: The pool of texts to score.
        variant: "own" for the implementation of this module; "okapi" for the rank-bm25 library, as in published
            results. The library gives wrong scores for pools of one or two texts (division by zero, negative scores,
            0 for a match), so this module always scores such pools.
    """
    wanted = list(dict.fromkeys(terms(query)))
    bags = [terms(text) for text in texts]
    if variant == "okapi" and len(bags) >= SMALLEST_OKAPI_POOL and wanted and any(bags):
        from rank_bm25 import BM25Okapi

        scores: np.ndarray = BM25Okapi(bags, k1=K1, b=B).get_scores(wanted)
        return scores
    term_number = {term: i for i, term in enumerate(wanted)}
    lengths = np.fromiter(map(len, bags), dtype=np.intp, count=len(bags))
    numbers = map(term_number.get, chain.from_iterable(bags), repeat(-1))
    found = np.fromiter(numbers, dtype=np.intp, count=lengths.sum())
    hits = np.flatnonzero(found >= 0)
    if not len(hits):
        return np.zeros(len(bags))
    texts_of_words = np.repeat(np.arange(len(bags)), lengths)
    # one cell for each pair of a term and a text that contains the term, ordered by term
    cells, counts = np.unique(found[hits] * len(bags) + texts_of_words[hits], return_counts=True)
    term, text = np.divmod(cells, len(bags))
    holding = np.bincount(term, minlength=len(wanted))
    weights = np.log(1 + (len(bags) - holding + 0.5) / (holding + 0.5))
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    parts = weights[term] * counts * (K1 + 1) / (counts + norm[text])
    return np.bincount(text, weights=parts, minlength=len(bags))


def _split(text: str) -> tuple[str, ...]:
    spaced = text if text.islower() else _CAMEL.sub(" ", text)
    return tuple(filter(None, map(_term, _SPLIT.findall(spaced))))


# the same paths occur in many questions
_cached_terms = lru_cache(maxsize=1 << 15)(_split)


@lru_cache(maxsize=1 << 17)
def _term(word: str) -> str:
    """Return a word's stem in lower case, or "" if the word is a stopword."""
    lower = word.lower()
    return "" if lower in STOPWORDS else stem(lower)
