"""Paths drawn as text: directions, mediators, branches, narrow terminals, plain ASCII."""

from __future__ import annotations

import pytest

from kgqa.model import Entity, Literal, Named, PathEvidence, RelationPath, Step
from kgqa.report.path_text import ASCII, MAX_BRANCHES, UNICODE, path_lines, signs_for
from kgqa.text.words import text_width

E = "http://e/"


def node(name: str, key: str = "") -> Named:
    key = key or name
    return Named(Entity(E + key.replace(" ", "_")), f"m.{key}", name)


def evidence(steps: list[str], walks: list[list[Named]], mediators: tuple[int, ...] = ()) -> PathEvidence:
    """A path with steps such as "film" or "<film", which is followed backwards."""
    words = tuple(step.removeprefix("<") for step in steps)
    path = RelationPath(
        Entity(walks[0][0].value.iri),  # type: ignore[union-attr]
        tuple(Step(E + word, "in" if step[0] == "<" else "out") for step, word in zip(steps, words)),
    )
    return PathEvidence(path, "words", tuple(map(tuple, walks)), mediators, step_words=words)


MARIE, PRIZE, CHEMISTRY = node("Marie Curie"), node("m.1"), node("Chemistry")


def test_directions_mediators_and_branches():
    won = [[MARIE, node("", key), end] for key, end in (("1", node("Physics")), ("2", CHEMISTRY), ("3", CHEMISTRY))]
    drawn = path_lines(evidence(["award", "<winners of"], won, (1,)))
    assert drawn == [
        "Marie Curie ──award──▶ • ◀──winners of──┬── Chemistry",
        "                                        └── Physics",
    ]
    assert path_lines(evidence(["award", "<winners of"], won, (1,)), signs=ASCII) == [
        "Marie Curie --award--> * <--winners of--+-- Chemistry",
        "                                        `-- Physics",
    ]


def test_branches_of_inner_nodes_and_walks_left_out():
    walks = [[node("A"), node(f"B{i}"), node(f"C{i}{j}")] for i in range(2) for j in range(2)]
    assert path_lines(evidence(["r", "s"], walks)) == [
        "A ──r──┬─▶ B0 ──s──┬─▶ C00",
        "       │           └─▶ C01",
        "       └─▶ B1 ──s──┬─▶ C10",
        "                   └─▶ C11",
    ]
    many = path_lines(evidence(["r"], [[node("A"), node(f"B{i}")] for i in range(MAX_BRANCHES + 3)]))
    assert len(many) == MAX_BRANCHES + 1 and many[-1] == "... and 3 more"
    # evidence has walks to some of many answers
    some = evidence(["r"], [[node("A"), node(f"B{i}")] for i in range(MAX_BRANCHES + 3)])
    assert path_lines(some, answers=20_000)[-1] == "... and more"


def test_an_answer_without_a_name_is_no_dot_and_namesakes_have_ids():
    """A walk never looks like a single node, or like a node that leads to itself."""
    assert path_lines(evidence(["prize"], [[MARIE, PRIZE]], (1,))) == ["Marie Curie ──prize──▶ m.1"]
    film = node("Marie Curie", "film")
    assert path_lines(evidence(["<about"], [[MARIE, film]])) == [
        "Marie Curie (m.Marie Curie) ◀──about── Marie Curie (m.film)"
    ]
    length = Named(Literal("664"), "", "664", "km")
    assert path_lines(evidence(["length"], [[node("Rhine"), length]])) == ["Rhine ──length──▶ 664 km"]


@pytest.mark.parametrize("width", [60, 40, 26])
@pytest.mark.parametrize("name", ["Tokyo", "東京都庁舎", "x" * 300, "a\u0301" * 40])
def test_narrow_terminals(width, name):
    drawn = path_lines(
        evidence(["national anthem of", "<country", "capital"], [[node("Kimigayo"), node("m"), node("Japan"), node(name)]], (1,)),
        width=width,
    )  # fmt: skip
    assert [line for line in drawn if text_width(line) > width] == []
    assert drawn[0] == "Kimigayo" and drawn[1].lstrip() == "└──national anthem of──▶ •"


def test_what_can_not_be_drawn_is_left_to_words():
    assert path_lines(evidence(["r"], [[node("A")]])) == []
    assert path_lines(PathEvidence(RelationPath(Entity(E)), "words")) == []


def test_hostile_names_stay_on_their_line():
    (line,) = path_lines(evidence(["r\x1b[31m\n"], [[node("A\nB\u202e"), node("\x1b]0;x\x07C")]]))
    assert line.isprintable() and line.startswith("A B ──r")


def test_signs_follow_the_encoding():
    assert signs_for("utf-8") == UNICODE
    assert [signs_for(name) for name in ("ascii", "latin-1", None, "no-such")] == [ASCII] * 4
