"""What a language model sees of a question: marks, words of paths, and the nodes at their ends."""

from __future__ import annotations

import pytest

from kgqa.methods.prompt_view import COUNTED, PromptView
from kgqa.model import Candidate
from kgqa.settings.values import resolve
from kgqa.trace.trace import Trace

from ..search.conftest import ent, path, small  # noqa: F401
from .scripted import late_ends

FACTS = (
    "m.ann people.person.parents m.bob",
    "m.ann people.person.father m.bob",
    "m.bob people.person.gender m.male",
    "m.cat people.person.gender m.male",
    "m.bob people.person.children m.ann",
    "m.bob people.person.children m.bare",
    "m.bob people.person.born m.dub",
    *(f"m.dub people.place.people m.p{n}" for n in range(COUNTED + 5)),
    'm.ann type.object.name "Ann Arkin"@en',
    'm.bob type.object.name "Bob Bream"@en',
    'm.male type.object.name "Male"@en',
    'm.dub type.object.name "Dublin"@en',
    *(f'm.p{n} type.object.name "Person {n}"@en' for n in range(COUNTED + 5)),
)


@pytest.fixture
def trace():
    return Trace()


@pytest.fixture
def view(small, trace):  # noqa: F811
    def view(text, *topics, **given):
        graph = small(*FACTS)
        named = graph.named([ent(topic) for topic in topics])
        settings = resolve({name.replace("__", "."): value for name, value in given.items()})
        return PromptView(graph, text, named, {each.value: [each.name] for each in named}, settings, trace)

    return view


def candidate(topic, *steps, **options):
    return Candidate(path(topic, *steps), "", **options)


PARENTS, FATHER = candidate("m.ann", "people.person.parents"), candidate("m.ann", "people.person.father")


def test_ids_of_unnamed_nodes_are_not_shown(small):  # noqa: F811
    graph = small("m.a r.r.has m.bare", "m.a r.r.sees m.b", 'm.b type.object.name "Bo"@en')
    bare, named = candidate("m.a", "r.r.has"), candidate("m.a", "r.r.sees")
    shown = PromptView(graph, "?", graph.named([ent("m.a")]), {}, resolve({}), Trace())
    assert [shown.samples(bare), shown.ends(bare)] == ["unnamed", "unnamed"]
    assert [shown.samples(named), shown.ends(named)] == ["Bo", "Bo"]


def test_paths_with_equal_ends_are_one_candidate(view):
    asked = view("Who is the father of Ann Arkin?", "m.ann")
    beyond = candidate("m.ann", "people.person.parents", "people.person.gender")
    assert asked.distinct([FATHER, PARENTS, beyond]) == [FATHER, beyond]
    assert asked.distinct([PARENTS, FATHER]) == [PARENTS]
    many = [candidate(t, *s, "people.person.born", "people.place.people") for t, s in
            (("m.bob", ()), ("m.ann", ("people.person.father",)))]  # fmt: skip
    assert asked.distinct(many) == many  # not all of their ends are known


@pytest.mark.parametrize("samples", [0, 3])
def test_ends_that_cannot_be_read_are_recorded_once_if_they_are_shown(view, trace, monkeypatch, samples):
    late_ends(monkeypatch, COUNTED)
    asked = view("Who is the father of Ann Arkin?", "m.ann", llm__samples=samples)
    assert asked.distinct([FATHER, PARENTS]) == [FATHER, PARENTS] and not trace.events()
    assert {asked.samples(FATHER) for _ in range(2)} == {"too many to be listed" if samples else ""}
    assert len(trace.events()) == bool(samples)
