"""Paths through the facts that an answer over text rests on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgqa.methods.grounding import MAX_HOPS, shortest_walk
from kgqa.model import Entity, Triple
from tests.methods.text.test_rag import folder, reply, run  # noqa: F401  # fixtures

A, B, C, D = (Entity(f"urn:{name}") for name in "ABCD")
NODES = st.sampled_from([A, B, C, D])
FACTS = st.lists(st.builds(Triple, NODES, st.sampled_from(["urn:r", "urn:s"]), NODES), max_size=8)


@given(FACTS, NODES, NODES)
def test_every_step_of_a_walk_is_a_fact(facts, start, end):
    walk = shortest_walk(facts, start, end)
    assert len(walk) <= MAX_HOPS
    if walk:
        assert walk[-1][1] == end
        here = start
        for step, there in walk:
            pair = (here, there) if step.direction == "out" else (there, here)
            assert Triple(pair[0], step.relation, pair[1]) in facts
            here = there
    else:
        assert start == end or Triple(start, "urn:r", end) not in facts


def test_fact_in_a_quote_leads_to_the_answer(run):  # noqa: F811
    question = "Where was Ada Lovelace born?"
    answer, _ = run(reply("london", support=[(1, "Ada Lovelace was born in London")]), question=question)
    assert answer.grounding == "graph" and answer.query_class in ("exact", "restricted") and not answer.defects
    (named,) = answer.answers
    assert named.name == "London" and named.id and "London" not in answer.sparql
    assert [topic.name for topic in answer.topics] == ["Ada Lovelace"]
    assert answer.evidence_class == "exact" and [each.kind for each in answer.evidence] == [
        "path",
        "quote",
        "statement",
    ]


def test_fact_outside_the_quotes_is_not_used(run):  # noqa: F811
    answer, _ = run(
        reply("London", support=[(1, "She wrote the first program.")]), question="Where was Ada Lovelace born?"
    )
    assert answer.grounding == "model" and answer.sparql == ""


def test_path_to_a_topic_of_the_question_is_not_given(run):  # noqa: F811
    question = "Is London or Ada Lovelace the name of a city?"
    answer, _ = run(reply("London", support=[(1, "Ada Lovelace was born in London")]), question=question)
    assert answer.grounding == "text" and answer.sparql == "" and answer.evidence_sparql
