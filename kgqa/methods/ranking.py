"""Puts together, from the settings, what ranks the paths of one question: chooser, prefilter, tournament, last word."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kgqa.errors import SettingsError
from kgqa.explore.cues import Cues
from kgqa.methods.resources import Resources
from kgqa.methods.scoring import PathScores, ScoreWeights, similarity_of
from kgqa.model import Candidate
from kgqa.rank.chooser import Chooser, RandomChooser, ScoringChooser, cosine_similarity, word_similarity
from kgqa.rank.memo import Memo
from kgqa.rank.prefilter import prefilter
from kgqa.rank.tournament import TOURNAMENTS
from kgqa.rank.voting import Voting
from kgqa.trace import Trace


class Ranking:
    """Ranks the paths of one question.

    Args:
        asked: the question without its topics' mentions.
        cues: what its wording says of the path.
    """

    def __init__(self, asked: str, cues: Cues, resources: Resources, trace: Trace) -> None:
        self._asked = asked
        self._settings = settings = resources.settings
        self._encoder = resources.encoder
        self._trace = trace
        self._random = settings["rank.chooser"] == "random"
        trained = settings["rank.chooser"] == "trained" or settings["rank.prefilter"] == "trained"
        if trained and resources.ranker is None:
            raise SettingsError("A trained ranker needs its file: --ranker FILE, made by `kgqa rank train`.")
        self._similarity = similarity_of(resources.encoder)
        self._trained = resources.ranker
        use_trained = settings["rank.chooser"] == "trained"
        self.scores = PathScores(
            asked,
            cues,
            encoder=resources.encoder,
            weights=ScoreWeights(
                alignment=settings["rank.alignment"],
                deeper=settings["rank.depth_penalty"],
                answer_type=settings["rank.answer_type"],
            ),
            similarity=resources.ranker if use_trained else self._similarity,
        )
        self.chooser: Chooser = self._chooser(use_trained)
        self._memo = Memo(Voting(self.chooser, settings["rank.votes"]) if settings["rank.votes"] > 1 else self.chooser)

    def _chooser(self, use_trained: bool) -> Chooser:
        if self._random:
            return RandomChooser(self._settings["rank.seed"])
        name = "similarity of embeddings" if self._encoder else "similarity of words (BM25)"
        return ScoringChooser(
            lambda question, candidates: self.scores.promising(candidates),
            "a trained ranker" if use_trained else name,
            texts=cosine_similarity(self._encoder) if self._encoder else word_similarity,
            accept_at=self._settings["rank.accept"],
        )

    def prefilter(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """The candidates that a tournament gets."""
        return prefilter(
            self._asked,
            pool,
            keep=self._settings["rank.pool"],
            encoder=self._encoder,
            lexical_weight=self._settings["rank.lexical_weight"],
            method=self._settings["rank.prefilter"],
            seed=self._settings["rank.seed"],
            score=self._trained,
            lexical_variant=self._settings["rank.bm25"],
        )

    def tournament(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """The winners of a hop, best first."""
        run = TOURNAMENTS[self._settings["rank.tournament"]]
        if self._settings["rank.tournament"] == "chunked":
            run = partial(run, chunk_size=self._settings["rank.chunk"])
        before = self._memo.calls
        winners = run(self._asked, pool, self._memo, k=self._settings["explore.beam"], note=self._trace.event)
        self._trace.count("comparisons", self._memo.calls - before)
        return winners

    @property
    def entities(self) -> Chooser:
        """Who selects entities."""
        return self._memo

    def best_first(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, float]]:
        """Paths of all lengths against each other, with their scores; a path that came more than once, once."""
        distinct = list({(c.path, c.joins, c.restricted): c for c in candidates}.values())
        values = self.chooser.score(self._asked, distinct) if self._random else self.scores.complete(distinct)
        return sorted(zip(distinct, map(float, values)), key=lambda pair: -pair[1])

    def accepts(self, candidate: Candidate, score: float) -> bool:
        """Whether a path is good enough to answer the question. One that meets paths from other topics is: that they
        meet says more than its words."""
        return score >= self._settings["rank.accept"] or bool(candidate.joins) or self._random
