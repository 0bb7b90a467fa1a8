"""Rounds and sub-questions from a trace."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgqa.report.text.rounds import MAX_DEPTH, Draft, Plan, TextStep, rounds_of
from kgqa.trace import (
    DraftVerified,
    Grounded,
    PiecesKept,
    Planned,
    Retrieved,
    StepAnswered,
    Stopped,
    SubQuestion,
    SufficiencyJudged,
)
from tests.report.text.traces import RAG, ROUNDS, STEPS


def planned(*needs: tuple[int, ...], round: int = 0, first: int = 1) -> Planned:
    """Return a plan whose sub-questions have these needs."""
    return Planned(round=round, sub_questions=tuple(SubQuestion(n, f"q{n}", each) for n, each in enumerate(needs, first)))  # fmt: skip


def numbers(steps) -> list:
    return [(each.number, numbers(each.below)) for each in steps]


def test_sub_questions_are_below_the_last_one_that_they_need():
    (round_,) = rounds_of([planned((), (1,), (), (2, 3), (1,))]).rounds
    (plan,) = round_.entries
    assert numbers(plan.steps) == [(1, [(2, [(4, [])]), (5, [])]), (3, [])]


def test_needs_in_a_circle_and_unknown_needs():
    found = rounds_of([planned((2,), (1,), (3,), (99,))])
    (plan,) = found.rounds[0].entries
    assert sorted(found.steps) == [1, 2, 3, 4] and numbers(plan.steps) == [(2, [(1, [])]), (3, []), (4, [])]


def test_long_chains_are_not_nested_without_end():
    found = rounds_of([planned((), *[(n,) for n in range(1, 30)])])
    assert max(step.depth for step in found.steps.values()) == MAX_DEPTH


def test_expansions_are_below_what_they_need_and_give_their_reasons():
    found = rounds_of(STEPS)
    first, second = found.rounds
    assert [type(each) for each in first.entries] == [Plan, Draft]
    (plan, draft, stopped) = second.entries
    assert [each.number for each in plan.steps] == [5] and plan.elsewhere == 1
    assert plan.reasons == (
        "claim 2 does not hold: She was born in Oban.",
        "sub-question 2 has no answer",
        "sub-question 3 has no answer",
    )
    assert draft.verified.verdict == "yes" and isinstance(stopped, Stopped)
    assert [each.number for each in found.steps[2].below] == [3, 4]
    assert found.steps[1].kept and len(found.steps[1].searches) == 2


def test_each_round_answers_the_question_again():
    found = rounds_of(ROUNDS)
    assert [round_.number for round_ in found.rounds] == [1, 2]
    first, second = ([each for each in r.entries if isinstance(each, TextStep)] for r in found.rounds)
    assert first[0].searches and first[0].answer.answers == () and second[0].answer.answers == ("Kirkwick",)
    (rag,) = rounds_of(RAG).rounds
    assert rag.number is None and rag.entries[0].kept == RAG[1].pieces


def test_pieces_of_several_prompts_are_joined():
    found = rounds_of([planned(()), PiecesKept(step=1, pieces=("a", "b")), PiecesKept(step=1, pieces=("b", "c"))])
    assert found.steps[1].kept == ("a", "b", "c")


def test_last_answer_after_the_end():
    found = rounds_of([*ROUNDS[:3], Stopped(round=3, why="the last round"), StepAnswered(question="q", answers=("a",))])
    assert [each.final for r in found.rounds for each in r.entries if isinstance(each, TextStep)] == [False, True]


def test_events_without_a_plan_and_a_verdict_without_a_draft():
    found = rounds_of(
        [
            Retrieved(query="q", pieces=("p",), step=7),
            StepAnswered(question="who?", answers=(), step=7),
            DraftVerified(verdict="no", failed=(3,)),
            planned((), first=8, round=1),
            SufficiencyJudged(round=1, verdict="no", missing="m"),
        ]
    )
    assert found.steps[7].text == "who?"
    assert found.rounds[1].entries[0].reasons == ("claim 3 does not hold", "sub-question 7 has no answer")
    assert rounds_of([]).rounds == []


small = st.integers(-1, 8)
events = st.one_of(
    st.builds(
        Planned,
        round=small,
        sub_questions=st.lists(
            st.builds(SubQuestion, small, st.just("q"), st.lists(small, max_size=3).map(tuple)), max_size=4
        ).map(tuple),
    ),
    st.builds(Grounded, step=small, text=st.just("t")),
    st.builds(Retrieved, query=st.just("q"), pieces=st.just(("p",)), step=small),
    st.builds(PiecesKept, pieces=st.just(("p",)), step=small),
    st.builds(StepAnswered, question=st.just("q"), answers=st.just(()), step=small, round=small),
    st.builds(DraftVerified, verdict=st.just("no"), failed=st.just((1, -5)), round=small),
    st.sampled_from((*ROUNDS, *STEPS)),
)


@given(st.lists(events, max_size=25))
def test_every_step_is_shown_once(trace):
    found = rounds_of(trace)
    shown = []
    waiting = [
        step
        for round_ in found.rounds
        for entry in round_.entries
        for step in (entry.steps if isinstance(entry, Plan) else [entry] if isinstance(entry, TextStep) else [])
    ]
    while waiting:
        step = waiting.pop()
        shown.append(step)
        waiting += step.below
    assert sorted(id(each) for each in shown if each.number) == sorted(map(id, found.steps.values()))
