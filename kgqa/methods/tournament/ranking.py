"""The ranking of the paths of one question, as selected in the settings: prefilter, chooser and tournament."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest
from types import MappingProxyType

from kgqa.errors import SettingsError
from kgqa.graph.query.export import all_words
from kgqa.llm.model_chooser import ModelChooser
from kgqa.methods.prompt_view import PromptView
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.scoring import PathScores, ScoreWeights
from kgqa.model import Candidate, Entity
from kgqa.plugins import is_ours
from kgqa.rank.confidence import Features, calibration, is_calibrated
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.prefilter import prefilter
from kgqa.rank.tournaments.caching import CachingChooser
from kgqa.rank.tournaments.chooser import (
    Chooser,
    RandomChooser,
    Scorer,
    ScoringChooser,
    text_similarity,
)
from kgqa.rank.tournaments.registry import open_chooser, tournament
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.search.classes import starts_at_instances
from kgqa.search.cues import Cues
from kgqa.search.kinds import AskedKind
from kgqa.text.hints import Option
from kgqa.trace import Linked
from kgqa.trace.trace import Trace

UNEXPLAINED = 0.3
"""A path does not explain the words of a question that have a smaller share."""
RIVALS = 10
"""How many other paths are compared with the best path to determine the confidence in it."""


class Ranking:
    """Ranks the paths of one question.

    Args:
        asked: The question without the mentions of its topics.
        cues: Cues in the question's wording about the path.
        kind: The kind that the question asks for.
        resources: The resources of the run.
        trace: Records the tournaments.
        view: The question as a language model sees it; None if no language model decides.
        clauses: Map from a topic to the text with which its paths are compared; if empty, paths are compared with the
            whole question.

    Attributes:
        by_model: Whether a language model compares the paths.
        orders_winners: Whether the winners of a tournament need no further comparison.
        question: The text of the question with which the chooser compares paths.
        entities: The chooser that compares paths in a hop, and selects entities.
    """

    def __init__(
        self,
        asked: str,
        cues: Cues,
        kind: AskedKind,
        resources: Resources,
        trace: Trace,
        view: PromptView | None = None,
        clauses: Mapping[Entity, str] = MappingProxyType({}),
    ) -> None:
        self._asked = asked
        self._clauses = clauses
        self._settings = settings = resources.settings
        self._view = view
        self.by_model = view is not None
        self.question = asked if view is None else view.question
        self._encoder = resources.encoder
        self._trace = trace
        self._cues = cues
        self._kind = kind
        self._random = settings.rank.chooser == "random"
        self._use_trained = settings.rank.chooser == "trained"
        if (self._use_trained or settings.rank.prefilter == "trained") and resources.ranker is None:
            raise SettingsError(
                "The value `trained` of rank.chooser or rank.prefilter needs a trained ranker.",
                "Add ",
                Option("ranker", "FILE"),
                ". Create the file with `kgqa rank train`.",
            )
        self._trained = resources.ranker
        self._tournament = tournament(settings.rank.tournament)
        self.orders_winners = self._tournament.orders_winners
        self.chooser = self._chooser(resources)
        self.entities = self._last_word = self._voting(self.chooser)
        if view is not None and not settings.llm.samples:
            self._last_word = self._voting(self._model_chooser(view, resources, show_ends=True))

    @cached_property
    def scores(self) -> PathScores:
        """The scores of paths; created when needed, because a ranking by a language model rarely uses scores."""
        similarity = self._trained if self._use_trained else None
        return self._scores(self._encoder, similarity)

    def _scores(self, encoder: CachedEncoder | None, similarity: Scorer | None = None) -> PathScores:
        return PathScores(
            self._asked, self._cues, encoder=encoder, weights=self._weights, kind=self._kind, similarity=similarity
        )

    @property
    def _weights(self) -> ScoreWeights:
        settings = self._settings
        return ScoreWeights(
            alignment=settings.rank.alignment,
            deeper=settings.rank.depth_penalty,
            answer_type=settings.rank.answer_type,
        )

    @cached_property
    def _plain_scores(self) -> PathScores:
        """The scores on which the confidence is based, whatever chooser is used."""
        if not self._use_trained and self._encoder is self._calibrated_encoder:
            return self.scores
        return self._scores(self._calibrated_encoder)

    @property
    def _calibrated_encoder(self) -> CachedEncoder | None:
        """The embedding model, if confidence was measured with it."""
        return self._encoder if self._encoder is not None and is_calibrated(self._encoder.name) else None

    def _voting(self, chooser: Chooser) -> CachingChooser:
        votes = self._settings.rank.votes
        # with one vote, VotingChooser only shuffles each pair; this matters for a model that favours one position
        return CachingChooser(VotingChooser(chooser, votes) if votes > 1 or self._view is not None else chooser)

    def _model_chooser(self, view: PromptView, resources: Resources, *, show_ends: bool) -> ModelChooser:
        assert resources.models is not None
        return ModelChooser(
            resources.models.for_question(self._trace),
            resources.prompts,
            elements=view.elements,
            ends=view.ends,
            show_ends=show_ends,
            samples=view.samples,
            compare=self._settings.llm.compare,
            reask=self._settings.llm.reask,
            abstain=self._settings.llm.abstain == "on",
            answer=self._settings.explore.stop == "answered",
        )

    def _chooser(self, resources: Resources) -> Chooser:
        if self._view is not None:
            return self._model_chooser(self._view, resources, show_ends=False)
        if self._random:
            return RandomChooser(self._settings.rank.seed)
        if not is_ours("chooser", self._settings.rank.chooser):
            return open_chooser(self._settings.rank.chooser, resources)
        name = "similarity of embeddings" if self._encoder else "similarity of words (BM25)"
        return ScoringChooser(
            lambda question, candidates: self.scores.promising(candidates),
            "a trained ranker" if self._use_trained else name,
            texts=text_similarity(self._encoder),
            accept_at=self._settings.rank.accept,
        )

    def prefilter(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Select the candidates that enter the tournament."""
        return prefilter(
            self._asked,
            pool,
            keep=self._settings.rank.pool,
            encoder=self._encoder,
            lexical_weight=self._settings.rank.lexical_weight,
            method=self._settings.rank.prefilter,
            seed=self._settings.rank.seed,
            score=self._trained,
            lexical_variant=self._settings.rank.bm25,
        )

    def tournament(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Return the winners of a hop, best first.

        With clauses, there is one tournament per topic, and the result alternates between the topics' winners.
        """
        if not self._clauses:
            return self._play(self.question, pool, self.entities)
        winners = [
            self._play(
                self._clauses.get(topic, self.question), [c for c in pool if c.path.topic == topic], self.entities
            )
            for topic in dict.fromkeys(candidate.path.topic for candidate in pool)
        ]
        return [each for same_rank in zip_longest(*winners) for each in same_rank if each is not None]

    @property
    def picked(self) -> list[Candidate]:
        """The paths that the chooser picked in any round of the tournaments so far, in that order."""
        return list(self.entities.picked)

    def compare_finalists(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Compare the remaining paths, shown with their end nodes, and return them best first."""
        return self._play(self.question, pool, self._last_word) if len(pool) > 1 else list(pool)

    def _play(self, question: str, pool: Sequence[Candidate], memo: CachingChooser) -> list[Candidate]:
        if self._view is not None and self._settings.rank.equal_ends == "one":
            pool = self._view.distinct(pool)
        parameters = {name: self._settings.values[key] for name, key in self._tournament.parameters.items()}
        before = memo.calls
        try:
            return self._tournament.play(
                question, pool, memo, k=self._settings.explore.beam, record=self._trace.record, **parameters
            )
        finally:
            self._trace.count("comparisons", memo.calls - before)

    def best_first(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, float]]:
        """Return the distinct candidates with their scores, best first; paths of different lengths are comparable."""
        distinct = list({c.identity: c for c in candidates}.values())
        values = self.chooser.score(self._asked, distinct) if self._random else self.scores.complete(distinct)
        return sorted(zip(distinct, map(float, values)), key=lambda pair: -pair[1])

    def explained(self, candidate: Candidate) -> dict[str, float]:
        """Return how well a path, its conditions and its operation explain each word of the question, from 0 to 1."""
        conditions, operation = all_words(self._kind.graph, candidate)
        return self._plain_scores.explained(candidate, [*conditions, operation])

    def unexplained(self, shares: Mapping[str, float]) -> list[str]:
        """Return the words that a path does not explain, given its shares; the kind of answer may be left out."""
        return [word for word, share in shares.items() if share < UNEXPLAINED and word not in self._cues.noun.split()]

    def features(
        self,
        candidate: Candidate,
        ranked: Sequence[tuple[Candidate, object]],
        shares: Collection[float],
        *,
        topics: int,
        answers: int,
    ) -> Features:
        """Return the features that determine the confidence in a path (see `rank.confidence`).

        Args:
            candidate: The path.
            ranked: All ranked paths.
            shares: How well the path explains each word of the question.
            topics: The number of topics of the question.
            answers: The number of answers.
        """
        steps = candidate.path.steps[starts_at_instances(self._kind.graph, candidate.path) :]
        rivals = [other for other, _ in ranked if other.path != candidate.path][:RIVALS]
        linked = [mention for event in self._trace.events() if isinstance(event, Linked) for mention in event.mentions]
        found = self._plain_scores.features(candidate, rivals, shares)
        if not steps:  # the instances of the class that the question names; there is no path to compare
            found["score"] = 1.0
        return found | {
            "joined": len(candidate.joins) / (topics - 1) if topics > 1 else 0.0,
            "inexact": float(any(not mention.exact for mention in linked)),
            "backward": float(sum(step.direction == "in" for step in steps)),
            "many": math.log(max(answers, 1)),
        }

    def confidence(self, features: Features) -> float | None:
        """Return the share of right answers among answers with these features; None if nothing was measured."""
        if self.accepted_by or self._random:
            return None
        return calibration("embeddings" if self._calibrated_encoder else "words").confidence(features)

    @property
    def accepted_by(self) -> str:
        """What accepts or rejects paths, in words for the user; "" if scores decide."""
        if self.by_model:
            return "the language model"
        name = self._settings.rank.chooser
        return "" if is_ours("chooser", name) else f"the chooser {name}"

    def accepts(self, candidate: Candidate, score: float | None) -> bool:
        """Return whether a path is accepted as an answer, by the language model or by its score.

        A path that meets paths of other topics needs no minimum score, because meeting them is strong evidence.
        """
        if self.accepted_by:
            return self._last_word.accept(self.question, [[candidate]]) == ["yes"]
        return (score or 0.0) >= self._settings.rank.accept or bool(candidate.joins) or self._random
