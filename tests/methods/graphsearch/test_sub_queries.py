"""Sub-questions: references, levels, grounding by earlier answers, and the words of patterns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgqa.methods.graphsearch.sub_queries import (
    SubQuery,
    fill_in,
    levels,
    pattern_words,
    planned,
    without_unknown,
)


def plan(question, texts):
    return planned([(text, ()) for text in texts], question)


def test_needs_and_levels():
    texts = ["Who wrote Emma?", "Where was #1 born?", "Who founded Rome?", "Are #2 and #3 near?", "When did #1 die?"]
    queries = plan("?", texts)
    assert [query.needs for query in queries] == [(), (1,), (), (2, 3), (1,)]
    assert [[query.number for query in level] for level in levels(queries)] == [[1, 3], [2, 5], [4]]


def test_marks_of_the_question_itself_stay():
    (first, second) = plan("Who sang the #1 hit of 1999 and #5 later?", ["Who sang the #1 hit?", "Who is #1 or #7?"])
    assert first.text == "Who sang the #1 hit?" and first.needs == ()
    assert second.text == "Who is #1 or ?" and second.needs == (1,)


def test_numbers_that_are_no_references():
    (query,) = plan("?", ["What costs &#35; 12 or C#3 or #123?"])
    assert query.text == "What costs &#35; 12 or C#3 or #123?" and query.needs == ()


def test_references_to_unknown_numbers_are_removed():
    assert without_unknown("When did #2 of #9 meet Entity#1?", range(1, 3), "?") == "When did #2 of meet Entity#1?"
    assert without_unknown("Is it the #9 hit?", (), "Which #9 hit?") == "Is it the #9 hit?"


def test_a_plan_of_references_only_is_the_question():
    assert plan("Who wrote Emma?", ["#1", "#3", " "]) == [SubQuery(1, "Who wrote Emma?")]


def test_references_in_scripts_without_blanks():
    queries = plan("?", ["《红楼梦》的作者是谁？", "谁是#1的父亲？"])
    assert queries[1].needs == (1,)
    assert fill_in(queries[1], {1: ["曹雪芹"]}, {})[0].text == "谁是曹雪芹的父亲？"


def test_one_name_is_put_in_everywhere():
    query = SubQuery(2, "Where was #1 born, and when was #1 born?", (("#1", "born in", "#2"),), (1,))
    (grounded,) = fill_in(query, {1: ["Ada"]}, {})
    text = "Where was Ada born, and when was Ada born?"
    assert grounded == SubQuery(2, text, (("Ada", "born in", "#2"),))


def test_several_names_give_a_sub_question_each():
    query = SubQuery(3, "Is #1 near #2?", (), (1, 2))
    grounded = fill_in(query, {1: ["A", "B", "A"], 2: ["C"]}, {})
    assert [each.text for each in grounded] == ["Is A near C?", "Is B near C?"]
    assert [each.text for each in fill_in(query, {1: ["A", "B"], 2: ["C"]}, {}, most=1)] == ["Is A or B near C?"]
    assert len(fill_in(SubQuery(2, "#1?", (), (1,)), {1: list("ABCDE")}, {})) == 3


def test_unknown_answers_become_the_words_of_their_sub_question():
    query = SubQuery(3, "Where did #1 meet #2?", (), (1, 2))
    (grounded,) = fill_in(query, {1: [], 2: ["Ada"]}, {1: "谁写了第一个程序？"})
    assert grounded.text == "Where did [谁写了第一个程序] meet Ada?"


def test_answers_that_look_like_references_are_not_replaced_again():
    query = SubQuery(3, "Are #1 and #2 near?", (), (1, 2))
    (grounded,) = fill_in(query, {1: ["#2"], 2: ["\\1 #1"]}, {})
    assert grounded.text == r"Are #2 and \1 #1 near?"


def test_words_of_patterns_keep_digits_and_all_scripts():
    patterns = [("Entity#1", "gross income per acre", "$1,363.00"), ("#1", "种植于", "巴黎 2024"), ("?", "is", "?x")]
    assert pattern_words(patterns) == "gross income per acre $1,363.00 种植于 巴黎 2024 is"
    assert pattern_words([("#1", "born in", "?")]) == ""  # the sub-question in words says more
    assert pattern_words([]) == "" and pattern_words([("#1", "", "#2")]) == ""


@given(st.lists(st.text(alphabet="#123456789 aé", max_size=12), max_size=9))
def test_any_plan_has_only_backward_references_and_ends(texts):
    queries = plan("A question.", texts)
    assert all(number < query.number for query in queries for number in query.needs)
    assert sorted(query.number for level in levels(queries) for query in level) == [q.number for q in queries]
    for query in queries:
        assert 1 <= len(fill_in(query, {number: ["x", "y"] for number in query.needs}, {})) <= 3
