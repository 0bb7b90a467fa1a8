"""The confidence in an answer that was found without a language model, and the words that its path leaves out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from kgqa.graph.query.export import all_words
from kgqa.methods.tournament.ranking import Ranking
from kgqa.methods.tournament.search import Ranked
from kgqa.model import WEAK, Answer, Candidate
from kgqa.rank.confidence import Features, calibration
from kgqa.search.classes import starts_at_instances
from kgqa.text.hints import Option
from kgqa.trace import Linked, Rated

UNEXPLAINED = 0.3
"""A path does not explain the words of a question that have a smaller share."""
RIVALS = 10
"""How many other paths are compared with the best path to determine the confidence in it."""


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
