"""Cuts a pool of thousands of candidates to tens before a chooser sees them (thesis, section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.fusion import reciprocal_rank_fusion
from kgqa.rank.lexical import bm25
from kgqa.rank.semantic import CachedEncoder


def prefilter(
    question: str,
    candidates: Sequence[Candidate],
    *,
    keep: int,
    encoder: CachedEncoder | None,
    lexical_weight: float,
) -> list[Candidate]:
    """The `keep` best candidates, best first: BM25 and SBERT fused by reciprocal rank, BM25 alone without an encoder.

    Args:
        question: its text with the topic's mention left out.
        lexical_weight: weight of BM25 where SBERT has weight 1.
    """
    words = [candidate.words for candidate in candidates]
    lexical = bm25(question, words)
    if encoder is None:
        fused = lexical
    elif not words:
        return []
    else:
        semantic = encoder.encode(words) @ encoder.encode_once([question])[0]
        fused = reciprocal_rank_fusion([lexical, semantic], weights=[lexical_weight, 1.0])
    return [candidates[i] for i in np.argsort(-fused, kind="stable")[:keep]]
