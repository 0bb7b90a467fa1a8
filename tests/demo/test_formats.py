"""The demo questions in published formats."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

from kgqa.evaluation.datasets.registry import dataset_questions
from kgqa.evaluation.metrics.keys import gold_keys, literal_key
from kgqa.graph.query.tokens import expand_prefixes
from kgqa.model import Literal
from kgqa.schema import bundled_schema
from kgqa.training.gold_queries import gold_paths
from scripts import demo_formats as formats
from scripts.demo_graph import DEMO_FOLDER

NS = "http://rdf.freebase.com/ns/"
COPIES = ("demo-cwq", "demo-webqsp", "demo-grailqa")


def test_files_are_up_to_date():
    contents = formats.contents()
    assert set(contents) == {"cwq.json", "webqsp.json", "grailqa.json"}
    for name, text in contents.items():
        assert (DEMO_FOLDER / name).read_text(encoding="utf-8") == text, f"run python -m scripts.demo_formats: {name}"


def test_check_option_detects_outdated_files(tmp_path, monkeypatch, capsys):
    assert formats.main(["--check"]) == 0
    monkeypatch.setattr(formats, "contents", lambda: {"cwq.json": "[]\n"})
    assert formats.main(["--check"]) == 1 and "python -m scripts.demo_formats" in capsys.readouterr().err


@pytest.mark.parametrize("name", COPIES)
def test_formats_read_back_equal(name):
    ours, theirs = dataset_questions("demo"), dataset_questions(name)
    assert [q.id for q in theirs] == [q.id for q in ours] and [q.text for q in theirs] == [q.text for q in ours]
    assert [q.topics for q in theirs] == [q.topics for q in ours]
    assert [gold_keys(q.answers) for q in theirs] == [gold_keys(q.answers) for q in ours]
    assert [{a.name for a in q.answers} for q in theirs] == [{a.name for a in q.answers} for q in ours]
    assert all(q.answerable() and not q.parses for q in theirs)


def test_fields_of_each_format():
    by_name = {name: dataset_questions(name) for name in COPIES}
    assert any(a.aliases for q in by_name["demo-cwq"] for a in q.answers)
    assert {q.kind for q in by_name["demo-cwq"]} == {"simple", "composition"}
    assert {q.level for q in by_name["demo-grailqa"]} == {"i.i.d.", "compositional", "zero-shot"}
    assert all(q.topic_names for name in ("demo-webqsp", "demo-grailqa") for q in by_name[name])


@pytest.fixture(scope="module")
def store():
    store = ox.Store()
    store.bulk_load((DEMO_FOLDER / "graph.nt").read_bytes(), format=ox.RdfFormat.N_TRIPLES)
    return store


def test_grailqa_queries_give_the_gold_answers(store):
    for question in dataset_questions("demo-grailqa"):
        found = {
            ("id", row[0].value.removeprefix(NS))
            if isinstance(row[0], ox.NamedNode)
            else literal_key(Literal(row[0].value, row[0].datatype.value))
            for row in store.query(expand_prefixes(question.sparql[0]))
        }
        assert found == gold_keys(question.answers), question.id


def test_gold_paths_equal_those_of_the_demo():
    schema = bundled_schema("freebase")
    for ours, theirs in zip(dataset_questions("demo"), dataset_questions("demo-grailqa")):
        (path,) = gold_paths(theirs.row, schema)
        assert [("^" if s.direction == "in" else "") + schema.short_id(s.relation) for s in path.steps] == ours.row[
            "path"
        ]
