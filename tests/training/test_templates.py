"""Template questions: their paths, their near misses and their words; and what is held out of them."""

from __future__ import annotations

import random
import re

import pytest

from kgqa.model import Entity, RelationPath, Step
from kgqa.schema import bundled_schema
from kgqa.training.pools import PoolBuilder, question_of, templates, variants
from kgqa.training.questions import TrainingQuestion
from kgqa.training.ranker import without_relations
from kgqa.training.sources import GraphSource, Ontology

from ..memory_graph import turtle_graph

A, B, C = (Step(f"http://ex.org/{name}") for name in ("opened", "baker", "town"))


def back(step: Step) -> Step:
    return step.reversed()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((A,), [(back(A),)]),
        ((A, back(B)), [(back(B), A), (back(B),), (A,), (back(A), back(B)), (A, B)]),
        (
            (A, B, C),
            [(B, A, C), (A, C, B), (B, C), (A, B), (back(A), B, C), (A, back(B), C), (A, B, back(C))],
        ),
    ],
)
def test_variants_differ_in_one_respect(path, expected):
    assert variants(path) == expected


BAKERIES = """\
@prefix e: <http://ex.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:baker rdfs:label "chief baker" ; rdfs:domain e:Bakery ; rdfs:range e:Person .
e:b1 e:baker e:p1 ; e:locatedIn e:t1 ; e:opened "1990" . e:b2 e:baker e:p2 ; e:locatedIn e:t1 ; e:opened "1991" .
e:p1 e:bornIn e:t2 . e:p2 e:bornIn e:t1 . e:t1 e:mayor e:p1 . e:t2 e:mayor e:p2 .
"""


@pytest.fixture(scope="module")
def bakeries() -> GraphSource:
    return GraphSource(turtle_graph(BAKERIES))


def test_template_questions_of_a_graph(bakeries):
    made = templates(bakeries, 60, 0)
    assert len(made) == 60 and made == templates(bakeries, 60, 0) != templates(bakeries, 60, 1)
    assert {len(paths[0]) for _, paths in made} == {1, 2, 3}
    for question, paths in made:
        assert all(bakeries.words(step.relation) in question for step in paths[0])
        assert not re.search(r"http|\b[bpt]\d", question), "a template has no topic"
    assert any("chief baker" in question for question, _ in made)


def test_only_training_compares_with_paths_that_the_graph_lacks():
    builder = PoolBuilder([])
    template = ("q", [(A, B), (C,), (B, A), (C,)])
    pools = []
    for near in (True, False):
        example = builder.template_example(template, near=near)
        pools.append([tuple(builder.steps[number] for number in row if number >= 0) for row in example.pool])
        assert example.gold == 0
    assert pools[1] == [(A, B), (C,), (B, A)]
    assert pools[0] == [(A, B), (B, A), (B,), (A,), (back(A), B), (A, back(B)), (C,)]


def test_types_are_named_if_declared(bakeries):
    baker = Step("http://ex.org/baker")
    asked = {question_of((back(baker),), bakeries, random.Random(n)) for n in range(60)}
    assert any("bakery whose chief baker is" in each for each in asked), asked
    assert any("person" in each for each in asked), "the topic's type"
    asked = {question_of((Step("http://ex.org/mayor", "in"),), bakeries, random.Random(n)) for n in range(60)}
    assert any("thing whose mayor is" in each for each in asked)


def test_template_questions_of_an_ontology():
    base = bundled_schema("freebase").id_base
    ends = {base + "film.film.director": (base + "film.film", base + "people.person"),
            base + "people.person.parents": (base + "people.person", base + "people.person")}  # fmt: skip
    source = Ontology(bundled_schema("freebase"), ends)
    made = [question for question, _ in templates(source, 30, 0)]
    assert len(made) == 30 and all("director" in each or "parents" in each for each in made)


def test_questions_are_lengthened(bakeries):
    builder = PoolBuilder([bakeries])
    baker = (Step("http://ex.org/baker"),)
    question = TrainingQuestion("who bakes for?", RelationPath(Entity("http://ex.org/b1"), baker))
    assert builder.example(question)
    text, (path, *others) = builder.lengthened(question, random.Random(0))
    assert "who bakes for" in text and path[:1] == baker and len(path) == 2 and baker in others
    nowhere = TrainingQuestion("when?", RelationPath(Entity("http://ex.org/b1"), (Step("http://ex.org/opened"),)))
    assert builder.example(nowhere) and builder.lengthened(nowhere, random.Random(0)) is None


def test_relations_that_no_question_has_are_held_out(bakeries):
    made = templates(bakeries, 60, 0)
    kept, apart, count = without_relations(made, {"http://ex.org/baker"}, 0)
    used = [{step.relation for _, paths in part for step in paths[0]} for part in (kept, apart)]
    assert len(kept) + len(apart) == 60 and kept and apart and count == 1
    assert len(used[1] - used[0]) == 1 and "http://ex.org/baker" in used[0]
    assert without_relations(made, used[0] | used[1], 0) == (made, [], 0)
