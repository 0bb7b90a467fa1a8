"""Training examples: gold paths from queries, pools from graphs and ontologies, and exclusion of test questions."""

from __future__ import annotations

import gzip

import pytest

from kgqa.errors import SettingsError, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import PathQueries
from kgqa.model import Entity, RelationPath, Step
from kgqa.schema import bundled_schema
from kgqa.training.gold_queries import gold_paths, query_paths
from kgqa.training.pools import PoolBuilder
from kgqa.training.questions import (
    TrainingQuestion,
    gold_path_reader,
    training_questions,
    without_evaluated,
)
from kgqa.training.sources import GraphSource, Ontology, read_ontology

from ..memory_graph import memory_graph

FREEBASE = bundled_schema("freebase")
RDFS = bundled_schema("rdfs")
NS = FREEBASE.id_base
PREFIX = f"PREFIX ns: <{NS}> "


def steps(text: str) -> tuple[Step, ...]:
    """Build steps; `a.b.c ^d.e.f` follows the first relation, then the second backwards."""
    return tuple(Step(NS + name.removeprefix("^"), "in" if name[0] == "^" else "out") for name in text.split())


def write_questions(path: RelationPath) -> str:
    names = ("^" * (step.direction == "in") + step.relation.removeprefix(NS) for step in path.steps)
    return f"{path.topic.iri.removeprefix(NS)}: {' '.join(names)}"


# ---- gold paths from queries ----


@pytest.mark.parametrize(
    ("query", "topics", "expected"),
    [
        ("SELECT ?x WHERE { ?x ns:a.b.c ns:m.1 . }", "", ["m.1: ^a.b.c"]),
        ("SELECT DISTINCT ?x { ns:m.1 ns:a.b.c ?y . ?y ns:d.e.f ?x }", "", ["m.1: a.b.c d.e.f"]),
        ("select $x { ns:m.1 ns:a.b.c ?y . ?x ns:d.e.f ?y }", "", ["m.1: a.b.c ^d.e.f"]),
        # a condition on an inner node is not part of the path; the topic is excluded from the answers
        (
            "SELECT ?x { FILTER (?x != ns:m.1) ns:m.1 ns:a.b.c ?y . ?y ns:d.e.f ?x . ?y ns:g.h.i ns:m.2 }",
            "",
            ["m.1: a.b.c d.e.f"],
        ),
        # without that filter the topic is the first entity
        ("SELECT ?x { ns:m.1 ns:a.b.c ?x . ns:m.2 ns:d.e.f ?x }", "", ["m.1: a.b.c"]),
        # one path per given topic, in the given order
        ("SELECT ?x { ns:m.1 ns:a.b.c ?x . ?x ns:d.e.f ns:m.2 }", "m.2 m.1", ["m.2: ^d.e.f", "m.1: a.b.c"]),
        ("SELECT ?x { ns:m.1 ns:a.b.c ?x . ?x ns:d.e.f ns:m.2 }", "m.3", []),
        # the path contains variables only
        ("SELECT ?x { ns:m.1 ns:a.b.c ns:m.2 . ns:m.2 ns:d.e.f ?x }", "m.1", []),
        # the shortest path
        ("SELECT ?x { ns:m.1 ns:a.b.c ?y . ?y ns:d.e.f ?x . ns:m.1 ns:g.h.i ?x }", "", ["m.1: g.h.i"]),
        # ; repeats the subject, and , subject and relation
        ("SELECT ?x { ns:m.1 ns:a.b.c ?y ; ns:g.h.i ns:m.3 . ?y ns:d.e.f ns:m.2 , ?x . }", "", ["m.1: a.b.c d.e.f"]),
        # filters, ordering and counting
        (
            "SELECT ?x { ns:m.1 ns:a.b.c ?y FILTER NOT EXISTS { ?y ns:d.e.f ?x } ?y ns:g.h.i ?x }",
            "",
            ["m.1: a.b.c g.h.i"],
        ),
        ("SELECT ?x { MINUS { ns:m.1 ns:d.e.f ?x } ns:m.1 ns:a.b.c ?x } ORDER BY ?x LIMIT 1", "", ["m.1: a.b.c"]),
        ("SELECT ?x { FILTER (NOT EXISTS { ns:m.2 ns:d.e.f ?x } || ?x = 1) ns:m.1 ns:a.b.c ?x }", "", ["m.1: a.b.c"]),
        ("SELECT ?x { { SELECT ?d { ns:m.1 ns:d.e.f ?d } ORDER BY ?d } ns:m.1 ns:a.b.c ?x }", "", ["m.1: a.b.c"]),
        (
            "SELECT ?x { { ns:m.1 ns:a.b.c ?x } UNION { ns:m.2 ns:d.e.f ?x } OPTIONAL { ?x ns:g.h.i ?z } }",
            "",
            ["m.1: a.b.c"],
        ),
        ("SELECT (?x AS ?value) { SELECT ?x { VALUES ?y { ns:m.1 } ?x ns:a.b.c ?y } }", "", ["m.1: ^a.b.c"]),
        ('SELECT ?x { ns:m.1 ns:a.b.c ?x . ?x ns:d.e.f "?x { ns:m.9"@en . ?x ns:g.h.i 5 . }', "", ["m.1: a.b.c"]),
        ("SELECT ?x { ns:m.1 ns:a.b.c/^ns:d.e.f ?x }", "", ["m.1: a.b.c ^d.e.f"]),
        ("SELECT ?x { ns:m.1 ns:a.b.c ?x . ?x ns:d.e.f * ns:m.2 }", "", ["m.1: a.b.c"]),
        ("SELECT ?x { ns:m.1 ?r ?x }", "", []),
        ("ASK { ns:m.1 ns:a.b.c ?x }", "", []),
        ("SELECT ?x { SERVICE ns:m.1 { ns:m.1 ns:a.b.c ?x } }", "", []),
        # cut short
        ("SELECT ?x { ns:m.1 ns:a.b.c ?x", "", []),
        ("", "", []),
    ],
)
def test_paths_of_queries(query, topics, expected):
    assert [
        write_questions(path) for path in query_paths(PREFIX + query, tuple(NS + t for t in topics.split()))
    ] == expected


