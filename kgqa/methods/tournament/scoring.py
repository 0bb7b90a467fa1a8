"""Scores of paths from similarity to the question, alignment of hops with words, and depth; no language model."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Candidate
from kgqa.rank.alignment import HopAligner
from kgqa.rank.confidence import NO_WORDS, Features, explained, margin, root
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import terms
from kgqa.rank.tournaments.chooser import Scorer, text_similarity
from kgqa.search.cues import Cues
from kgqa.search.kinds import AskedKind
from kgqa.search.words import stems, word_table
from kgqa.settings.table import RankSettings
from kgqa.text.words import relation_words

ONE_HOP = 0.3
"""Factor on the weight of the alignment if the question's wording suggests only one hop."""
UNKNOWN_TYPE = 0.25
"""The usual similarity of unrelated types, which is subtracted from similarities."""
PROMISE = 0.075
"""Penalty for paths scored as the beginning of an answer. Without the penalty, short paths displace complete paths in a
narrow beam (on PathQuestion-3 with a beam of 3, the result is 72 instead of 83)."""
PLAIN = 0.2
"""Additional penalty per hop after the first if the question has no words for a second hop."""
AGREES = 0.75
"""Additional similarity if a path's ends are of the kind that the question asks for; the same is subtracted if not."""
AGAINST = 0.02
"""Penalty per step against a relation's direction; its words then mislead (`children` backwards leads to parents)."""
SHALLOWER = 0.07
"""Penalty for each hop missing from the number of hops that the question's wording suggests."""
Scores = np.ndarray[Any, np.dtype[np.float64]]
"""float64 of shape (n,)."""


class PathScores:
    """The scores of paths for one question; paths of different lengths are comparable.

    Args:
        asked: The question without the mentions of its topics.
        cues: Cues in the question's wording about the path.
        encoder: The embedding model; None if there is none.
        rank: The weights of the parts of a score.
        kind: The kind that the question asks for.
        similarity: Similarity of the question to whole paths; None for the cosine, or without an encoder for BM25,
            scaled to 0 to 1.
    """

    def __init__(
        self,
        asked: str,
        cues: Cues,
        *,
        encoder: CachedEncoder | None,
        rank: RankSettings,
        kind: AskedKind,
        similarity: Scorer | None = None,
    ) -> None:
        self._asked = asked
        self._cues = cues
        self._rank = rank
        self._kind = kind
        self._similarity = similarity
        self._of_texts = text_similarity(encoder)
        self._encoder = encoder
        self._deeper = rank.depth_penalty + PLAIN * cues.plain if rank.depth_penalty else 0.0
        self._shallower = SHALLOWER if rank.depth_penalty else 0.0
        self._asked_for = (
            encoder.encode_questions([cues.asked_for])[0] if encoder and cues.asked_for and rank.answer_type else None
        )
        # for one-hop paths, the alignment adds little information
        self._share = min(rank.alignment, 1.0) * (1.0 if cues.hops > 1 else ONE_HOP)
        self._aligner = (
            HopAligner(cues.words, encode_questions=encoder.encode_questions, encode=encoder.encode)
            if encoder is not None and cues.words and self._share
            else None
        )

    @property
    def uses_kinds(self) -> bool:
        """Whether scores depend on the type of a path's end nodes."""
        return self._asked_for is not None or bool(self._kind.value)

    def complete(self, candidates: Sequence[Candidate]) -> Scores:
        """Score each path as a complete answer to the question."""
        return self._complete(candidates, self._similar(candidates))

    def promising(self, candidates: Sequence[Candidate]) -> Scores:
        """Score each path as a complete answer or as the beginning of an answer, whichever is higher."""
        similar = self._similar(candidates)
        complete = self._complete(candidates, similar)
        if self._aligner is None:
            return complete
        partial = self._mixed(similar, self._aligner.promises([c.hops for c in candidates]))
        over = np.array([len(c.hops) for c in candidates]) - self._cues.hops
        best: Scores = np.maximum(complete, partial - PROMISE - self._deeper * np.maximum(over, 0))
        return best

    def explained(self, candidate: Candidate, limits: Sequence[str] = ()) -> dict[str, float]:
        """Return how well a path explains each word of the question, from 0 to 1.

        `limits` are the conditions and the operation of the path in words.
        """
        tables = self._kind.graph.tables
        named = tables.values.get("relations by roots", lambda: _short_names(tables))
        meanings = {each: f"{each} {word_table('events', 'en').get(each, '')}" for each in self._cues.words}
        others = {each for each, words in meanings.items() if named & set(map(root, stems(words)))}
        texts = [*candidate.hops, candidate.leads_to, *limits]
        return explained(meanings, list(filter(None, texts)), self._encoder, others)

    def features(self, candidate: Candidate, rivals: Sequence[Candidate], shares: Collection[float]) -> Features:
        """Return the features of a path, compared with other paths, that determine the confidence in it.

        `shares` says how well the path explains each word of the question.
        """
        scores = self.complete([candidate, *rivals])
        return {
            "score": float(scores[0]),
            "margin": margin(scores.tolist()),
            "agrees": float(self._kind.fits([candidate.kinds])[0]),
            "type": float(self._fitting([candidate])[0]),
            "explained": sum(shares) / len(shares) if shares else NO_WORDS,
            "least": min(shares, default=NO_WORDS),
        }

    def _complete(self, candidates: Sequence[Candidate], similar: Scores) -> Scores:
        if self._aligner is not None:
            similar = self._mixed(similar, self._aligner.scores([c.hops for c in candidates]))
        lengths = np.array([len(c.hops) for c in candidates])
        over, under = lengths - self._cues.hops, self._cues.hops - lengths
        fits = np.array(self._kind.fits([each.kinds for each in candidates]))
        deeper = np.where((fits > 0) & self._kind.may_be_further, self._rank.depth_penalty, self._deeper)
        depth = deeper * np.maximum(over, 0) + self._shallower * np.maximum(under, 0)
        scores: Scores = similar - depth + self._rank.answer_type * (self._fitting(candidates) + AGREES * fits)
        return scores

    def _similar(self, candidates: Sequence[Candidate]) -> Scores:
        words = [each.words for each in candidates]
        own = self._similarity
        similar = own(self._asked, candidates) if own else self._of_texts(self._asked, words)
        return similar - AGAINST * np.array([sum(s.direction == "in" for s in c.path.steps) for c in candidates], float)

    def _fitting(self, candidates: Sequence[Candidate]) -> Scores:
        """Return the similarity between each path's type of end nodes and the expected type, minus `UNKNOWN_TYPE`.

        A path whose type is unknown fits as well as the best of the others: what a graph does not declare is no fault.
        """
        known = [index for index, candidate in enumerate(candidates) if candidate.leads_to]
        if self._asked_for is None or self._encoder is None or not known:
            return np.zeros(len(candidates))
        fits = self._encoder.encode([candidates[index].leads_to for index in known]) @ self._asked_for - UNKNOWN_TYPE
        found = np.full(len(candidates), max(0.0, float(fits.max())))
        found[known] = fits
        return found

    def _mixed(self, similar: Scores, aligned: Scores) -> Scores:
        return (1 - self._share) * similar + self._share * aligned


def _short_names(tables: GraphTables) -> frozenset[str]:
    """Return the roots of the words of relations that have at most two: a longer name is not meant by one of them."""
    kept = (each for each in tables.relations if not tables.is_noise(each))
    names = (terms(relation_words(each, tables.schema, tables.relation_labels)) for each in kept)
    return frozenset(root(word) for words in names if len(words) <= 2 for word in words)
