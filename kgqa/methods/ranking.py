"""Puts together, from the settings, what ranks the paths of one question: chooser, prefilter, tournament, last word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import zip_longest
from types import MappingProxyType

from kgqa.errors import SettingsError
from kgqa.explore.cues import Cues
from kgqa.llm.model_chooser import ModelChooser
from kgqa.methods.resources import Resources
from kgqa.methods.scoring import PathScores, ScoreWeights, similarity_of
from kgqa.methods.showing import Shown
from kgqa.model import Candidate, Entity
from kgqa.plugins import plugin
from kgqa.rank.prefilter import prefilter
from kgqa.rank.tournaments.caching import CachingChooser
from kgqa.rank.tournaments.chooser import (
    Chooser,
    RandomChooser,
    ScoringChooser,
    cosine_similarity,
    word_similarity,
)
from kgqa.rank.tournaments.registry import TOURNAMENTS
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.trace import Trace

CHOOSERS = ("auto", "offline", "random", "trained", "llm")


class Ranking:
    """Ranks the paths of one question.

    Args:
        asked: the question without its topics' mentions.
        cues: what its wording says of the path.
        shown: what a language model sees of the question; None where none decides.
        clauses: what is compared for the paths of each topic, where that is not the whole question.
    """

    def __init__(
        self,
        asked: str,
        cues: Cues,
        resources: Resources,
        trace: Trace,
        shown: Shown | None = None,
        clauses: Mapping[Entity, str] = MappingProxyType({}),
    ) -> None:
        self._asked = asked
        self._clauses = clauses
        self._settings = settings = resources.settings
        self._shown = shown
        self._encoder = resources.encoder
        self._trace = trace
        self._random = settings["rank.chooser"] == "random"
        trained = settings["rank.chooser"] == "trained" or settings["rank.prefilter"] == "trained"
        if trained and resources.ranker is None:
            raise SettingsError("A trained ranker needs its file: --ranker FILE, made by `kgqa rank train`.")
        self._similarity = similarity_of(resources.encoder)
        self._trained = resources.ranker
        use_trained = settings["rank.chooser"] == "trained"
        self._cues = cues
        self._use_trained = use_trained
        self.chooser: Chooser = self._chooser(use_trained, resources)
        self._memo = self._voting(self.chooser)
        self._last_word = self._memo
        if shown is not None and resources.models is not None:
            models = resources.models.for_question(trace)
            compare = settings["llm.compare"]

            def model(show_ends: bool) -> ModelChooser:
                return ModelChooser(
                    models,
                    resources.prompts,
                    elements=shown.elements,
                    ends=shown.ends,
                    show_ends=show_ends,
                    compare=compare,
                    reask=settings["llm.reask"],
                )

            self.chooser = model(False)
            self._memo = self._voting(self.chooser)
            self._last_word = self._voting(model(True))
            self.models = models

    @cached_property
    def scores(self) -> PathScores:
        """What paths are scored by; made when it is needed, since a language model seldom leaves anything to it."""
        settings = self._settings
        return PathScores(
            self._asked,
            self._cues,
            encoder=self._encoder,
            weights=ScoreWeights(
                alignment=settings["rank.alignment"],
                deeper=settings["rank.depth_penalty"],
                answer_type=settings["rank.answer_type"],
            ),
            similarity=self._trained if self._use_trained else self._similarity,
        )

    @property
    def by_model(self) -> bool:
        """Whether a language model decides."""
        return self._shown is not None

    @property
    def question(self) -> str:
        """The question as whoever decides sees it."""
        return self._asked if self._shown is None else self._shown.question

    def _voting(self, chooser: Chooser) -> CachingChooser:
        votes = self._settings["rank.votes"]
        # with one vote a pair's order is drawn, so that favouring a place does not favour the earlier candidate
        return CachingChooser(VotingChooser(chooser, votes) if votes > 1 or self._shown is not None else chooser)

    def _chooser(self, use_trained: bool, resources: Resources) -> Chooser:
        if self._random:
            return RandomChooser(self._settings["rank.seed"])
        if (name := self._settings["rank.chooser"]) not in CHOOSERS:
            return plugin("chooser", name, ours=list(CHOOSERS))(resources)
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
        """The winners of a hop, best first; with clauses those of each topic by its own, side by side."""
        if not self._clauses:
            return self._play(self.question, pool, self._memo)
        winners = [
            self._play(self._clauses.get(topic, self.question), [c for c in pool if c.path.topic == topic], self._memo)
            for topic in dict.fromkeys(candidate.path.topic for candidate in pool)
        ]
        return [each for place in zip_longest(*winners) for each in place if each is not None]

    def decided(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """The best of the few that are left, best first, compared once more with what they lead to."""
        return self._play(self.question, pool, self._last_word) if len(pool) > 1 else list(pool)

    def _play(self, question: str, pool: Sequence[Candidate], memo: CachingChooser) -> list[Candidate]:
        run = TOURNAMENTS[self._settings["rank.tournament"]]
        if self._settings["rank.tournament"] == "chunked":
            run = partial(run, chunk_size=self._settings["rank.chunk"])
        before = memo.calls
        try:
            return run(question, pool, memo, k=self._settings["explore.beam"], record=self._trace.event)
        finally:
            self._trace.count("comparisons", memo.calls - before)

    @property
    def entities(self) -> Chooser:
        """Who selects entities."""
        return self._memo

    def best_first(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, float]]:
        """Paths of all lengths against each other, with their scores; a path that came more than once, once."""
        distinct = list({(c.path, c.joins, c.restricted): c for c in candidates}.values())
        values = self.chooser.score(self._asked, distinct) if self._random else self.scores.complete(distinct)
        return sorted(zip(distinct, map(float, values)), key=lambda pair: -pair[1])

    def accepts(self, candidate: Candidate, score: float | None) -> bool:
        """Whether a path is good enough to answer the question: a language model's word, or its score. One that meets
        paths from other topics has no score to reach: that they meet says more than its words.
        """
        if self._shown is not None or self._settings["rank.chooser"] not in CHOOSERS:
            return self._last_word.accept(self.question, [[candidate]]) == ["yes"]
        return (score or 0.0) >= self._settings["rank.accept"] or bool(candidate.joins) or self._random