@pytest.mark.parametrize(
    ("row", "schema", "names", "expected"),
    [
        ({"topic_entities": [{"id": "m.1"}], "sparql": PREFIX + "SELECT ?x { ns:m.1 ns:a.b.c ?x }"}, FREEBASE, {},
         ["m.1: a.b.c"]),
        ({"sparql_portable": f"SELECT ?x {{ <{NS}m.1> <{NS}a.b.c> ?x }}"}, FREEBASE, {}, ["m.1: a.b.c"]),
        ({"topic_entities": [{"id": "http://e/t"}], "gold_path": ["http://r/a", "^http://r/b"]}, RDFS, {},
         ["http://e/t: http://r/a ^http://r/b"]),
        ({"topic_entities": [{"id": "http://e/t"}], "gold_path": ["^a", "b"]}, RDFS, {"a": "http://r/a", "b": "http://r/b"},
         ["http://e/t: ^http://r/a http://r/b"]),
        ({"topic_entities": [{"id": "http://e/t"}], "gold_path": ["a"]}, RDFS, {}, []),
        ({"topic_entities": [{"id": "http://e/t"}, {"id": "http://e/u"}], "gold_chains": [["t", "a", "x"], ["u", "b", "y", "a", "x"]]},
         RDFS, {"a": "http://r/a", "b": "http://r/b"}, ["http://e/t: http://r/a", "http://e/u: http://r/b http://r/a"]),
        ({}, FREEBASE, {}, []),
    ],
)  # fmt: skip
def test_paths_of_questions(row, schema, names, expected):
    assert [write_questions(path) for path in gold_paths(row, schema, by_local_name=names)] == expected


# ---- the ontology ----

ROLES = """\
people.person people.person.place_of_birth location.location
people.person people.person.education education.education
people.person people.person.date_of_birth type.datetime
people.person common.topic.image common.image
film.actor film.actor.film film.performance
location.location location.location.people_born_here people.person
location.location location.location.contains location.location
education.education education.education.institution education.school
education.education education.education.degree education.degree
education.education education.education.student people.person
education.school education.school.students education.education
film.performance film.performance.film film.film
film.performance film.performance.next film.performance
film.film film.film.starring film.performance
two names
"""
REVERSE = """\
people.person.place_of_birth location.location.people_born_here
people.person.education education.education.student
education.school.students education.education.institution
"""


