"""Bonuses and penalties added to the similarity of a path."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.methods.tournament.scoring import (
    AGREES,
    UNKNOWN_TYPE,
    PathScores,
)
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.model.conditions import XSD
from kgqa.search.cues import Cues
from kgqa.search.kinds import AskedKind
from kgqa.settings.values import resolve

from ..memory_graph import memory_graph

TOPIC = Entity("http://e/t")
ANY = AskedKind(memory_graph([], schema="rdfs"), "", "")
WEIGHTS = replace(resolve({}).rank, alignment=0.5, depth_penalty=0.15, answer_type=0.2)


class LetterEncoder:
    """An encoder of letter counts, whose cosines can be computed by hand."""

    def encode(self, texts):
        counts = np.array([[text.count(chr(97 + n)) for n in range(26)] for text in texts], dtype=np.float32)
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)

    encode_questions = encode


def candidate(*hops, leads_to="", directions=None):
    steps = tuple(Step(f"http://e/{hop}", d) for hop, d in zip(hops, directions or ["out"] * len(hops)))
    return Candidate(RelationPath(TOPIC, steps), ", ".join(hops), hops=hops, leads_to=leads_to)


def constant_similarity(question, candidates):
    return np.full(len(candidates), 0.5)


def scores(cues, candidates, *, encoder=None, weights=WEIGHTS, kind=ANY, similarity=constant_similarity):
    found = PathScores("question", cues, encoder=encoder, rank=weights, kind=kind, similarity=similarity)
    return found.complete(candidates), found.promising(candidates)


@given(st.integers(1, 4), st.integers(1, 4))
def test_penalty_for_each_hop_too_many_or_too_few(announced, length):
    words = ("many", "words", "in", "it")
    (complete,), _ = scores(Cues(words, announced), [candidate(*"abcd"[:length])])
    too_many, too_few = max(length - announced, 0), max(announced - length, 0)
    assert complete == pytest.approx(0.5 - 0.15 * too_many - 0.07 * too_few)


def test_answer_type_counts_by_similarity():
    cues = Cues((), 1, asked_for="abc")
    same, other, unknown = (candidate("x", leads_to=text) for text in ("cab", "xyz", ""))
    (first, second, third), _ = scores(cues, [same, other, unknown], encoder=LetterEncoder())
    assert first == pytest.approx(0.5 + 0.2 * (1 - UNKNOWN_TYPE)) and second == pytest.approx(0.5 - 0.2 * UNKNOWN_TYPE)
    assert third == pytest.approx(first)  # a type that is not declared is no fault
    (second, third), _ = scores(cues, [other, unknown], encoder=LetterEncoder())
    assert third == pytest.approx(0.5)


def test_kind_of_the_ends_counts_with_and_without_an_encoder():
    dates, things, unknown = (
        replace(candidate("x"), kinds=tuple(kinds)) for kinds in ([XSD + "date"], ["http://e/Thing"], [])
    )
    asked = AskedKind(ANY.graph, "date", "")
    for encoder in (None, LetterEncoder()):
        (right, wrong, neutral), _ = scores(Cues((), 1), [dates, things, unknown], encoder=encoder, kind=asked)
        assert right - neutral == pytest.approx(0.2 * AGREES) == neutral - wrong
    assert scores(Cues((), 1), [dates])[0] == scores(Cues((), 1), [things])[0]


def test_beginning_of_a_chain_is_promising():
    beginning, wrong = candidate("ab"), candidate("xy")
    complete, promising = scores(Cues(("ab", "cd"), 2), [beginning, wrong], encoder=LetterEncoder())
    assert (promising >= complete).all()
    assert promising[0] - complete[0] > promising[1] - complete[1]
