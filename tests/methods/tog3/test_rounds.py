"""The rounds of ToG-3 in our reading: what is asked in every branch, what is kept, and what a prompt shows."""

from __future__ import annotations

import pytest

from kgqa.corpus.building.build import build_corpus
from kgqa.methods.evidence import LIKELY
from kgqa.testing.agents.tog3_agent import Tog3Agent
from tests.small_corpus import QUESTIONS, SHORT, SINGLE

from .conftest import ASKED, BIRTH, BORN, EDITS, HILL, UNKNOWN, answered, judged


class TestCalls:
    @pytest.mark.parametrize("at", [1, 3])
    def test_accepted_in_a_round(self, run, at):
        names = [f"Name {number}" for number in range(1, 5)]
        replies = {
            "answer": [answered(name) for name in names],
            "reflect": [*(judged("NO", question) for question in ASKED[: at - 1]), judged("YES")],
            "refine": EDITS,
        }
        done = run(replies=replies, tog3__rounds=4)
        assert len(done.requests) == 3 * at - 1 and done.kinds.count("refine") == at - 1
        assert str(done.answer) == names[at - 1] and done.kinds[-1] == "reflect"
        assert [event.why for event in done.events("stopped")] == ["the answer was judged sufficient"]

    @pytest.mark.parametrize("most", [1, 4])
    def test_never_accepted(self, run, most):
        replies = {
            "answer": [answered(f"Name {number}") for number in range(1, 5)],
            "reflect": [judged("NO", question) for question in ASKED],
            "refine": EDITS,
            "final": answered("Ben Aske", HILL),
        }
        done = run(replies=replies, tog3__rounds=most)
        assert len(done.requests) == 3 * most - 2 and done.kinds.count("refine") == most - 1
        assert done.kinds[-1] == "final" and done.kinds.count("final") == 1
        assert str(done.answer) == "Ben Aske" and any("No answer was judged" in note for note in done.answer.notes)

    def test_same_supported_answer_twice(self, run):
        replies = {"answer": [answered("Tarn Harbour"), answered("tarn harbour")], "reflect": judged("NO", ASKED[1])}
        done = run(replies=replies, tog3__rounds=5)
        assert done.kinds == ["answer", "reflect", "refine", "answer"]  # 2r - 1 + s
        assert str(done.answer).casefold() == "tarn harbour"

    @pytest.mark.parametrize("questions", [[], [BIRTH], ["", 7], ["Xyzzy plugh?"]])
    def test_nothing_new(self, run, questions):
        done = run(replies={"answer": answered("A"), "reflect": judged("NO", *questions)})
        assert done.kinds == ["answer", "reflect", "final"]  # 2r + s + 1

    def test_unread_verdict_is_asked_again_once_and_never_a_yes(self, run):
        done = run(replies={"answer": answered("A"), "reflect": "Perhaps."})
        assert done.kinds == ["answer", "reflect", "reflect", "final"]
        (event,) = done.events("sufficiency_judged")
        assert (event.verdict, event.accepted) == ("unparsed", False)

    def test_unread_final_reply(self, run):
        replies = {"answer": answered("A"), "reflect": judged("NO"), "final": "Well."}
        done = run(replies=replies)
        assert str(done.answer) == "A" and any("could not be read" in note for note in done.answer.notes)
        done = run(replies={**replies, "answer": UNKNOWN, "evolve": judged("NO")})
        assert done.answer.status == "no_answer" and "could not be read" in done.answer.reason


class TestNothingRetrieved:
    def test_other_words_find_something(self, run):
        done = run("Xyzzy plugh?", replies={"evolve": judged("NO", SINGLE), "answer": answered("A", HILL)})
        assert done.kinds[:2] == ["evolve", "answer"] and done.events("planned")[0].round == 0

    def test_nothing_is_asked_where_no_words_can_find_anything(self, run, tmp_path):
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "a.txt").write_text("Mara Holt was born in Tarn Harbour.")
        build_corpus(tmp_path / "corpus", [tmp_path / "docs"], embeddings="off")
        done = run(corpus=tmp_path / "corpus", tog3__kinds="statement,path")
        assert not done.requests and done.answer.status == "no_answer"


class TestEconomy:
    """Answer and verdict in one prompt: r calls, at most K."""

    def turn(self, name, verdict, *questions, quote=BORN):
        return {**answered(name, quote), **judged(verdict, *questions)}

    @pytest.mark.parametrize("at", [1, 2])
    def test_accepted_in_a_round(self, run, at):
        replies = {"turn": [*(self.turn("A", "NO", text) for text in ASKED[: at - 1]), self.turn("B", "YES")]}
        done = run(replies=replies, ask__preset="economy")
        assert done.kinds == ["turn"] * at and str(done.answer) == "B"

    def test_sufficient_without_a_verified_quote(self, run):
        done = run(replies={"turn": self.turn("A", "YES", quote="Mars is near.")}, ask__preset="economy")
        assert done.kinds == ["turn", "final"]
        (event,) = done.events("sufficiency_judged")
        assert (event.verdict, event.accepted) == ("yes", False)