@pytest.fixture
def ontology(tmp_path) -> Ontology:
    folder = tmp_path / "ontology"
    folder.mkdir()
    (folder / "fb_roles").write_text(ROLES)
    (folder / "reverse_properties").write_text(REVERSE.replace(" ", "\t"))
    (folder / "cvt_types.gz").write_bytes(gzip.compress(b"education.education\nfilm.performance\n"))
    (folder / "fb_types").write_text("film.actor subclassOf people.person\n")
    return read_ontology(folder, FREEBASE)


@pytest.mark.parametrize(
    ("content", "message"), [(b"", "is not an ontology"), (b"\xff" * 9, "Cannot read"), (None, "Cannot read")]
)
def test_invalid_ontology(tmp_path, content, message):
    if content is not None:
        (tmp_path / "roles").write_bytes(content)
    with pytest.raises(SettingsError, match=message):
        read_ontology(tmp_path / "roles", FREEBASE)


# ---- pools ----


def gold(text: str, topic: str = "m.1") -> TrainingQuestion:
    return TrainingQuestion("q?", RelationPath(Entity(NS + topic), steps(text)))


def pool_of(builder: PoolBuilder, example) -> set[tuple[Step, ...]]:
    paths = [tuple(builder.steps[number] for number in row if number >= 0) for row in example.pool]
    assert len(set(paths)) == len(paths)
    return set(paths)


def gold_of(builder: PoolBuilder, example) -> tuple[Step, ...]:
    return tuple(builder.steps[number] for number in example.pool[example.gold] if number >= 0)


def test_simulated_pool(ontology):
    builder = PoolBuilder([ontology])
    example = builder.example(gold("people.person.education education.education.degree"))
    assert gold_of(builder, example) == steps("people.person.education education.education.degree")
    assert pool_of(builder, example) == {
        steps("people.person.date_of_birth"),
        steps("people.person.place_of_birth"),
        # mediators are passed through; the way back and folded inverse relations are included
        steps("people.person.education education.education.institution"),
        steps("people.person.education education.education.degree"),
        steps("people.person.education education.education.student"),
        steps("people.person.place_of_birth location.location.people_born_here"),
        steps("people.person.place_of_birth location.location.contains"),
        steps("people.person.place_of_birth ^location.location.contains"),
    }
    again = builder.example(gold("people.person.place_of_birth"))
    assert again.pool is example.pool and gold_of(builder, again) == steps("people.person.place_of_birth")


def test_long_gold_path_is_among_its_siblings(ontology):
    builder = PoolBuilder([ontology])
    text = "people.person.place_of_birth location.location.people_born_here people.person.date_of_birth"
    pool = pool_of(builder, builder.example(gold(text)))
    assert steps(text) in pool
    assert steps(text)[:2] + steps("people.person.place_of_birth") in pool, "what else could follow"
    assert steps(text)[:2] + steps("people.person.education") not in pool, "a mediator is no end"
    assert max(map(len, pool)) == 3


GRAPH = """\
m.1 people.person.place_of_birth m.2
m.1 people.person.education m.3
m.3 education.education.institution m.4
m.3 education.education.degree m.5
m.2 location.location.contains m.6
m.6 location.location.motto m.7
m.6 location.location.symbol m.8
"""
EXTRA = f"""\
<{NS}m.1> <{NS}type.object.name> "Ada Lovelace"@en .
<{NS}education.education> <{NS}freebase.type_hints.mediator> "true" .
<{NS}m.3> <{NS}type.object.type> <{NS}education.education> .
<{NS}people.person.place_of_birth> <http://www.w3.org/2002/07/owl#inverseOf> <{NS}location.location.people_born_here> .
"""


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    lines = [" ".join(f"<{NS}{name}>" for name in line.split()) + " ." for line in GRAPH.splitlines()]
    return memory_graph([*lines, *EXTRA.splitlines()])


