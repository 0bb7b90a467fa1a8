"""Layout of drawings: positions, arrows and shared nodes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.report.drawing import MAX_STEPS, MAX_WALKS, Point, draw_path, draw_plot, relation_name
from tests.report.site.test_bracket import json_values

NS = "http://rdf.freebase.com/ns/"


def node(name):
    return {"id": name, "name": name.title(), "iri": NS + name}


def path(*walks, steps=("out", "in"), mediators=()):
    return {
        "topic": NS + "a",
        "steps": [{"relation": f"{NS}x.y.relation_{n}", "direction": direction} for n, direction in enumerate(steps)],
        "walks": [[node(name) for name in walk] for walk in walks],
        "mediators": list(mediators),
    }


def test_walks_share_common_nodes():
    found = draw_path(path("abc", "abd"))
    assert [(n.name, n.kind) for n in found.nodes] == [("A", "topic"), ("B", "inner"), ("C", "answer"), ("D", "answer")]
    assert len(found.edges) == 3
    assert [label.text for label in found.labels] == ["y · relation 0", "y · relation 1"]


def test_arrows_follow_the_direction_of_relations():
    out, inverse = draw_path(path("abc")).edges
    assert out.x1 < out.x2 and inverse.x1 > inverse.x2


def test_mediator_has_no_name():
    kinds = {n.kind: n.name for n in draw_path(path("abc", mediators=[1])).nodes}
    assert kinds == {"topic": "A", "mediator": "", "answer": "C"}


def test_path_without_walks():
    found = draw_path(path())
    assert [n.name for n in found.nodes] == ["a", "?1", "?2"]
    assert draw_path({"steps": []}) is None and draw_path({}) is None


def test_many_walks_and_steps_are_shortened():
    walks = [f"ab{chr(0x4E00 + n)}" for n in range(MAX_WALKS + 3)]
    found = draw_path(path(*walks))
    assert found.left_out == 3 and len(found.nodes) == 2 + MAX_WALKS
    assert len(draw_path(path(steps=["out"] * 50)).labels) == MAX_STEPS


def test_conditions_and_the_operation_branch_off_at_their_nodes():
    conditions = [
        {"at": 1, "words": "?e1 has “from”: x"},
        {"at": 2, "words": "it is old"},
        {"at": 9, "words": "no node"},
    ]
    found = draw_path(path("abc", "abd") | {"conditions": conditions, "operation": {"words": "Count"}})
    assert [(b.text, b.kind) for b in found.branches] == [
        ("?e1 has “from”: x", "condition"),
        ("it is old", "condition"),
        ("Count", "operation"),
    ]
    inner, answer, operation = found.branches
    assert inner.x < answer.x == operation.x and inner.y2 < answer.y2 < operation.y2 <= found.height
    assert all(b.y1 < b.y2 for b in found.branches)


@given(
    st.lists(st.lists(json_values, max_size=4), max_size=4),
    st.lists(json_values, max_size=4),
    st.lists(st.fixed_dictionaries({"at": json_values, "words": json_values}), max_size=3),
)
def test_any_path_stays_inside_the_drawing(walks, steps, conditions):
    walks = [[{"iri": str(n), "name": each} for n, each in enumerate(walk)] for walk in walks]
    steps = [{"relation": "r", "direction": "in"}, *({"relation": each, "direction": each} for each in steps)]
    rest = {"conditions": conditions, "operation": {"at": walks and walks[0], "words": "then"}}
    found = draw_path({"steps": steps, "walks": walks, "topic": "t", "mediators": [1, None, "x"], **rest})
    assert all(0 <= each.x <= found.width and 0 <= each.y2 <= found.height for each in found.branches)
    for each in found.nodes:
        assert 0 <= each.x <= found.width and 0 <= each.y <= found.height


@pytest.mark.parametrize(
    ("iri", "words"),
    [
        (NS + "location.country.capital", "country · capital"),
        ("http://www.wikidata.org/prop/direct/P36", "P36"),
        ("http://example.org/isCapitalOf", "is capital of"),
        ("http://example.org/", "example · org"),
        ("", ""),
    ],
)
def test_relation_name(iri, words):
    assert relation_name(iri) == words


# ---- accuracy against cost ----


def test_plot_axes():
    plot = draw_plot([Point("a", 1.0, 0.2, 0.1, 0.3), Point("b", 3.0, 0.8, 0.7, 0.9)], "calls")
    a, b = plot.dots
    assert a.x < b.x and a.y > b.y
    assert a.high < a.y < a.low  # y grows downwards
    assert [text for _, text in plot.upward] == ["0%", "20%", "40%", "60%", "80%", "100%"]


def test_logarithmic_cost_axis():
    plot = draw_plot([Point("a", 1.0, 0.5), Point("b", 10.0, 0.5), Point("c", 1000.0, 0.5)], "tokens")
    a, b, c = (dot.x for dot in plot.dots)
    assert math.isclose((c - b) / (b - a), 2, rel_tol=0.02)
    assert [text for _, text in plot.across][:2] == ["1", "10"]


def test_plot_with_zero_cost():
    plot = draw_plot([Point("a", 0.0, 0.5), Point("b", 5.0, 0.5)], "USD")
    assert plot.dots[0].x == plot.left
    assert draw_plot([Point("a", 0.0, 0.5)], "USD").dots[0].x == plot.left
    assert draw_plot([], "USD") is None


numbers = st.floats(min_value=0, max_value=1e12, allow_nan=False)
shares = st.floats(min_value=0, max_value=1)


@given(st.lists(st.builds(Point, st.text(max_size=9), numbers, shares, shares, shares), min_size=1, max_size=6))
def test_dots_stay_inside_the_plot(points):
    plot = draw_plot(points, "x")
    for dot in plot.dots:
        assert plot.left - 0.2 <= dot.x <= plot.width and 0 <= dot.y <= plot.height
    assert len(plot.across) < 10
