"""The ranking of the paths of one question (prefilter, chooser and tournament), and the confidence in the best path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest

from kgqa.errors import SettingsError
from kgqa.graph.query.export import all_words
from kgqa.llm.model_chooser import ModelChooser
from kgqa.methods.tournament.asked import AskedQuestion, clauses_of
from kgqa.methods.tournament.scoring import PathScores
from kgqa.model import WEAK, Answer, Candidate
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

    Attributes:
        asked: The question.
        name: The name of the chooser.
        question: The text of the question with which the chooser compares paths.
        chooser: Compares paths in a hop, and selects entities.
        accepted_by: The chooser of another package that accepts or rejects paths; "" if scores decide.
        calibrated_encoder: The embedding model, if confidence was measured with it.
        orders_winners: Whether the winners of a tournament need no further comparison.
    """

    def __init__(self, asked: AskedQuestion) -> None:
        self.asked, view = asked, asked.view
        self.question = asked.masked if view is None else view.question
        self._settings, self._encoder, self._trained = asked.settings, asked.resources.encoder, asked.resources.ranker
        rank = self._settings.rank
        if "trained" in (rank.chooser, rank.prefilter) and self._trained is None:
            raise SettingsError(
                "The value `trained` of rank.chooser or rank.prefilter needs a trained ranker.",
                "Add ",
                Option("ranker", "FILE"),
                ". Create the file with `kgqa rank train`.",
            )
        known = self._encoder is not None and is_calibrated(self._encoder.name)
        self.calibrated_encoder = self._encoder if known else None
        self._tournament = tournament(rank.tournament)
        self.orders_winners = self._tournament.orders_winners
        self.accepted_by = "" if view is not None or is_ours("chooser", rank.chooser) else f"the chooser {rank.chooser}"
        self.is_random = view is None and rank.chooser == "random"
        self._inner = self._opened()
        self.name = self._inner.name
        # with one vote, VotingChooser only shuffles each pair; this matters for a model that favours one position
        self.chooser = CachingChooser(VotingChooser(self._inner, rank.votes) if rank.votes > 1 or view else self._inner)
        self._clauses = clauses_of(asked) if view is not None and self._settings.explore.clauses == "on" else {}

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

    def _opened(self) -> Chooser:
        if self.asked.view is not None:
            return model_chooser(self.asked)
        rank = self._settings.rank
        if self.is_random:
            return RandomChooser(rank.seed)
        if self.accepted_by:
            return open_chooser(rank.chooser, self.asked.resources)
        name = "similarity of embeddings" if self._encoder else "similarity of words (BM25)"
        return ScoringChooser(
            lambda question, candidates: self.scores.promising(candidates),
            "a trained ranker" if rank.chooser == "trained" else name,
            texts=text_similarity(self._encoder),
            accept_at=rank.accept,
        )

    def shortlist(self, pool: Sequence[Candidate]) -> list[Candidate]:
        """Select the paths that enter the tournament; those from a generic topic only join those from others."""
        generic = self.asked.view.generic if self.asked.view else ()
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
        if self.asked.view is not None and not self.asked.view.published:
            pool = self.asked.view.distinct(pool)
        parameters = {name: self._settings.values[key] for name, key in self._tournament.parameters.items()}
        before = chooser.calls
        try:
            return self._tournament.play(
                question, pool, chooser, k=self._settings.explore.beam, record=self.asked.trace.record, **parameters
            )
        finally:
            self.asked.trace.count("comparisons", chooser.calls - before)

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


def model_chooser(asked: AskedQuestion, *, show_ends: bool = False) -> ModelChooser:
    """Return the chooser that asks the language model; with `show_ends`, it compares whole paths and their ends."""
    resources, view = asked.resources, asked.shown
    assert resources.models is not None
    return ModelChooser(
        models=resources.models.for_question(asked.trace),
        prompts=resources.prompts,
        elements=view.elements if show_ends else view.pruned,
        ends=view.ends,
        show_ends=show_ends,
        samples=view.samples,
        compare=asked.settings.llm.compare,
        reask=asked.settings.llm.reask,
        abstain=not view.published,
        answer=asked.settings.explore.stop == "answered",
    )


def with_confidence(found: Answer, candidate: Candidate, ranked: Ranked, ranking: Ranking, *, most: float) -> Answer:
    """Return the answer of a path with its confidence, at most `most`; no answer if it is below `ask.min_score`.

    Args:
        found: The answer.
        candidate: The path.
        ranked: All ranked paths.
        ranking: What ranked them.
        most: Upper limit of the confidence.
    """
    graph, least = ranking.asked.graph, ranking.asked.settings.ask.min_score
    if ranking.accepted_by:
        note = "has no effect, because the confidence in an answer is known only without a language model."
        return replace(found, notes=(*found.notes, f"{Option('min-score')} {note}")) if least else found
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
    ranking.asked.trace.record(Rated(path=candidate.words, confidence=confidence, features=rounded))
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
    steps = candidate.path.steps[starts_at_instances(ranking.asked.graph, candidate.path) :]
    rivals = [other for other, _ in ranked if other.path != candidate.path][:RIVALS]
    linked = [
        mention for event in ranking.asked.trace.events() if isinstance(event, Linked) for mention in event.mentions
    ]
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
