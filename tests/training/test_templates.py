"""Template questions: their paths, their near misses and their words; and what is held out of them."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from kgqa.model import Step
from kgqa.schema import bundled_schema
from kgqa.training.fitting import Example
from kgqa.training.pools import PoolBuilder, question_of, variants
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
    builder = PoolBuilder([])
    made = builder.templates(bakeries, 60, 0)
    assert len(made) == 60 and [e.question for e in builder.templates(bakeries, 60, 0)] == [e.question for e in made]
    paths = [[tuple(builder.steps[n] for n in row if n >= 0) for row in example.pool] for example in made]
    assert {len(pool[0]) for pool in paths} == {1, 2, 3}
    for example, pool in zip(made, paths):
        assert example.gold == 0 and len(set(pool)) == len(pool) > 2 and {*variants(pool[0])} <= {*pool}
        assert all(bakeries.words(step.relation) in example.question for step in pool[0])
        assert not re.search(r"http|\b[bpt]\d", example.question), "a template has no topic"
    assert any("chief baker" in example.question for example in made)


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
    made = [example.question for example in PoolBuilder([]).templates(source, 30, 0)]
    assert len(made) == 30 and all("director" in each or "parents" in each for each in made)


def test_relations_that_no_question_has_are_held_out(bakeries):
    builder = PoolBuilder([bakeries])
    made = builder.templates(bakeries, 60, 0)
    asked = Example("q", np.array([[list(builder.steps).index(Step("http://ex.org/baker"))]], dtype=np.int32), 0)
    kept, apart, count = without_relations(made, [asked], builder.steps, 0)
    relations = [{builder.steps[n].relation for e in part for n in e.pool[e.gold] if n >= 0} for part in (kept, apart)]
    assert len(kept) + len(apart) == 60 and count == len(relations[1] - relations[0]) > 0
    assert "http://ex.org/baker" in relations[0]
