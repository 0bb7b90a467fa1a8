"""The evidence graph: which edits hold."""

from __future__ import annotations

import json

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.graph.opening import open_graph
from kgqa.llm.replies.reply import reply_of
from kgqa.methods.tog3.replies import ProposedFact, Refinement
from kgqa.methods.tog3.subgraph import Subgraph
from kgqa.trace import LocalFact

from .conftest import BORN


@pytest.fixture
def state(folder):
    """The evidence graph, the passages about Mara Holt and about the tide clock, and stored facts."""
    with Corpus.open(folder) as corpus, open_graph(folder) as graph:
        chunks, facts = corpus.index.pieces("chunk"), corpus.index.pieces("statement")
        passages = [chunks.piece(row) for row in range(len(chunks))]
        wanted = [next(each for each in passages if text in each.text) for text in (BORN, "museum of Oster")]
        yield Subgraph(corpus, graph), wanted, [facts.piece(row) for row in range(3)], corpus


def proposed(subject, end, quote, passage=1):
    fact = ProposedFact(subject=subject, relation="relation", object=end, passage=passage, quote=quote)
    return Refinement(add=(fact,))


@pytest.mark.parametrize(
    ("subject", "end", "quote", "holds"),
    [
        ("Mara Holt", "Tarn Harbour", BORN, True),
        ("Mara  Holt", "1871", "was born in Tarn Harbour\nin 1871", True),  # blanks aside; Mara Holt is an entity
        ("Mara Holt", "Mars", BORN, False),  # a name that is nowhere
        ("Mara Holt", "Har", BORN, False),  # a part of a word
        ("Mara Holt", "Tarn Harbour", "", False),
        ("Oster Quay", "Tarn Harbour", "She built the first tide clock.", False),  # known names, but not in the quote
    ],
)
def test_new_fact_needs_its_quote_and_known_names(state, subject, end, quote, holds):
    graph, passages, _, _ = state
    event = graph.edit(1, [], passages, proposed(subject, end, quote))
    assert (len(event.added), event.refused) == ((1, 0) if holds else (0, 1)) and len(graph.local) == len(event.added)
    if holds:
        assert event.added == (LocalFact(subject, "relation", end, passages[0].iri, quote),)


def test_proposals_without_the_required_form_are_refused(state):
    graph, passages, _, _ = state
    fact = {"subject": "Mara Holt", "relation": "r", "object": "Tarn Harbour", "passage": 1, "quote": BORN}
    wrong = [{**fact, "passage": 3}, {**fact, "subject": ""}, BORN, {**fact, "passage": True}]
    text = json.dumps({"keep": [], "same": [["A"], ["A", "A"]], "add": [fact, *wrong]})
    event = graph.edit(1, [], passages, reply_of(Refinement).read(text).value)
    assert len(event.added) == 1 and event.refused == 6


def test_facts_that_are_not_kept_go_and_stay_away(state):
    graph, passages, facts, _ = state
    graph.add(1, passages, facts)
    event = graph.edit(1, facts, passages, Refinement(keep=(2, 9)))
    assert event.removed == (facts[0].iri, facts[2].iri) and list(graph.facts) == [facts[1].iri]
    assert not graph.add(2, passages, facts) and list(graph.facts) == [facts[1].iri]
    assert not graph.edit(2, facts, passages, Refinement()).removed


def test_same_names_need_to_be_known_and_of_one_type(state, monkeypatch):
    graph, passages, _, _ = state
    pair, invented = ("Mara Holt", "tide clock"), ("Mara Holt", "Mars")
    event = graph.edit(1, [], passages, Refinement(same=(pair, invented, pair)))
    assert event.merged == (pair,) and event.refused == 1
    monkeypatch.setattr(graph, "_types", lambda iri: ["person"] if "mara" in iri else ["ship"])
    assert graph.edit(2, [], passages, Refinement(same=(("Tarn Harbour", "Mara Holt"),))).refused == 1
