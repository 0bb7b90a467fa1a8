"""Pairwise judgements: both orders, win rates and Elo ratings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.judges.pairwise import (
    PAIR_DIMENSIONS,
    Pair,
    PairVerdict,
    elo_ratings,
    judge_pairs,
    win_rate,
)
from tests.evaluation.judges.test_judging import ScriptedJudge, last_message


@pytest.fixture
def judge_with():
    judges: list[ScriptedJudge] = []

    def judge(reply, pairs, **options):
        judges.append(ScriptedJudge(reply))
        return judges[-1], judge_pairs(pairs, **judges[-1].options, **options)

    yield judge
    for verdict in judges:
        verdict.close()


PAIR = Pair("Why?", "short", "a long response")


def prefers_long(messages) -> str:
    return "FIRST" if "First response: a long" in last_message(messages) else "SECOND"


def test_every_dimension_is_judged_in_both_orders(judge_with):
    judge, found = judge_with(prefers_long, [PAIR])
    assert found == [dict.fromkeys(PAIR_DIMENSIONS, PairVerdict("second", "second"))]
    assert judge.server.calls == 2 * len(PAIR_DIMENSIONS)
    users = [last_message(request.messages) for request in judge.server.requests[:2]]
    assert users[0].index("short") < users[0].index("a long") and users[1].index("a long") < users[1].index("short")


def test_position_bias_gives_ties(judge_with):
    _, found = judge_with(lambda messages: "FIRST", [PAIR] * 3, dimensions=["overall"])
    assert found[0]["overall"].winner == "tie"
    rate = win_rate(found, "overall")
    assert (rate.n, rate.wins, rate.ties, rate.losses, rate.rate) == (3, 0, 3, 0, 0.5)
    assert (rate.contradictory, rate.reads_first) == (1, 1)


def test_unreadable_verdict_is_not_a_tie(judge_with):
    pairs = [PAIR, Pair("How?", "x", "a long response")]
    reply = lambda messages: "who knows" if "How?" in last_message(messages) else prefers_long(messages)  # noqa: E731
    _, found = judge_with(reply, pairs, dimensions=["overall"], reask=0)
    assert found[1]["overall"] == PairVerdict(None, None) and found[1]["overall"].winner is None
    rate = win_rate(found, "overall")
    assert (rate.n, rate.losses, rate.rate, rate.unparsed) == (1, 1, 0, 0.5)


def test_win_rate():
    verdicts = [
        ("first", "first"),
        ("first", "second"),
        ("tie", "tie"),
        ("second", "second"),
        ("first", "tie"),
        ("first", None),
    ]
    rate = win_rate([{"overall": PairVerdict(*verdict)} for verdict in verdicts], "overall")
    assert (rate.n, rate.wins, rate.ties, rate.losses) == (5, 1, 3, 1)
    assert rate.rate == 0.5 and rate.unparsed == pytest.approx(1 / 6) and rate.contradictory == 0.4
    # wins of the response read first: 3 in given order, 2 in swapped order
    assert rate.reads_first == pytest.approx((3 + 2) / 7)
    nothing = win_rate([], "overall")
    assert (nothing.n, nothing.rate, nothing.unparsed, nothing.reads_first) == (0, None, None, None)
    assert judge_pairs([], models=None, prompts=None) == []  # type: ignore[arg-type]


def test_elo_ratings():
    """Ratings follow ToG-3, table 5 (overall, Mix): NaiveRAG wins 33.7% against ToG-3 at 1600."""
    found = elo_ratings({"naive": 0.337, "even": 0.5, "quarter": 0.25}, reference="tog-3")
    assert found["tog-3"] == 1600 and found["even"] == 1600
    assert found["quarter"] == pytest.approx(1600 - 190.849, abs=0.001)  # 400 log10(3)
    assert found["naive"] == pytest.approx(1482.4, abs=0.1)
    assert elo_ratings({"all": 1.0, "none": 0.0, "unknown": None}, reference="r") == {
        "r": 1600,
        "all": None,
        "none": None,
        "unknown": None,
    }
    with pytest.raises(ValueError, match="from 0 to 1"):
        elo_ratings({"percent": 33.7}, reference="r")


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99))
def test_elo_ratings_reproduce_win_rates(one, other):
    found = elo_ratings({"one": one, "other": other}, reference="r")
    assert 1 / (1 + 10 ** ((found["r"] - found["one"]) / 400)) == pytest.approx(one)
