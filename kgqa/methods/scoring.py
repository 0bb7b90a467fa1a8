"""Scores paths for one question without a language model: similarity, alignment of words and hops, depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kgqa.explore.cues import Cues
from kgqa.model import Candidate
from kgqa.rank.alignment import HopAligner
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import bm25

ONE_HOP = 0.3
"""Factor of the alignment's weight if the wording announces one hop."""
UNKNOWN_TYPE = 0.25
"""Type similarity that counts as neutral, also for unknown types: the usual similarity of unrelated types."""
PROMISE = 0.075
"""Penalty of a partial path against an equally similar complete path. Without it, short paths push complete ones out of
a narrow beam (PathQuestion-3 with a beam of 3: 72 instead of 83)."""
PLAIN = 0.2
"""Extra penalty per hop beyond the first if the wording leaves no room for a second hop."""
AGAINST = 0.02
"""Penalty per reversed step, because the relation's words mean the opposite: `children` backwards is a parent."""
Scores = np.ndarray[Any, np.dtype[np.float64]]
"""float64 of shape (n,)."""
Similarity = Callable[[str, Sequence[Candidate]], Scores]


@dataclass(frozen=True, slots=True)
class ScoreWeights:
    """Weights of the parts of a score.

    `alignment`: weight of the alignment; the rest is the similarity of the whole path. `deeper`, `shallower`: penalty
    per hop more or less than the wording announces. `answer_type`: weight of the similarity between the expected
    answer type and the type of the path's ends.
    """

    alignment: float = 0.4
    deeper: float = 0.15
    shallower: float = 0.07
    answer_type: float = 0.2


class PathScores:
    """Computes the scores of paths for one question, comparable across lengths.

    Args:
        asked: the question without its topics' mentions.
        cues: what the wording suggests about the path.
        similarity: similarity of the question to whole paths; None for cosine, or BM25 without an encoder.
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
        # with one hop there is little to align
        self._share = min(weights.alignment, 1.0) * (1.0 if cues.hops > 1 else ONE_HOP)
        if encoder is not None and cues.words and self._share:
            self._aligner = HopAligner(cues.words, encode_questions=encoder.encode_questions, encode=encoder.encode)

    @property
    def uses_kinds(self) -> bool:
        """Whether scores depend on the type of a path's ends."""
        return self._asked_for is not None

    def complete(self, candidates: Sequence[Candidate]) -> Scores:
        """Score each path as a complete answer to the question."""
        return self._complete(candidates, self._similar(candidates))

    def promising(self, candidates: Sequence[Candidate]) -> Scores:
        """Score each path as a complete answer or as the beginning of one."""
        similar = self._similar(candidates)
        complete = self._complete(candidates, similar)
        if self._aligner is None:
            return complete
        partial = self._mixed(similar, self._aligner.promises([c.hops for c in candidates]))
        over = np.array([len(c.hops) for c in candidates]) - self._cues.hops
        best: Scores = np.maximum(complete, partial - PROMISE - self._deeper * np.maximum(over, 0))
        return best

    def _complete(self, candidates: Sequence[Candidate], similar: Scores) -> Scores:
        if self._aligner is not None:
            similar = self._mixed(similar, self._aligner.scores([c.hops for c in candidates]))
        lengths = np.array([len(c.hops) for c in candidates])
        over, under = lengths - self._cues.hops, self._cues.hops - lengths
        depth = self._deeper * np.maximum(over, 0) + self._shallower * np.maximum(under, 0)
        scores: Scores = similar - depth + self._weights.answer_type * self._fitting(candidates)
        return scores

    def _similar(self, candidates: Sequence[Candidate]) -> Scores:
        return self._similarity(self._asked, candidates) - AGAINST * self._against(candidates)

    def _fitting(self, candidates: Sequence[Candidate]) -> Scores:
        """Return the similarity of each path's end type to the expected answer type, minus `UNKNOWN_TYPE`."""
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
    def _against(candidates: Sequence[Candidate]) -> Scores:
        return np.array([sum(step.direction == "in" for step in c.path.steps) for c in candidates], dtype=float)

    def _mixed(self, similar: Scores, aligned: Scores) -> Scores:
        return (1 - self._share) * similar + self._share * aligned


def similarity_of(encoder: CachedEncoder | None) -> Similarity:
    """Return cosine similarity of embeddings of question and path, or BM25 relative to the best without an encoder."""

    def cosine(question: str, candidates: Sequence[Candidate]) -> Scores:
        if not candidates:
            return np.zeros(0)
        words = [candidate.words for candidate in candidates]
        if encoder is None:
            scores = bm25(question, words)
            return scores / scores.max() if scores.max() > 0 else scores
        cosines: Scores = (encoder.encode(words) @ encoder.encode_questions([question])[0]).astype(np.float64)
        return cosines

    return cosine
