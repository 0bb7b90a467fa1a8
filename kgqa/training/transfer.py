"""Tests of a trained ranker, on questions like its own and on what it was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.trained_ranker import TrainedRanker
from kgqa.training.fitting import Example, Vectors, sampled, scores_of

COMPARED = 30
"""How many other paths the gold path of a test is compared with, at most."""
TESTED = 200
"""How many examples a test has, at most."""
SHARE = 0.5
"""Share of the ranker in the mix that is tested, as is the default of `rank.trained_share`."""


@dataclass(frozen=True, slots=True)
class Hits:
    """How often the gold path of a test is ranked first, as shares from 0 to 1; of n equal scores, each counts 1/n.

    Attributes:
        examples: Number of gold paths.
        cosine: By the cosine of the question and the words of the path, without training.
        head: By the trained ranker alone.
        mixed: By both, as with the default of `rank.trained_share`.
    """

    examples: int
    cosine: float
    head: float
    mixed: float


def hits(
    ranker: TrainedRanker,
    examples: Sequence[Example],
    vectors: Vectors,
    words: Sequence[str],
    encoder: CachedEncoder,
    seed: int,
) -> Hits:
    """Test a ranker on some of the examples, each with some of the paths of its pool.

    Args:
        ranker: The ranker.
        examples: The examples; none of them may be trained on.
        vectors: The vectors of the examples.
        words: The words of each step's relation.
        encoder: The embedding model.
        seed: Seed of the choice of examples and paths.
    """
    random = np.random.default_rng(seed)
    found = []
    for number in random.permutation(len(examples))[:TESTED]:
        example = examples[number]
        rows = sampled(example, COMPARED, random)
        texts = [", ".join(words[step] for step in row if step >= 0) for row in rows]
        distinct = list(dict.fromkeys(texts))
        scores = dict(zip(distinct, encoder.encode_once(distinct) @ vectors.questions[example.question]))
        cosine, head = np.array([scores[text] for text in texts]), scores_of(ranker, example.question, rows, vectors)
        found.append([_hit(each) for each in (cosine, head, SHARE * head + (1 - SHARE) * cosine)])
    cosine, head, mixed = np.mean(found, axis=0).tolist() if found else (0.0, 0.0, 0.0)
    return Hits(len(found), cosine, head, mixed)


def _hit(scores: np.ndarray) -> float:
    """Return 1 if only the first score is the highest, 1/n if it is one of n highest, otherwise 0."""
    best = scores >= scores.max() - 1e-6
    return float(best[0] / best.sum())