class TestAblations:
    def test_without_evolving_queries(self, run):
        done = run(replies={"answer": answered("A"), "sufficient": {"verdict": "NO"}}, tog3__evolve_query="off")
        assert done.kinds == ["answer", "sufficient", "refine", "final"]
        assert [each.text for event in done.events("planned") for each in event.sub_questions] == [BIRTH]
        assert run(replies={"answer": UNKNOWN}, tog3__evolve_query="off").kinds == ["answer", "refine", "final"]

    def test_kinds(self, run):
        done = run(tog3__kinds="chunk")
        assert "Facts" not in done.prompts("answer")[0] and not any(each.channel for each in done.events("retrieved"))
        facts = run(tog3__kinds="statement").prompts("answer")[0]
        assert "Facts" in facts and "Passage 1" not in facts
        done = run(tog3__kinds="chunk,statement,community")
        assert {each.channel for each in done.events("retrieved")} == {"", "statement", "community"}
        assert "Background" in done.prompts("answer")[0]


class TestPrompts:
    def test_next_round_shows_the_edits_of_this_one(self, run):
        fact = {"subject": "Mara Holt", "relation": "birthplace", "object": "Tarn Harbour", "passage": 1, "quote": BORN}
        first = {}

        def edits(prompt):
            first["facts"] = prompt.user.partition("Facts:")[2].partition("Passage 1")[0]
            return {"keep": [1], "same": [["Mara Holt", "Tarn Harbour"]], "add": [fact, {**fact, "quote": "Mars."}]}

        done = run(
            replies={"answer": UNKNOWN, "evolve": judged("NO", "When was Mara Holt born?"), "refine": edits},
            tog3__rounds=2,
            tog3__keep=2,
            tog3__kinds="chunk,statement,path",
        )
        (event,) = done.events("evidence_edited")
        (final,) = done.prompts("final")
        assert [(each.subject, each.object) for each in event.added] == [("Mara Holt", "Tarn Harbour")]
        assert event.refused == 1 and event.merged and event.removed
        assert "Mara Holt | birthplace | Tarn Harbour (passage" in final and f'"{BORN}"' in final
        assert "Mara Holt is also called Tarn Harbour" in final and "Sub-question 1: When was" in final
        dropped = [line.partition(". ")[2] for line in first["facts"].splitlines() if line[:2] in ("2.", "3.")]
        assert dropped and not any(f". {line}" in final for line in dropped)

    def test_long_form(self, run):
        report = {**answered("Tarn Harbour"), "response": "A report."}
        replies = {"answer": answered("A"), "reflect": judged("YES"), "final": report}
        done = run(replies=replies, ask__answer_form="long")
        assert done.kinds == ["answer", "reflect", "final"] and done.answer.response == "A report."

    @pytest.mark.parametrize("final", [UNKNOWN, answered("Mars", "Mars is near."), "?"])
    def test_report_never_replaces_an_accepted_answer_by_an_unproven_one(self, run, final):
        replies = {"answer": answered("Tarn Harbour"), "reflect": judged("YES"), "final": final}
        answer = run(replies=replies, ask__answer_form="long").answer
        assert str(answer) == "Tarn Harbour" and answer.accepted and answer.citations[0].verified


class TestAnswers:
    @pytest.mark.parametrize("kinds", ["statement", "chunk,statement"])
    def test_facts_that_the_model_adds_answer_from_facts_alone(self, run, kinds):
        given = {"agent": Tog3Agent(QUESTIONS, facts_only=True), "tog3__kinds": kinds, "tog3__keep": 3}
        done = run(SHORT, **given)
        assert str(done.answer) == "1830" and done.answer.grounding == "text"
        assert any(each.object == "1830" for event in done.events("evidence_edited") for each in event.added)
        assert run(SHORT, tog3__evolve_graph="off", **given).answer.status == "no_answer"

    def test_invented_quote_grounds_nothing(self, run):
        replies = {"final": answered("Mars", "Mars is near.")}
        done = run(replies=replies, tog3__rounds=1)
        assert done.answer.grounding == "model" and not done.answer.evidence_sparql and not done.answer.accepted
        assert run(replies=replies, tog3__rounds=1, ask__on_exhausted="none").answer.status == "no_answer"


def test_likely_answer_is_given_as_not_accepted(run):
    final = {**answered("Tarn Harbour"), "answer": ["Unknown"], "likely": ["Tarn Harbour"]}
    replies = {"answer": UNKNOWN, "evolve": judged("NO"), "final": final}
    answer = run(replies=replies).answer
    assert str(answer) == "Tarn Harbour" and answer.weak and LIKELY in answer.notes and answer.citations[0].verified
    answer = run(replies=replies, ask__on_exhausted="none").answer
    assert answer.status == "no_answer" and not answer.answers


def test_next_answer_sees_why_the_last_one_was_refused(run):
    replies = {
        "answer": [answered("A"), answered("B")],
        "reflect": [judged("NO", ASKED[0]), judged("YES")],
        "refine": EDITS,
    }
    first, second = run(replies=replies).prompts("answer")
    assert "Earlier attempts" not in first and "- Round 1: A (not accepted: A step.)" in second
