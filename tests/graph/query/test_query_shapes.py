"""Rendering by query shape gives the same text as running the template."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.errors import InvalidTerm
from kgqa.graph.query import shapes as query_shapes
from kgqa.graph.query.patterns import MarkTest, TypeTest, path_pattern
from kgqa.graph.query.shapes import Shapes
from kgqa.graph.query.templates import Comment, _environment, render, render_term
from kgqa.model import Entity, Literal, RelationPath, Step
from tests.graph.query.test_templates import FULL

ENTITIES = st.sampled_from([Entity(f"http://e/{letter}") for letter in "abcd"] + [Entity("urn:uuid:0")])
STEPS = st.builds(Step, st.sampled_from(["http://e/a", "http://e/r", "http://e/s"]), st.sampled_from(["out", "in"]))
PATHS = st.builds(RelationPath, ENTITIES, st.lists(STEPS, min_size=1, max_size=3).map(tuple))
RULES = st.sampled_from(["free", "topic-not-end", "topic-never", "no-return"])


@st.composite
def walks(draw):
    path, rule = draw(PATHS), draw(RULES)
    walk = path_pattern(path, rule, inverse={"http://e/r": "http://e/s"}.get)
    if len(path.steps) > 1 and draw(st.booleans()):
        walk = replace(walk, restricted=((1, tuple(draw(st.lists(ENTITIES, min_size=1, max_size=3)))),))
    if draw(st.booleans()):
        end = walk.nodes[-1]
        walk = replace(
            walk, joins=((len(path.steps), path_pattern(draw(PATHS), rule, inverse={}.get, end=end, prefix="j1_")),)
        )
    if draw(st.booleans()):
        texts = st.sampled_from([Literal("g."), Literal("true"), Literal('"')])
        walk = replace(
            walk,
            not_prefixed=(draw(texts),),
            not_typed=(TypeTest(draw(ENTITIES), draw(ENTITIES)),),
            not_marked=(MarkTest(draw(ENTITIES), draw(ENTITIES), draw(texts)),),
        )
    return walk


def run(name: str, values) -> str:
    return _environment().get_template(f"{name}.rq").render(values)


@given(st.lists(walks(), min_size=1, max_size=4), st.lists(ENTITIES, max_size=2), st.sampled_from([None, 0, 1, 5]))
def test_shape_gives_the_text_of_the_template(some, view, limit):
    for walk in some * 2:
        values = {"view": tuple(view), "walk": walk, "limit": limit}
        assert render("ends", **values) == run("ends", values)
        values = {
            "view": view, "walk": walk, "keep": [walk.end], "cap": 7, "not_node": walk.nodes[0],
            "not_out": [Entity("http://e/a")] * bool(limit), "not_in": [], "previous": walk.nodes[0],
        }  # fmt: skip
        assert render("relations", **values) == run("relations", values)


@pytest.mark.parametrize("name", sorted(FULL))
def test_every_template(name):
    for values in FULL[name]:
        for view in ((), (Entity("http://e/g"),)):
            if "view" not in values:
                values = {**values, "view": view}
            expected = run(name, values)
            assert render(name, **values) == render(name, **values) == expected


def count_runs():
    runs = []

    def run(values) -> str:
        runs.append(values)
        return " ".join(f"{name}={render_term(value)}" for name, value in values.items())

    return Shapes(run, render_term), runs


def test_template_runs_once_per_shape():
    shapes, runs = count_runs()
    assert shapes.render({"a": Entity("http://e/1"), "b": Entity("http://e/2")}) == "a=<http://e/1> b=<http://e/2>"
    assert shapes.render({"a": Entity("http://e/3"), "b": Entity("http://e/1")}) == "a=<http://e/3> b=<http://e/1>"
    assert len(runs) == 1
    # a template may compare two entities
    assert shapes.render({"a": Entity("http://e/3"), "b": Entity("http://e/3")}) == "a=<http://e/3> b=<http://e/3>"
    assert len(runs) == 2
    for number in (0, 1, 0, 1):
        assert shapes.render({"a": number}) == f"a={number}"
    assert len(runs) == 4


def test_values_of_different_types_have_different_shapes():
    shapes = Shapes(lambda values: repr(values["a"]), render_term)
    assert [shapes.render({"a": value}) for value in (1, True, 0, False, None, "<x>")] == [
        "1", "True", "0", "False", "None", "'<x>'",
    ]  # fmt: skip


def test_unknown_values_run_the_template(monkeypatch):
    shapes, runs = count_runs()
    for _ in range(2):
        assert shapes.render({"a": -1}) == "a=-1"
        with pytest.raises(InvalidTerm):
            shapes.render({"a": {1}})
    assert len(runs) == 4
    monkeypatch.setattr(query_shapes, "MAX_SHAPES", 1)
    for number in (1, 2, 2, 1):
        assert shapes.render({"a": number}) == f"a={number}"
    assert len(runs) == 7


def test_invalid_iri_is_refused_each_time():
    shapes, _ = count_runs()
    assert shapes.render({"a": Entity("http://e/1")}) == "a=<http://e/1>"
    for _ in range(2):
        with pytest.raises(InvalidTerm):
            shapes.render({"a": Entity("http://e/1> <x")})


def test_entity_in_a_comment_runs_the_template():
    text = f"<{query_shapes._PLACEHOLDER}0>"
    shapes = Shapes(lambda values: f"{render_term(values['e'])} {render_term(values['c'])}", render_term)
    made = shapes.render({"e": Entity("http://e/1"), "c": Comment("<urn:uuid:0> says")})
    assert made == "<http://e/1> # <urn:uuid:0> says" and text not in made
