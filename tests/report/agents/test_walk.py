"""The walk of a language model: places by the paths of calls, links between them, and their drawing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.report.agents.walk import MAX_PLACES, Walk, read_paths, walk_of
from kgqa.report.agents.walk_drawing import draw_walk
from kgqa.storage.answer_json import answer_object
from kgqa.trace import Called
from tests.report.agents.traces import BORN, GRAPH_TURNS, LIGHT, acting_answer


def captions(walk: Walk) -> list[str]:
    drawing = draw_walk(walk)
    assert drawing is not None
    return [each.node.name for each in drawing.places]


def links(walk: Walk) -> list[tuple[str, str, str]]:
    """Return the links as captions of their ends and text."""
    names = {id(place): name for place, name in zip(walk.places, captions(walk))}
    return [(names[id(each.source)], each.text, names[id(each.target)]) for each in walk.links]


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        ("Kimigayo", [("Kimigayo",)]),
        ("Kimigayo → anthem of ← capital", [("Kimigayo", "→ anthem of", "← capital")]),
        ("A → r & B → s", [("A", "→ r"), ("B", "→ s")]),
        ("A → r & Simon & Garfunkel ← member", [("A", "→ r"), ("Simon & Garfunkel", "← member")]),
        ("", []),
    ],
)
def test_paths_in_words(words, paths):
    assert read_paths(words) == paths


def test_walk_with_the_path_of_the_answer():
    walk = walk_of(GRAPH_TURNS, answer_object(acting_answer()))
    assert links(walk) == [
        ("Skerry Light", "→ architect", "Ines Marr"),
        ("Ines Marr", "→ work", "Work 1 and 39 more"),
        ("Ines Marr", "→ place of birth", "Kirkwick"),
    ]
    assert [each.chosen for each in walk.links] == [True, False, True]
    drawing = draw_walk(walk, trials=2, answers=("kirkwick",))
    assert [each.node.kind for each in drawing.places] == ["topic", "inner", "inner", "answer"]
    assert [each.number for each in drawing.places] == ["1.1", "1.1", "1.2", "2.1"]
    assert [each.kind for each in drawing.links] == ["chosen", "hop", "chosen"]


def test_calls_that_combine_places_are_joined():
    trace = [
        Called(name="Neighbour", paths=("A → r",), names=("x", "y"), total=2),
        Called(name="Neighbour", paths=("B ← s",), names=("y",), total=1, step=2),
        Called(name="Intersect", paths=("A → r", "B ← s"), names=("y",), total=1, step=3),
        Called(name="Neighbour", paths=("C → t", "D → t"), names=("z",), total=1, step=4),
        Called(name="Count", paths=("A → r",), names=("2",), total=1, step=5),
        Called(name="Most", paths=("A → r → u",), names=("v",), total=1, step=6),
        Called(name="Intersect", paths=("A → r",), total=0, step=7),
        Called(name="Degree", paths=("A → r → u",), names=("12",), total=1, step=8),
    ]
    walk = walk_of(trace, {})
    assert links(walk) == [
        ("A", "→ r", "x and 1 more"),
        ("B", "← s", "y"),
        ("x and 1 more", "Intersect", "y"),
        ("y", "Intersect", "y"),
        ("C", "→ t", "z"),
        ("D", "→ t", "z"),
        ("x and 1 more", "Count", "2"),
        ("x and 1 more", "→ u (Most)", "v"),
        ("x and 1 more", "Intersect", "0 values"),
        ("x and 1 more", "→ u (Degree)", "12"),
    ]
    drawing = draw_walk(walk)
    assert drawing.links[1].back and drawing.links[2].kind == "combined"
    assert [step for _, step in walk.places[1].steps] == [1]


def test_only_the_set_with_the_answer_is_on_its_path():
    trace = [
        Called(name="Intersect", paths=(LIGHT, "B → s"), total=0),
        Called(name="Intersect", paths=(LIGHT, "C → t"), names=("Kirkwick",), total=1, step=2),
    ]
    walk = walk_of(trace, {"paths": [{"words": LIGHT}], "answers": [{"name": "Kirkwick"}]})
    assert [(each.text, each.chosen) for each in walk.links] == [
        ("→ architect", True), ("→ s", False), ("Intersect", False), ("Intersect", False),
        ("→ t", False), ("Intersect", True), ("Intersect", False),
    ]  # fmt: skip


def test_places_do_not_overlap_and_stay_inside():
    trace = [
        Called(name="Neighbour", paths=(f"T{topic} → a{topic} → b{branch}",), total=1)
        for topic in range(3)
        for branch in range(4)
    ]
    trace.append(Called(name="Intersect", paths=("T0 → a0 → b1", "T2 → a2 → b0"), total=1))
    drawing = draw_walk(walk_of(trace, {}))
    at = [(each.node.x, each.node.y) for each in drawing.places]
    assert len(set(at)) == len(at) == 3 + 3 + 12 + 1
    assert all(0 < x < drawing.width and 0 < y < drawing.height for x, y in at)


def test_nodes_that_no_call_asked_for_are_named_by_the_walks_of_the_answer():
    trace = [
        Called(name="Neighbour", paths=("Skerry Light",), total=2),  # lists the relations of the topic
        Called(name="Neighbour", paths=(BORN,), names=("Kirkwick",), total=1),
    ]
    walk = walk_of(trace, answer_object(acting_answer()))
    assert captions(walk) == ["Skerry Light", "Ines Marr", "Kirkwick"]
    assert [each.node.kind for each in draw_walk(walk, answers=("Kirkwick",)).places] == ["topic", "mediator", "answer"]


def test_a_walk_without_hops_is_not_drawn():
    assert draw_walk(walk_of([Called(name="Retrieve", paths=("A",), total=1)], {})) is None
    assert draw_walk(walk_of([Called(name="Neighbour", paths=("A → r",), failed=True)], {})) is None


def test_a_long_walk_is_cut():
    walk = walk_of([Called(name="Neighbour", paths=(f"A → r{n}",), total=1) for n in range(MAX_PLACES + 5)], {})
    assert len(walk.places) == MAX_PLACES and walk.left_out == 6
    assert draw_walk(walk).left_out == 6


@given(st.lists(st.lists(st.sampled_from(["A", "A → r", "A → r → s", "B ← r", "A → r & B ← r", " → ", " & ", "→"]))))
def test_any_paths_can_be_drawn(paths):
    walk = walk_of(
        [Called(name="f", paths=tuple(each), total=len(each)) for each in paths], {"paths": [{"words": "A"}]}
    )
    draw_walk(walk)
