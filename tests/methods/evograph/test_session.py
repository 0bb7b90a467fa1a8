"""A session of EvoGraph-R1: turns, results, answers and their queries."""

from __future__ import annotations

from kgqa.events import Called, Finished, Retrieved, Seen
from tests.methods.evograph.conftest import call, final


def test_an_answer_in_a_cited_result_is_the_result_of_its_query(run):
    asked = run(call("graph_search", query="first tide clock museum"), final("Museum of Oster Quay [1]"))
    answer = asked.answer
    assert answer.status == "answered" and answer.grounding == "text"
    assert [each.name for each in answer.answers] == ["museum of Oster Quay"]  # as it stands in the text
    assert answer.query_class == answer.evidence_class == "exact" and "SUBSTR" in answer.sparql
    assert "Oster Quay" not in answer.sparql
    assert [each.quote for each in answer.citations] == ["It stands in the museum of Oster Quay."]
    assert [event.name for event in asked.events(Called)] == ["graph_search"]
    assert asked.events(Retrieved)[0].pieces and asked.events(Seen)[0].count
    assert asked.events(Finished)[0].grounded
    assert [each["role"] for each in asked.requests[-1]] == ["system", "user", "assistant", "user"]
