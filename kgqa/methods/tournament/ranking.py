"""The ranking of the paths of one question (prefilter, chooser and tournament), and the confidence in the best path."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from types import MappingProxyType

from kgqa.errors import SettingsError
from kgqa.graph.query.export import all_words
from kgqa.llm.model_chooser import ModelChooser
from kgqa.methods.prompt_view import PromptView
from kgqa.methods.resources import Resources
from kgqa.methods.tournament.asked import Asked
from kgqa.methods.tournament.scoring import PathScores
from kgqa.model import WEAK, Answer, Candidate, Entity
from kgqa.plugins import is_ours
from kgqa.rank.confidence import Features, calibration, is_calibrated
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.prefilter import prefilter
from kgqa.rank.tournaments.caching import CachingChooser
from kgqa.rank.tournaments.chooser import Chooser, RandomChooser, Scorer, ScoringChooser, text_similarity
from kgqa.rank.tournaments.registry import open_chooser, tournament
from kgqa.rank.tournaments.voting import VotingChooser
from kgqa.search.classes import starts_at_instances
from kgqa.text.hints import Option
from kgqa.trace import Linked, Rated
from kgqa.trace.trace import Trace

UNEXPLAINED = 0.3
"""A path does not explain the words of a question that have a smaller share."""
RIVALS = 10
"""How many other paths are compared with the best path to determine the confidence in it."""
Ranked = list[tuple[Candidate, float | None]]
"""Paths with their scores, best first; scores are None if a language model compared the paths."""


class Ranking:
    """Ranks the paths of one question.

    Args:
        asked: The question.
        resources: The resources of the run.
        trace: Records the tournaments.
        view: See the attribute.
        clauses: Map from a topic to the text with which its paths are compared; if empty, paths are compared with the
            whole question.

    Attributes:
        view: The question as a language model sees it; None if no language model decides.
        name: The name of the chooser.
        question: The text of the question with which the chooser compares paths.
        chooser: Compares paths in a hop, and selects entities.
        accepted_by: The chooser of another package that accepts or rejects paths; "" if scores decide.
        calibrated_encoder: The embedding model, if confidence was measured with it.
        orders_winners: Whether the winners of a tournament need no further comparison.
    """

    def __init__(
        self,
        asked: Asked,
        resources: Resources,
        trace: Trace,
        view: PromptView | None = None,
        clauses: Mapping[Entity, str] = MappingProxyType({}),
    ) -> None:
        self.asked = asked
        self.trace = trace
        self.question = asked.masked if view is None else view.question
        self._settings = settings = resources.settings
        self._clauses, self.view, self._encoder = clauses, view, resources.encoder
        if "trained" in (settings.rank.chooser, settings.rank.prefilter) and resources.ranker is None:
            raise SettingsError(
                "The value `trained` of rank.chooser or rank.prefilter needs a trained ranker.",
                "Add ",
                Option("ranker", "FILE"),
                ". Create the file with `kgqa rank train`.",
            )
        self._trained = resources.ranker
        known = self._encoder is not None and is_calibrated(self._encoder.name)
        self.calibrated_encoder = self._encoder if known else None
        self._tournament = tournament(settings.rank.tournament)
        self.orders_winners = self._tournament.orders_winners
        name = settings.rank.chooser
        self.accepted_by = "" if view is not None or is_ours("chooser", name) else f"the chooser {name}"
        self.is_random = view is None and name == "random"
        self._inner = self._opened(resources)
        self.name = self._inner.name
        # with one vote, VotingChooser only shuffles each pair; this matters for a model that favours one position
        votes = settings.rank.votes
        self.chooser = CachingChooser(VotingChooser(self._inner, votes) if votes > 1 or view else self._inner)

    @cached_property
    def scores(self) -> PathScores:
        """The scores of paths; created when needed, because a ranking by a language model rarely uses scores."""
        return self._scores(self._encoder, self._trained if self._settings.rank.chooser == "trained" else None)

    @cached_property
    def plain_scores(self) -> PathScores:
        """The scores on which the confidence is based, whatever chooser is used."""
        plain = self._encoder is self.calibrated_encoder and self._settings.rank.chooser != "trained"
        return self.scores if plain else self._scores(self.calibrated_encoder)

    def _scores(self, encoder: CachedEncoder | None, similarity: Scorer | None = None) -> PathScores:
        asked, rank = self.asked, self._settings.rank
        return PathScores(asked.masked, asked.cues, encoder=encoder, rank=rank, kind=asked.kind, similarity=similarity)

    def _opened(self, resources: Resources) -> Chooser:
        settings = self._settings
        if self.view is not None:
            return model_chooser(self.view, resources, self.trace)
        if self.is_random:
            return RandomChooser(settings.rank.seed)
        if self.accepted_by:
            return open_chooser(settings.rank.chooser, resources)
        name = "similarity of embeddings" if self._encoder else "similarity of words (BM25)"
        return ScoringChooser(
            lambda question, candidates: self.scores.promising(candidates),
            "a trained ranker" if settings.rank.chooser == "trained" else name,
            texts=text_similarity(self._encoder),
            accept_at=settings.rank.accept,
        )

    def shortlist(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Select the paths that enter the tournament; those from a generic topic only join those from others."""
        generic = self.view.generic if self.view else ()
        return self.prefilter([each for each in pool if each.path.topic not in generic] or pool)

    def prefilter(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Select the best candidates without a language model."""
        rank = self._settings.rank
        return prefilter(
            self.asked.masked,
            pool,
            keep=rank.pool,
            encoder=self._encoder,
            lexical_weight=rank.lexical_weight,
            method=rank.prefilter,
            seed=rank.seed,
            score=self._trained,
            lexical_variant=rank.bm25,
        )

    def tournament(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Return the winners of a hop, best first.

        With clauses, there is one tournament per topic, and the result alternates between the topics' winners.
        """
        if not self._clauses:
            return self.play(self.question, pool, self.chooser)
        winners = [
            self.play(self._clauses.get(topic, self.question), [c for c in pool if c.path.topic == topic], self.chooser)
            for topic in dict.fromkeys(candidate.path.topic for candidate in pool)
        ]
        return [each for same_rank in zip_longest(*winners) for each in same_rank if each is not None]

    def play(self, question: str, pool: Sequence[Candidate], chooser: CachingChooser) -> list[Candidate]:
        """Return the winners of a tournament, best first."""
        if self.view is not None and not self.view.published:
            pool = self.view.distinct(pool)
        parameters = {name: self._settings.values[key] for name, key in self._tournament.parameters.items()}
        before = chooser.calls
        try:
            return self._tournament.play(
                question, pool, chooser, k=self._settings.explore.beam, record=self.trace.record, **parameters
            )
        finally:
            self.trace.count("comparisons", chooser.calls - before)

    def best_first(self, candidates: Sequence[Candidate]) -> list[tuple[Candidate, float]]:
        """Return the distinct candidates with their scores, best first; paths of different lengths are comparable."""
        distinct = list({c.identity: c for c in candidates}.values())
        values = self._inner.score(self.asked.masked, distinct) if self.is_random else self.scores.complete(distinct)
        return sorted(zip(distinct, map(float, values)), key=lambda pair: -pair[1])

    def accepts(self, candidate: Candidate, score: float | None) -> bool:
        """Return whether a path is accepted as an answer, by a chooser of another package or by its score.

        A path that meets paths of other topics needs no minimum score, because meeting them is strong evidence.
        """
        if self.accepted_by:
            return self.chooser.accept(self.question, [[candidate]]) == ["yes"]
        return (score or 0.0) >= self._settings.rank.accept or bool(candidate.joins) or self.is_random


def model_chooser(view: PromptView, resources: Resources, trace: Trace, *, show_ends: bool = False) -> ModelChooser:
    """Return the chooser that asks the language model; with `show_ends`, it compares whole paths and their ends."""
    assert resources.models is not None
    llm = resources.settings.llm
    return ModelChooser(
        resources.models.for_question(trace),
        resources.prompts,
        elements=view.elements if show_ends else view.pruned,
        ends=view.ends,
        show_ends=show_ends,
        samples=view.samples,
        compare=llm.compare,
        reask=llm.reask,
        abstain=not view.published,
        answer=resources.settings.explore.stop == "answered",
    )


def with_confidence(
    found: Answer, candidate: Candidate, ranked: Ranked, ranking: Ranking, *, least: float, most: float
) -> Answer:
    """Return the answer of a path with its confidence, at most `most`; no answer if it is below `least`.

    Args:
        found: The answer.
        candidate: The path.
        ranked: All ranked paths.
        ranking: What ranked them.
        least: The setting `ask.min_score`.
        most: Upper limit of the confidence.
    """
    if ranking.accepted_by:
        note = "has no effect, because the confidence in an answer is known only without a language model."
        return replace(found, notes=(*found.notes, f"{Option('min-score')} {note}")) if least else found
    graph = ranking.asked.kind.graph
    conditions, operation = all_words(graph, candidate)
    shares = ranking.plain_scores.explained(candidate, [*conditions, operation])
    # the kind of answer may be left out
    noun = ranking.asked.cues.noun.split()
    unexplained = [word for word, share in shares.items() if share < UNEXPLAINED and word not in noun]
    if unexplained:
        words = ", ".join(f"“{word}”" for word in unexplained)
        found = replace(found, notes=(*found.notes, f"Nothing in the answer's path explains {words}."))
    features = _features(found, candidate, ranked, ranking, list(shares.values()))
    # a path from a class leaves words out, or all of them name relations that the path has not
    is_bare = starts_at_instances(graph, candidate.path) and not (candidate.conditions or candidate.operation)
    if (is_bare and unexplained) or not (features["explained"] or features["joined"]):
        most = WEAK - 0.01
    measured = calibration("embeddings" if ranking.calibrated_encoder else "words")
    confidence = None if ranking.is_random else measured.confidence(features)
    confidence = None if confidence is None else min(confidence, most)
    rounded = {name: round(value, 4) for name, value in features.items()}
    ranking.trace.record(Rated(path=candidate.words, confidence=confidence, features=rounded))
    if confidence is None or confidence >= least:
        return replace(found, confidence=confidence)
    reason = f"The best answer has a score of {confidence:.0%}, below {Option('min-score', least)}"
    return replace(
        Answer(found.question, "no_answer", method=found.method, notes=found.notes, topics=found.topics),
        reason=f"{reason} ({candidate.words}).",
        approximate=found.approximate,
        confidence=confidence,
    )


def _features(
    found: Answer, candidate: Candidate, ranked: Ranked, ranking: Ranking, shares: Sequence[float]
) -> Features:
    """Return the features of a path that determine the confidence in it (see `rank.confidence`)."""
    steps = candidate.path.steps[starts_at_instances(ranking.asked.kind.graph, candidate.path) :]
    rivals = [other for other, _ in ranked if other.path != candidate.path][:RIVALS]
    linked = [mention for event in ranking.trace.events() if isinstance(event, Linked) for mention in event.mentions]
    features = ranking.plain_scores.features(candidate, rivals, shares)
    if not steps:  # the instances of the class that the question names; there is no path to compare
        features["score"] = 1.0
    others = len(found.topics) - 1
    return features | {
        "joined": len(candidate.joins) / others if others > 0 else 0.0,
        "inexact": float(any(not mention.exact for mention in linked)),
        "backward": float(sum(step.direction == "in" for step in steps)),
        "many": math.log(max(len(found.answers), 1)),
    }
