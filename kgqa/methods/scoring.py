"""How paths are scored for one question without a language model: similarity, alignment of words and hops, depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kgqa.explore.cues import Cues
from kgqa.model import Candidate
from kgqa.rank.alignment import HopAligner
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import bm25

ONE_HOP = 0.3
"""Of the share of the alignment where the wording announces one hop."""
UNKNOWN_TYPE = 0.25
"""Similarity of a type at which nothing is added or taken off, as where it is not known: about what types that have
nothing to do with what is asked for have."""
PROMISE = 0.075
"""What a beginning counts less than a path that says the same: without it the short paths that may lead anywhere push
out of a narrow beam those that have arrived (PathQuestion-3 with a beam of 3: 72 against 83)."""
PLAIN = 0.2
"""Taken off besides for each hop more than one where the wording has no room for a second."""
AGAINST = 0.02
"""Taken off for each step against its relation, whose words say the opposite: `children` backwards is a parent."""
Similarity = Callable[[str, Sequence[Candidate]], np.ndarray]


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """`alignment`: share of the alignment, the rest is similarity of the whole; `deeper`: taken off for each hop more
    than the wording announces; `shallower`: for each hop less; `answer_type`: of the similarity between what is
    asked for and the type that the path leads to.
    """

    alignment: float = 0.4
    deeper: float = 0.15
    shallower: float = 0.07
    answer_type: float = 0.2


class PathScores:
    """Scores of paths for one question, comparable across lengths; float64 of shape (n,).

    Args:
        asked: the question without its topics' mentions.
        cues: what the wording says of the path.
        similarity: of the question to whole paths; None for cosine, or BM25 without an encoder.
    """

    def __init__(
        self,
        asked: str,
        cues: Cues,
        *,
        encoder: CachedEncoder | None,
        weights: ScoreWeights,
        similarity: Similarity | None = None,
    ) -> None:
        self._asked = asked
        self._cues = cues
        self._weights = weights
        self._similarity = similarity or similarity_of(encoder)
        self._encoder = encoder
        self._deeper = weights.deeper + PLAIN * cues.plain if weights.deeper else 0.0
        self._shallower = weights.shallower if weights.deeper else 0.0
        self._asked_for = (
            encoder.encode_questions([cues.asked_for])[0]
            if encoder and cues.asked_for and weights.answer_type
            else None
        )
        self._aligner: HopAligner | None = None
        # one hop leaves little to put in order
        self._share = min(weights.alignment, 1.0) * (1.0 if cues.hops > 1 else ONE_HOP)
        if encoder is not None and cues.words and self._share:
            self._aligner = HopAligner(cues.words, encode_questions=encoder.encode_questions, encode=encoder.encode)

    @property
    def uses_kinds(self) -> bool:
        """Whether it matters what kind of thing a path leads to."""
        return self._asked_for is not None

    def complete(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """How well each path as a whole says what is asked."""
        return self._complete(candidates, self._similar(candidates))

    def promising(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """How well each path says what is asked, or the beginning of it."""
        similar = self._similar(candidates)
        complete = self._complete(candidates, similar)
        if self._aligner is None:
            return complete
        begun = self._mixed(similar, self._aligner.promises([c.hops for c in candidates]))
        over = np.array([len(c.hops) for c in candidates]) - self._cues.hops
        return np.maximum(complete, begun - PROMISE - self._deeper * np.maximum(over, 0))

    def _complete(self, candidates: Sequence[Candidate], similar: np.ndarray) -> np.ndarray:
        if self._aligner is not None:
            similar = self._mixed(similar, self._aligner.scores([c.hops for c in candidates]))
        lengths = np.array([len(c.hops) for c in candidates])
        over, under = lengths - self._cues.hops, self._cues.hops - lengths
        depth = self._deeper * np.maximum(over, 0) + self._shallower * np.maximum(under, 0)
        return similar - depth + self._weights.answer_type * self._fitting(candidates)

    def _similar(self, candidates: Sequence[Candidate]) -> np.ndarray:
        return self._similarity(self._asked, candidates) - AGAINST * self._against(candidates)

    def _fitting(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """How much more than nothing the ends of each path are like what is asked for, by their type."""
        found = np.zeros(len(candidates))
        if self._asked_for is None or self._encoder is None:
            return found
        known = [index for index, candidate in enumerate(candidates) if candidate.leads_to]
        if known:
            found[known] = (
                self._encoder.encode([candidates[index].leads_to for index in known]) @ self._asked_for - UNKNOWN_TYPE
            )
        return found

    @staticmethod
    def _against(candidates: Sequence[Candidate]) -> np.ndarray:
        return np.array([sum(step.direction == "in" for step in c.path.steps) for c in candidates], dtype=float)

    def _mixed(self, similar: np.ndarray, aligned: np.ndarray) -> np.ndarray:
        return (1 - self._share) * similar + self._share * aligned


def similarity_of(encoder: CachedEncoder | None) -> Similarity:
    """Cosine of embeddings of the question and a path's words; BM25 relative to the best without an encoder."""

    def cosine(question: str, candidates: Sequence[Candidate]) -> np.ndarray:
        if not candidates:
            return np.zeros(0)
        words = [candidate.words for candidate in candidates]
        if encoder is None:
            scores = bm25(question, words)
            return scores / scores.max() if scores.max() > 0 else scores
        return (encoder.encode(words) @ encoder.encode_questions([question])[0]).astype(np.float64)

    return cosine
