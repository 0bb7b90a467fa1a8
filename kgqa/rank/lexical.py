"""BM25 over a small pool of candidates (thesis, section 2.9), with the idf of Lucene, which never turns negative.

A pool is ranked once and thrown away, so nothing is indexed: only the question's own terms are counted.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

K1 = 1.5
B = 0.75
_SPLIT = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
STOPWORDS = frozenset(
    "a an and are as at be been being by did do does for from had has have he her him his how i in into is it its "
    "me my of on or our she so that the their them there these they this those to was we were what when where which "
    "who whom whose why will with would you your".split()
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
    words = (word.lower() for word in _SPLIT.findall(_CAMEL.sub(" ", text)))
    return [stem(word) for word in words if word not in STOPWORDS]


def bm25(query: str, texts: Sequence[str]) -> np.ndarray:
    """Okapi BM25 scores (Robertson & Zaragoza 2009) of texts for a query, float64 of shape (len(texts),).

    idf(t) = ln(1 + (N - n_t + 0.5) / (n_t + 0.5)); k1 = 1.5, b = 0.75.
    """
    scores = np.zeros(len(texts))
    wanted = set(terms(query))
    if not texts or not wanted:
        return scores
    bags = [Counter(terms(text)) for text in texts]
    lengths = np.array([sum(bag.values()) for bag in bags], dtype=float)
    norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
    for term in wanted:
        counts = np.array([bag[term] for bag in bags], dtype=float)
        holding = int((counts > 0).sum())
        if holding:
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            scores += idf * counts * (K1 + 1) / (counts + norm)
    return scores
