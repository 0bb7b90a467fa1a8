"""The prefilter: reduces a pool from thousands of candidates to tens; a chooser then decides (thesis, section 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.embedding.encoder import CachedEncoder, cosines
from kgqa.rank.fusion import reciprocal_rank_fusion
from kgqa.rank.lexical import BM25Variant, bm25
from kgqa.rank.tournaments.chooser import random_scores

PrefilterMethod = Literal["rrf", "bm25", "sbert", "trained", "random", "none"]


def prefilter(
    question: str,
    candidates: Sequence[Candidate],
    *,
    keep: int,
    encoder: CachedEncoder | None,
    lexical_weight: float = 0.25,
    method: PrefilterMethod = "rrf",
    seed: int = 0,
    score: Callable[[str, Sequence[Candidate]], np.ndarray] | None = None,
    lexical_variant: BM25Variant = "own",
) -> list[Candidate]:
    """Return the `keep` best candidates, best first; candidates with equal scores keep the order of the pool.

    Args:
        question: The question's text without the topic's mention.
        candidates: The pool.
        keep: How many candidates to return.
        encoder: The embedding model; if None, "rrf" and "sbert" rank by BM25 alone.
        lexical_weight: Weight of BM25 in "rrf"; SBERT has weight 1.
        method: "rrf" fuses the ranks of BM25 and SBERT; "bm25" and "sbert" each use one ranking alone; "trained" uses
            `score`; "random" draws a sample, as Think-on-Graph does; "none" keeps all candidates in their order. A
            random sample depends on the seed, not on the order of the pool; a smaller sample is the beginning of a
            larger sample.
        seed: Seed of "random".
        score: Function for "trained": maps the question and n candidates to n scores; NaN ranks last.
        lexical_variant: See the argument `variant` of `bm25`.
    """
    words = [candidate.words for candidate in candidates]
    if method == "none" or not candidates:
        return list(candidates)
    if method == "random":
        scores = random_scores(f"prefilter\0{seed}", question, [f"{c.words}\0{c.path!r}" for c in candidates])
    elif method == "trained":
        scores = np.asarray(score(question, candidates), dtype=np.float64)  # type: ignore[misc]
    elif encoder is None or method == "bm25":
        scores = bm25(question, words, variant=lexical_variant)
    else:
        scores = cosines(encoder, question, words)
        if method == "rrf":
            lexical = bm25(question, words, variant=lexical_variant)
            scores = reciprocal_rank_fusion([lexical, scores], weights=[lexical_weight, 1.0])
    return [candidates[i] for i in np.argsort(-scores, kind="stable")[:keep]]
