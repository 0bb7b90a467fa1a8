"""Template questions: their paths, their near misses and their words; and what is held out of them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kgqa.model import Step
from kgqa.rank.trained_ranker import TrainedRanker
from kgqa.schema import bundled_schema
from kgqa.training.fitting import Example, Vectors
from kgqa.training.ontology import Ontology
from kgqa.training.pools import PoolBuilder
from kgqa.training.ranker import without_relations
from kgqa.training.sources import GraphSource, OntologySource
from kgqa.training.templates import question_of, templates, variants
from kgqa.training.transfer import hits

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
    made = list(templates(bakeries, 60, random.Random(0)))
    assert len(made) == 60 and made == list(templates(bakeries, 60, random.Random(0)))
    assert {len(paths[0]) for _, paths in made} == {1, 2, 3}
    for question, paths in made:
        assert len(set(paths)) == len(paths) > 2 and {*variants(paths[0])} <= {*paths}
        for step in paths[0]:
            assert bakeries.words(step.relation) in question
    assert any("chief baker" in question for question, _ in made)
    assert not any("http" in question or "b1" in question for question, _ in made), "a template has no topic"


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
    by = [{base + "film.film": (base + "film.film.director",), base + "people.person": (base + "people.person.parents",)},
          {base + "people.person": tuple(ends)}]  # fmt: skip
    source = OntologySource(Ontology(by[0], by[1], ends, {}, frozenset()), bundled_schema("freebase"))
    made = [question for question, _ in templates(source, 30, random.Random(0))]
    assert len(made) == 30 and all("director" in each or "parents" in each for each in made)


def test_relations_that_no_question_has_are_held_out(bakeries):
    builder = PoolBuilder([bakeries])
    made = list(builder.templates(bakeries, 60, 0))
    asked = Example("q", np.array([[list(builder.steps).index(Step("http://ex.org/baker"))]], dtype=np.int32), 0)
    kept, apart, count = without_relations(made, [asked], builder.steps, 0)
    relations = [{builder.steps[n].relation for e in part for n in e.pool[e.gold] if n >= 0} for part in (kept, apart)]
    assert len(kept) + len(apart) == 60 and count == len(relations[1] - relations[0]) > 0
    assert "http://ex.org/baker" in relations[0]


class Words:
    """An encoder of two dimensions that knows two words."""

    def encode_once(self, texts):
        return np.array([{"good": [1.0, 0.0], "bad": [0.0, 1.0]}[text] for text in texts])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ([1, 0], (1.0, 1.0, 1.0)),  # the cosine is right, and so is the ranker
        ([-1, 0], (0.0, 0.0, 0.0)),
        ([1, 1], (0.5, 0.5, 0.5)),  # two equal scores
    ],
)
def test_hits_by_hand(question, expected):
    vectors = Vectors(
        np.eye(2, dtype=np.float32), np.zeros(2, int), {"q": np.array(question) / np.hypot(*question)}, "m"
    )
    example = Example("q", np.array([[1], [0]], dtype=np.int32), 1)
    found = hits(TrainedRanker.identity(2, "m"), [example] * 3, vectors, ["good", "bad"], Words(), 0)
    assert (found.examples, found.cosine, found.head, found.mixed) == (3, *expected)
