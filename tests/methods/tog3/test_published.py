"""ToG-3 as published: the order of its prompts and their number in every branch."""

from __future__ import annotations

import pytest

from .conftest import ASKED, BIRTH, BORN, EDITS, HILL, PUBLISHED, answered, judged

ROUND = ["plain_answer", "sufficient", "evolve", "keywords", "refine"]
FINAL = answered("Tarn Harbour", BORN)
KEYWORDS = {"keywords": ["Mara Holt", "tarn harbour"]}
SCRIPT = {
    "keywords": KEYWORDS,
    "plain_answer": "Tarn Harbour",
    "sufficient": {"verdict": "NO"},
    "evolve": [judged("NO", text) for text in ASKED],
    "refine": EDITS,
    "final": FINAL,
}


@pytest.fixture
def published(run):
    """`published(replies, **settings) -> Run`."""

    def published(replies={}, **given):
        return run(replies={**SCRIPT, **replies}, **{**PUBLISHED, **given})

    return published


@pytest.mark.parametrize("at", [1, 3])
def test_accepted_in_a_round(published, at):
    verdicts = [{"verdict": "NO"}] * (at - 1) + [{"verdict": "YES"}]
    done = published({"sufficient": verdicts})
    assert done.kinds == ["keywords", *ROUND * (at - 1), "plain_answer", "sufficient", "final"]
    assert len(done.requests) == 5 * at - 1 and str(done.answer) == "Tarn Harbour"
    assert done.answer.grounding in ("text", "graph") and not any("judged sufficient" in n for n in done.answer.notes)


@pytest.mark.parametrize("most", [1, 3])
def test_never_accepted(published, most):
    done = published(tog3__rounds=most)
    assert done.kinds == ["keywords", *ROUND * most, "final"]
    assert len(done.requests) == 5 * most + 2
    assert any("No answer was judged sufficient" in note for note in done.answer.notes)


@pytest.mark.parametrize("questions", [[], ["Where was Mara Holt born?"]])
def test_no_new_sub_question(published, questions):
    done = published({"evolve": judged("NO", *questions)})
    assert done.kinds == ["keywords", "plain_answer", "sufficient", "evolve", "final"]  # 5r


def test_unknown_answer_is_never_sufficient(published):
    done = published({"plain_answer": "Unknown", "sufficient": {"verdict": "YES"}}, tog3__rounds=1)
    assert done.kinds == ["keywords", *ROUND, "final"]
    (event,) = done.events("sufficiency_judged")
    assert (event.verdict, event.accepted) == ("yes", False)


def test_two_passages_closest_to_the_sub_question_are_shown_with_their_facts(published):
    done = published()
    shown = done.shown("plain_answer")
    assert all(len(prompt.passages) == 2 for prompt in shown)
    assert any("Birthplace Tarn Harbour" in fact for fact in shown[0].listed.values())
    assert shown[1].shows([HILL]) and not shown[0].shows([HILL])  # ASKED[0] asks for it
    assert any("reranked by similarity" in note for note in done.answer.notes)


def test_what_the_evolved_graph_adds_is_shown_in_the_next_round(published):
    def edits(prompt):
        number = prompt.passage_with(HILL).number
        fact = {"subject": "Corrin", "relation": "is topped by", "object": "Ben Aske", "passage": number, "quote": HILL}
        return {**EDITS, "add": [fact]}

    done = published({"refine": [edits, EDITS]}, tog3__rounds=2)
    first, second = done.prompts("plain_answer")
    assert "is topped by" not in first and "Corrin | is topped by | Ben Aske" in second


def test_history_is_the_whole_trajectory(published):
    done = published({"plain_answer": ["Nobody knows.", "Tarn Harbour", "Corrin"]})
    second, final = done.prompts("plain_answer")[1], done.prompts("final")[0]
    assert f"Round 1, {BIRTH} Nobody knows. (not sufficient)" in second and f"Sub-question 1: {ASKED[0]}" in second
    assert f"Round 2, {ASKED[0]} Tarn Harbour (not sufficient)" in final and f"Round 3, {ASKED[1]} Corrin" in final
    earlier = [passage for prompt in done.shown("plain_answer") for passage in prompt.passages]
    assert {each.text for each in done.shown("final")[0].passages} == {each.text for each in earlier}


def test_unknown_stays_unknown_and_an_unproven_answer_unaccepted(published):
    likely = {**answered("Tarn Harbour"), "answer": ["Unknown"], "likely": ["Tarn Harbour"]}
    done = published({"final": likely})
    assert done.answer.status == "no_answer" and not done.answer.answers
    assert any("reranked by similarity" in note for note in done.answer.notes)
    done = published({"final": answered("Mars", "Mars is near.")})
    assert str(done.answer) == "Mars" and not done.answer.accepted


def test_links_without_a_quote_may_be_added(published):
    link = {"subject": "Mara Holt", "relation": "knows", "object": "Tarn Harbour", "passage": 1, "quote": ""}
    done = published({"refine": {**EDITS, "add": [link, {**link, "object": "Mars"}]}}, tog3__rounds=1, tog3__keep=5)
    (event,) = done.events("evidence_edited")
    assert [each.object for each in event.added] == ["Tarn Harbour"] and event.refused == 1


def test_ablations(published):
    done = published(tog3__evolve_query="off")
    assert done.kinds == ["keywords", *["plain_answer", "sufficient", "refine"] * 3, "final"]
    assert [each.text for event in done.events("planned") for each in event.sub_questions] == [
        "Where was Mara Holt born?"
    ] * 3
    done = published(tog3__evolve_graph="off")
    assert done.kinds == ["keywords", *["plain_answer", "sufficient", "evolve", "keywords"] * 3, "final"]
    assert "keywords" not in published(tog3__kinds="chunk").kinds


def test_nothing_retrieved(run):
    replies = {"evolve": judged("NO", "Plugh xyzzy?"), "keywords": {"keywords": ["Nowhere"]}}
    done = run("Xyzzy plugh?", replies=replies, **PUBLISHED)
    assert done.kinds == ["keywords", "evolve", "keywords"] and done.answer.status == "no_answer"


@pytest.mark.parametrize("calls", [0, 1, 2, 7, 16])
def test_budget(published, calls):
    done = published(budget__calls=calls)
    assert done.answer.status == "budget_exhausted" and len(done.requests) == calls
    assert [each.name for each in done.answer.answers] == ["Tarn Harbour"] * (calls >= 2)
