"""Paths through the facts that an answer over text rests on."""

from __future__ import annotations

from tests.methods.text.test_rag import folder, reply, run  # noqa: F401  # fixtures


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


def test_path_to_a_topic_of_the_question_is_not_given(run):  # noqa: F811
    question = "Is London or Ada Lovelace the name of a city?"
    answer, _ = run(reply("London", support=[(1, "Ada Lovelace was born in London")]), question=question)
    assert answer.grounding == "text" and answer.sparql == "" and answer.evidence_sparql
