"""The tournament of a question, read from its trace."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.report.site import bracket
from kgqa.report.site.bracket import MAX_CONTENDERS, MAX_LISTED, MAX_MATCHES, Contender, Stage
from kgqa.trace import read_event


def stages_of(trace) -> list[Stage]:
    """Return the stages of a trace in JSON."""
    return bracket.stages_of(map(read_event, trace))


def match(*candidates, picked=(), **more):
    return {"kind": "match", "at": 0.0, "candidates": list(candidates), "picked": list(picked), **more}


HOP = [
    {"kind": "pool", "hop": 1, "paths": ["a", "b", "c", "d", "e"]},
    {"kind": "shortlist", "hop": 1, "paths": ["a", "b", "c", "d"]},
    match("a", "b", picked="a"),
    match("c", "d", picked="d"),
    match("a", "d", picked="d", tie=True),
    {"kind": "kept", "hop": 1, "paths": ["d", "a"], "keys": ["d", "a"]},
]


def test_stage_of_a_hop():
    (stage,) = stages_of(HOP)
    assert (stage.title, stage.pool, stage.shortlist, stage.cut) == ("Hop 1", 5, 4, ["e"])
    contenders = [[[(c.words, c.picked) for c in m.contenders] for m in round_] for round_ in stage.rounds]
    assert contenders == [
        [[("a", True), ("b", False)], [("c", False), ("d", True)]],
        [[("a", False), ("d", True)]],
    ]
    assert [m.tie for round_ in stage.rounds for m in round_] == [False, False, True]
    assert stage.kept == ["d", "a"] and stage.matches == 3


def test_final_comparison():
    ranked = {
        "kind": "ranked",
        "paths": [{"path": "d", "score": 0.5, "joins": 0}, {"path": "a", "score": None, "joins": 0}],
        "keys": [],
    }
    first, last = stages_of([*HOP, match("d", "a", picked="d"), ranked])
    assert (last.title, last.matches, last.kept) == ("Final comparison", 1, ["d (0.500)", "a"])
    assert first.matches == 3


def test_matches_between_hops():
    second = [{**event, "hop": 2} if "hop" in event else event for event in HOP]
    titles = [stage.title for stage in stages_of([*HOP, match("x", "y"), *second])]
    assert titles == ["Hop 1", "Final comparison", "Hop 2"]


def test_match_with_scores():
    (stage,) = stages_of([match("a", "b", picked="b", scores=[0.1, None])])
    assert stage.rounds[0][0].contenders == (Contender("a", False, 0.1), Contender("b", True, None))


def test_hop_without_a_pool():
    (stage,) = stages_of([{"kind": "kept", "hop": 2, "paths": ["a"]}])
    assert (stage.title, stage.pool, stage.matches, stage.kept) == ("Hop 2", None, 0, ["a"])


def test_long_tournaments_are_shortened():
    matches = [match(f"{n}", f"{n}'", picked=[f"{n}"]) for n in range(MAX_MATCHES + 5)]
    (stage,) = stages_of(matches)
    assert (stage.matches, stage.left_out, len(stage.rounds[0])) == (MAX_MATCHES + 5, 5, MAX_MATCHES)
    (stage,) = stages_of([match(*map(str, range(MAX_CONTENDERS + 7)))])
    assert len(stage.rounds[0][0].contenders) == MAX_CONTENDERS and stage.rounds[0][0].left_out == 7
    pool = [
        {"kind": "pool", "hop": 1, "paths": list(map(str, range(500)))},
        {"kind": "shortlist", "hop": 1, "paths": []},
    ]
    assert len(stages_of(pool)[0].cut) == MAX_LISTED and stages_of(pool)[0].pool == 500


@pytest.mark.parametrize(
    ("words", "lead", "last"),
    [
        ("country capital", "", "country capital"),
        ("anthem of, country capital", "anthem of,", "country capital"),
        ("a, b, c", "a, b,", "c"),
        ("-> a.b.c -> d.e.f", "-> a.b.c", "-> d.e.f"),
        ("", "", ""),
    ],
)
def test_last_hop_of_a_candidate(words, lead, last):
    contender = Contender(words, False)
    assert (contender.lead, contender.last) == (lead, last)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
events = st.fixed_dictionaries(
    {"kind": st.sampled_from(["pool", "shortlist", "match", "kept", "ranked", "x"]) | json_values},
    optional=dict.fromkeys(("hop", "paths", "candidates", "picked", "scores", "tie"), json_values),
)


@settings(max_examples=15)  # nested values are slow to draw
@given(st.lists(events, max_size=8))
def test_any_trace(trace):
    for stage in stages_of(trace):
        assert isinstance(stage.title, str) and stage.matches >= sum(map(len, stage.rounds))


def test_trace_of_a_real_tournament(by_model):
    first = next(by_model.records())
    stages = stages_of(first.answer["trace"])
    hops = [stage for stage in stages if stage.hop]
    assert [stage.hop for stage in hops][:2] == [1, 2]
    second = hops[1]
    assert second.pool == 12 and second.shortlist == 12
    # twelve candidates in pairs: each match has two, at most one of them is picked, over several rounds
    assert len(second.rounds) > 2 and second.matches >= 6
    assert all(len(m.contenders) == 2 for round_ in second.rounds for m in round_)
    assert all(sum(c.picked for c in m.contenders) <= 1 for round_ in second.rounds for m in round_)
    assert sum(stage.matches for stage in stages) == sum(e["kind"] == "match" for e in first.answer["trace"])
