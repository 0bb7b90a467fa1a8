"""Sub-questions: references, levels, grounding by earlier answers, and the words of patterns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgqa.methods.graphsearch.sub_queries import SubQuery, fill_in, levels, planned


def plan(question, texts):
    return planned([(text, ()) for text in texts], question)


def test_marks_of_the_question_itself_stay():
    (first, second) = plan("Who sang the #1 hit of 1999 and #5 later?", ["Who sang the #1 hit?", "Who is #1 or #7?"])
    assert first.text == "Who sang the #1 hit?" and first.needs == ()
    assert second.text == "Who is #1 or ?" and second.needs == (1,)


def test_answers_that_look_like_references_are_not_replaced_again():
    query = SubQuery(3, "Are #1 and #2 near?", (), (1, 2))
    (grounded,) = fill_in(query, {1: ["#2"], 2: ["\\1 #1"]}, {})
    assert grounded.text == r"Are #2 and \1 #1 near?"


@given(st.lists(st.text(alphabet="#123456789 aé", max_size=12), max_size=9))
def test_any_plan_has_only_backward_references_and_ends(texts):
    queries = plan("A question.", texts)
    assert all(number < query.number for query in queries for number in query.needs)
    assert sorted(query.number for level in levels(queries) for query in level) == [q.number for q in queries]
    for query in queries:
        assert 1 <= len(fill_in(query, {number: ["x", "y"] for number in query.needs}, {})) <= 3
