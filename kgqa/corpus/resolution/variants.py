"""Names with one word spelled in two ways, found by the shape of the words and confirmed by embeddings.

Nearness of embeddings alone is no proof. Of 140 pairs of neighbours among the names that GPT-3.5 extracted from 1,890
passages (MiniLM; numbers and contrasting words equal, no pair found by another rule), judged by hand, these meant the
same entity:

    cosine       >= 0.97      0.95-0.97    0.93-0.95
    right        20 of 27     24 of 53     31 of 60

Among the wrong ones: "Republic of the Congo" and "Democratic Republic of the Congo" (0.970), "European Council" and
"Council of Europe" (0.957), "British Togoland" and "French Togoland" (0.878). So the words must agree too: all are
equal but one, which differs by one letter inside, not at its end ("South Korea", "South Korean"). Of the 77 pairs of
this kind among 54,179 names in 9,003 passages, these meant the same:

    cosine                   >= 0.90      0.85-0.90    0.65-0.85    < 0.65
    in one document          10 of 10     7 of 7       16 of 16     1 of 3
    in different documents   8 of 8       3 of 8       3 of 11      4 of 14

The thresholds below are chosen for at least 97% right ones: 33 of 33 in one document, 8 of 8 in different ones. The
second sample is small, so the confidence that is recorded is lower. Names of at least four words with the same words in
another order need a cosine of 0.95; 7 of 7 were right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Protocol

import numpy as np

from kgqa.corpus.resolution.evidence import Evidence, Proposal
from kgqa.corpus.resolution.names import Name
from kgqa.corpus.resolution.normal_forms import distinguishing_words
from kgqa.corpus.resolution.word_lists import word_list

SAME_DOCUMENT = 0.65
OTHER_DOCUMENT = 0.90
OTHER_ORDER = 0.95
"""Smallest cosines for names in one document, in different documents, and with the words in another order."""
_MAX_WORDS = 8
_MIN_LETTERS = 5
_MIN_ORDERED = 4
_MAX_BLOCK = 500
_SMALL = word_list("small_words")


class Encoder(Protocol):
    """Turns texts into vectors of length 1, one row per text."""

    def encode(self, texts: Sequence[str]) -> np.ndarray: ...


def spelling_variants(evidence: Evidence, encoder: Encoder) -> Iterator[Proposal]:
    """Propose names of several words of which one is spelled in two ways, or with the same words in another order."""
    found = {(one.iri, other.iri): (one, other, limit) for one, other, limit in alike_names(evidence)}
    texts = sorted({name.text for one, other, _ in found.values() for name in (one, other)})
    if not texts:
        return
    rows = dict(zip(texts, encoder.encode(texts)))
    for one, other, limit in found.values():
        cosine = float(rows[one.text] @ rows[other.text])
        if cosine >= limit:
            confidence = 0.97 if limit == SAME_DOCUMENT else 0.9
            yield Proposal(one, other, f"spelling variants (cosine {cosine:.2f})", confidence)


def alike_names(evidence: Evidence) -> Iterator[tuple[Name, Name, float]]:
    """Yield pairs whose words agree, and the cosine that they need; a pair may come twice."""
    holes: dict[tuple[object, ...], list[tuple[str, Name]]] = defaultdict(list)
    ordered: dict[str, list[Name]] = defaultdict(list)
    for name in evidence.names:
        words = name.words
        for place, word in enumerate(words if 2 <= len(words) <= _MAX_WORDS else ()):
            if len(word) >= _MIN_LETTERS and word.isalpha():
                holes[words[:place], word[0], words[place + 1 :]].append((word, name))
        content = [word for word in words if word not in _SMALL]
        if len(content) >= _MIN_ORDERED:
            ordered[" ".join(sorted(content))].append(name)
    for spelled in holes.values():
        for (word, one), (other_word, other) in combinations(spelled[:_MAX_BLOCK], 2):
            if is_misspelled(word, other_word) and _agree(evidence, one, other):
                yield one, other, SAME_DOCUMENT if one.documents & other.documents else OTHER_DOCUMENT
    for names in ordered.values():
        for one, other in combinations(names[:_MAX_BLOCK], 2):
            if one.wording != other.wording and _agree(evidence, one, other):
                yield one, other, OTHER_ORDER


def _agree(evidence: Evidence, one: Name, other: Name) -> bool:
    return (
        evidence.is_new(one, other)
        and one.is_proper == other.is_proper
        and distinguishing_words(one.text) == distinguishing_words(other.text)
        and evidence.types_allow(one, other)
        and not evidence.are_related(one, other)
    )


def is_misspelled(one: str, other: str) -> bool:
    """Return whether words differ by one letter inside: another one, one more, or two letters exchanged."""
    short, long = sorted((one, other), key=len)
    if short == long or len(long) - len(short) > 1:
        return False
    start = next((at for at, (a, b) in enumerate(zip(short, long)) if a != b), len(short))
    if start >= len(short) - (len(short) == len(long)):
        return False  # the last letter differs
    if len(long) > len(short):
        return short[start:] == long[start + 1 :]
    rest = start + 1
    return short[rest:] == long[rest:] or (
        short[start : start + 2] == long[start + 1] + long[start] and short[start + 2 :] == long[start + 2 :]
    )