def test_pool_from_a_graph(graph, ontology):
    builder = PoolBuilder([GraphSource(graph), ontology])
    example = builder.example(gold("people.person.education education.education.degree"))
    assert gold_of(builder, example) == steps("people.person.education education.education.degree")
    assert pool_of(builder, example) == {
        steps("people.person.place_of_birth"),
        steps("people.person.education education.education.institution"),
        steps("people.person.education education.education.degree"),
        steps("people.person.place_of_birth location.location.contains"),
    }


def test_ontology_replaces_missing_topic_or_path_of_the_graph(graph, ontology):
    builder = PoolBuilder([GraphSource(graph), ontology])
    assert builder.example(gold("people.person.place_of_birth", topic="m.99"))
    assert builder.example(gold("people.person.date_of_birth"))
    assert PoolBuilder([GraphSource(graph)]).example(gold("people.person.date_of_birth")) is None


def test_long_gold_path_in_a_graph(graph):
    builder = PoolBuilder([GraphSource(graph)])
    text = "people.person.place_of_birth location.location.contains location.location.motto"
    example = builder.example(gold(text))
    assert gold_of(builder, example) == steps(text)
    assert steps(text)[:2] + steps("location.location.symbol") in pool_of(builder, example)
    assert builder.example(gold(text.replace("motto", "anthem"))) is None


def test_topic_that_takes_too_long_is_explored_once(graph, monkeypatch):
    asked = []

    def steps_of(paths, candidates, **how):
        asked.append(candidates)
        raise StoreTimeout("too late")

    monkeypatch.setattr(PathQueries, "steps", steps_of)
    builder = PoolBuilder([GraphSource(graph)])
    assert [builder.example(gold("people.person.place_of_birth")) for _ in range(2)] == [None, None]
    assert len(asked) == 1


def test_inverse_is_replaced_by_the_relation_of_the_graph(graph):
    builder = PoolBuilder([GraphSource(graph)])
    example = builder.example(gold("^location.location.people_born_here"))
    assert gold_of(builder, example) == steps("people.person.place_of_birth")


# ---- masked mentions and excluded test questions ----

BORN = PREFIX + "SELECT ?x { ns:m.1 ns:people.person.place_of_birth ?x }"


def test_mentions_are_masked_by_names_of_graph_and_file(graph):
    rows = [
        {"question": "where was ada lovelace born?", "sparql": BORN},
        {"question": "where was Lady L. born?", "sparql": BORN, "topic_entities": [{"id": "m.1", "name": "Lady L."}]},
        {"question": "no gold path"},
    ]
    found = training_questions(rows, gold_path_reader([FREEBASE]), [graph.labels])
    assert [each.asked for each in found] == ["where was born?", "where was born?"]
    assert training_questions(rows, gold_path_reader([FREEBASE]))[0].asked == "where was ada lovelace born?"


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ({"question": "Where was ADA born"}, False),
        ({"question": "when was ada born?"}, True),
        ({"question": "ada's birthplace", "sparql": BORN}, False),
        ({"question": "her birthplace", "sparql": BORN.replace("m.1", "m.2")}, True),
        ({"question": "her birthplace", "sparql": BORN.replace("place_of_birth", "nationality")}, True),
        # the inverse relation is equivalent
        ({"question": "ada's birthplace", "sparql": PREFIX + "SELECT ?x { ?x ns:location.location.people_born_here ns:m.1 }"},
         False),
        # part of a longer path is not
        ({"question": "x", "sparql": BORN.replace("?x }", "?y . ?y ns:location.location.contains ?x }")}, True),
        ({"question": "x", "id": "WebQTest-7_0123abc"}, False),
        ({"question": "x", "id": "WebQTest-77"}, True),
        ({"question": "x", "id": "webqsp_train_7"}, True),
    ],
)  # fmt: skip
def test_test_questions_are_excluded_from_training(ontology, row, kept):
    evaluated = [{"question": "where was Ada born?", "id": "WebQTest-7", "sparql": BORN}]
    found = without_evaluated([row], evaluated, gold_path_reader([FREEBASE]), ontology.inverses)
    assert found == ([row] if kept else [])
