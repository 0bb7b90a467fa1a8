"""Recall of supporting passages, against arithmetic by hand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.metrics.retrieval import RetrievalTable, retrieval_scores, retrieval_steps

SUPPORT = (("a1", "a2"), ("b",), ())
"""Three supporting passages: one in two chunks, one in one, and one that the corpus does not contain."""


def retrieved(*pieces: str, step: int = 0, channel: str = "") -> dict:
    return {"kind": "retrieved", "query": "?", "pieces": list(pieces), "step": step, "channel": channel}


TRACE = [
    {"kind": "planned"},
    retrieved("x", "a2", step=1, channel="semantic"),
    retrieved("s1", step=1, channel="relational"),
    retrieved("y", "x", "b", step=2, channel="semantic"),
    {"kind": "pieces_kept", "pieces": ["a2"], "step": 1},
    retrieved("a1", step=0, channel="semantic"),
]


def test_steps_are_in_the_order_of_the_trace():
    assert [(step.number, step.lists) for step in retrieval_steps(TRACE)] == [
        (1, (("x", "a2"), ("s1",))),
        (2, (("y", "x", "b"),)),
        (0, (("a1",),)),
    ]


def test_recall_of_a_question():
    found = retrieval_scores(TRACE, SUPPORT)
    assert found is not None and found.in_corpus == pytest.approx(2 / 3)
    # interleaved: x s1 y a1 | a2 (x again) | b
    assert [found.at[k].recall for k in (2, 5, 10)] == pytest.approx([0, 1 / 3, 2 / 3])
    assert [each.recall for each in found.steps] == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert found.channels["semantic"] == pytest.approx([1 / 3, 2 / 3, 2 / 3]) and found.channels["relational"][-1] == 0
    assert found.kept is not None and found.kept.recall == pytest.approx(1 / 3)
    # the passage that the corpus lacks is never found; without it, the chain is full
    assert found.all.chain == 0 and retrieval_scores(TRACE, SUPPORT[:2]).all.chain == 1  # type: ignore[union-attr]
    assert retrieval_scores(TRACE, ()) is None


def test_channels_with_sub_questions_of_their_own_are_aligned():
    """Step 1 is the first sub-question of each channel (GraphSearch as published)."""
    trace = [
        retrieved("a1", step=1, channel="semantic"),
        retrieved("b", step=3, channel="relational"),
        retrieved("c", step=2, channel="semantic"),
        retrieved("c", step=0, channel="semantic"),
        retrieved("a2", step=0, channel="relational"),
    ]
    found = retrieval_scores(trace, (("a1", "a2"), ("b",), ("c",)))
    assert found is not None and [each.recall for each in found.steps] == pytest.approx([2 / 3, 1, 1])
    assert found.channels["semantic"] == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert found.channels["relational"] == pytest.approx([1 / 3, 1 / 3, 2 / 3])


def test_summary_of_two_questions():
    table = RetrievalTable()
    table.add(TRACE, SUPPORT[:2])
    table.add([retrieved("b", step=0)], SUPPORT[:2])
    table.add(TRACE, ())  # without supporting passages
    found = table.summary()
    assert (found["n"], found["in_corpus"]) == (2, 1)
    assert (found["recall"]["value"], found["full_chain"]["value"]) == (0.75, 0.5)
    assert found["recall@2"]["value"] == 0.25 and found["kept_recall"]["n"] == 1
    # the second question has one step and keeps its value
    assert [(each["step"], each["n"], each["recall"]) for each in found["by_step"]] == [
        (1, 2, 0.5),
        (2, 1, 0.75),
        (3, 1, 0.75),
    ]
    assert found["by_channel"]["semantic"] == [0.25, 0.5, 0.5]
    json.dumps(found, allow_nan=False)


def test_nothing_is_reported_without_retrieval():
    table = RetrievalTable()
    table.add([{"kind": "models"}], SUPPORT)
    assert table.summary() == RetrievalTable().summary() == {}
    table.add([retrieved("b")], SUPPORT[:2])
    assert table.summary()["recall"]["value"] == 0.25  # the question without retrieval counts


pieces = st.lists(st.sampled_from("abcdef"), max_size=4)


@given(
    st.lists(st.tuples(pieces, st.integers(0, 3), st.sampled_from(["", "semantic"])), max_size=6),
    st.lists(pieces, min_size=1, max_size=3),
)
def test_recall_never_falls(events, support):
    """GraphSearch, figure 7."""
    found = retrieval_scores([retrieved(*each, step=step, channel=channel) for each, step, channel in events], support)
    assert found is not None
    for curve in (
        [each.recall for each in found.steps],
        [each.chain for each in found.steps],
        *found.channels.values(),
    ):
        assert list(curve) == sorted(curve)
    at = [found.at[k].recall for k in sorted(found.at)]
    assert at == sorted(at) and at[-1] <= found.all.recall <= found.in_corpus
    assert not found.steps or found.steps[-1] == found.all


@pytest.mark.parametrize("event", [{"kind": "retrieved"}, {"kind": "retrieved", "pieces": None, "step": "x"}, {}])
def test_damaged_events_find_nothing(event):
    assert retrieval_scores([event], SUPPORT).all.recall == 0  # type: ignore[union-attr]
