"""Sources of questions that --dataset can name."""

from __future__ import annotations

import json
import shutil

import pytest

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.catalogue import published_datasets
from kgqa.evaluation.datasets.checking import check as check_file
from kgqa.evaluation.datasets.query_topics import freebase_topics, wikidata_topics
from kgqa.evaluation.datasets.questions import QuestionFileError, read_questions
from kgqa.evaluation.datasets.registry import DEMO, READERS, dataset_names, dataset_questions
from kgqa.evaluation.metrics.keys import gold_keys
from tests.evaluation.datasets.conftest import FIXTURES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of question files set as KGQA_DATASETS."""
    place = tmp_path / "sets"
    (place / "2wikimultihopqa").mkdir(parents=True)
    (place / "grbench" / "legal").mkdir(parents=True)
    shutil.copy(FIXTURES / "ComplexWebQuestions_dev.json", place)
    shutil.copy(FIXTURES / "WebQSP.test.json", place)
    shutil.copy(FIXTURES / "2wiki" / "dev.json", place / "2wikimultihopqa")
    shutil.copy(FIXTURES / "grbench" / "legal" / "data.json", place / "grbench" / "legal")
    monkeypatch.setenv("KGQA_DATASETS", str(place))
    return place


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("webqsp", 5),
        ("webqsp:test", 5),
        ("webqsp:WebQSP.test.json", 5),
        ("cwq:dev", 4),
        ("cwq:ComplexWebQuestions_dev.json", 4),
        ("2wikimultihopqa", 3),
        ("grbench:legal", 3),
        (" webqsp ", 5),
    ],
)
def test_files_in_the_dataset_folder(folder, source, count):
    questions = dataset_questions(source)
    assert len(questions) == count and questions[0].dataset == source.strip().split(":")[0]


def test_local_file_comes_before_the_dataset_folder(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    data = json.loads((FIXTURES / "ComplexWebQuestions_dev.json").read_text())[:1]
    (tmp_path / "ComplexWebQuestions_dev.json").write_text(json.dumps(data))
    assert len(dataset_questions("cwq:ComplexWebQuestions_dev.json")) == 1


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("cwq", "ComplexWebQuestions_test_wans.json"),
        ("cwq:train", "ComplexWebQuestions_train.json"),
        ("cwq:nothing.json", "nothing.json"),
        ("cwq:no/where.json", "no/where.json does not exist"),
    ],
)
def test_missing_files(folder, source, message):
    with pytest.raises(QuestionFileError, match=message):
        dataset_questions(source)


def test_missing_dataset_folder():
    with pytest.raises(QuestionFileError, match="KGQA_DATASETS"):
        dataset_questions("webqsp")
    with pytest.raises(QuestionFileError, match="x.json does not exist"):
        dataset_questions("webqsp:x.json")


def test_unknown_names():
    with pytest.raises(SettingsError, match="'cqw' is not a format.*cwq, webqsp"):
        dataset_questions("cqw:file.json")
    with pytest.raises(SettingsError, match="Unknown dataset nothing.*cwq.*demo"):
        dataset_questions("nothing")
    with pytest.raises(QuestionFileError, match="cannot be read"):
        dataset_questions("nothing.jsonl")


def test_json_lines_files(tmp_path):
    (tmp_path / "mine.jsonl").write_text('{"question": "a?"}\n')
    (tmp_path / "od:d.jsonl").write_text('{"question": "b?"}\n')
    assert [q.text for q in dataset_questions(str(tmp_path / "mine.jsonl"))] == ["a?"]
    assert [q.text for q in dataset_questions(str(tmp_path / "od:d.jsonl"))] == ["b?"]


THEIRS = """
from kgqa.evaluation.datasets.questions import GoldQuestion

def read(file=None, name="theirs"):
    texts = file.read_text().splitlines() if file else ["a?"]
    return [GoldQuestion(text, str(number), name, number) for number, text in enumerate(texts)]

def broken(file, name):
    yield {"question": file.read_text()}
"""


def test_reader_of_another_package(foreign_package, tmp_path, monkeypatch):
    foreign_package("[kgqa.datasets]\ntheirs-set = theirs:read\nbroken = theirs:broken\n", theirs=THEIRS)
    file = tmp_path / "questions.txt"
    file.write_text("b?\nc?\n")
    assert [(q.text, q.dataset) for q in dataset_questions("theirs-set")] == [("a?", "theirs")]
    assert [(q.text, q.dataset) for q in dataset_questions(f"theirs-set:{file}")] == [
        ("b?", "theirs-set"),
        ("c?", "theirs-set"),
    ]
    monkeypatch.setenv("KGQA_DATASETS", str(tmp_path))
    assert len(dataset_questions("theirs-set:questions.txt")) == 2
    assert check_file(f"theirs-set:{file}").questions == 2
    assert "theirs-set" in dataset_names()
    with pytest.raises(QuestionFileError, match="nothing.txt does not exist"):
        dataset_questions("theirs-set:nothing.txt")
    with pytest.raises(QuestionFileError, match="The reader broken needs a file. Write .*dataset.*broken:FILE"):
        dataset_questions("broken")


@pytest.mark.parametrize("name", DEMO)
def test_demo_questions(name):
    questions = dataset_questions(name)
    assert len(questions) == (47 if name == "demo-conditions" else 91) and {q.dataset for q in questions} == {name}


def test_every_format_is_in_the_catalogue():
    assert set(published_datasets()) == set(READERS)
    for name, dataset in published_datasets().items():
        assert (
            dataset.name == name
            and dataset.title
            and dataset.url.startswith("https://")
            and dataset.licence
            and dataset.files
        )
        assert (
            len({file.split for file in dataset.files})
            == len({file.name for file in dataset.files})
            == len(dataset.files)
        )
        assert all(file.questions >= 0 and len(file.sha256) in (0, 64) for file in dataset.files)


# ---- topics of queries ----


def test_topics_of_a_freebase_query():
    query = """PREFIX fb: <http://rdf.freebase.com/ns/>
    SELECT ?x { # fb:m.0comment
      FILTER(?x != fb:m.01) fb:m.01 fb:a.b.c ?y ; fb:a.b.d fb:g.02 . ?y fb:type.object.type fb:m.03 .
      ?y fb:common.topic.notable_types <http://rdf.freebase.com/ns/m.04> . ?y fb:e.f.g "m.05" , <http://rdf.freebase.com/ns/m.06> }"""
    assert freebase_topics(query) == ("m.01", "g.02", "m.06")
    assert freebase_topics("ns:m.01 ns:a.b ?x") == ("m.01",), "ns: need not be declared"
    assert freebase_topics("") == freebase_topics("x" * 300_000) == freebase_topics("not { a query m.01") == ()


def test_topics_of_a_wikidata_query():
    assert wikidata_topics("SELECT ?x { wd:Q1 wdt:P31 wd:Q5 . ?x wdt:P1 wd:Q1 , wd:P5 , <http://www.wikidata.org/entity/Q7> }") == tuple(
        f"http://www.wikidata.org/entity/Q{n}" for n in (1, 5, 7)
    )  # fmt: skip


# ---- real questions ----


def test_cwq_round_trip(data_folder, tmp_path):
    """Topics read from the query alone agree with the topics of the file for at least 95% of the questions."""
    ours = read_questions(data_folder / "freebase" / "questions_cwq_test.dev.jsonl.gz")[:500]
    records = [
        {
            "ID": q.id,
            "question": q.text,
            "sparql": q.row["sparql"],
            "compositionality_type": q.kind,
            "answers": [{"answer": a.name, "answer_id": a.id or a.name, "aliases": []} for a in q.answers],
        }
        for q in ours
    ]
    (tmp_path / "cwq.json").write_text(json.dumps(records))
    theirs = dataset_questions(f"cwq:{tmp_path / 'cwq.json'}")
    assert [(q.id, q.text, q.kind) for q in theirs] == [(q.id, q.text, q.kind) for q in ours]
    assert [gold_keys(q.answers) for q in theirs] == [gold_keys(q.answers) for q in ours]
    same = sum(set(mine.topics) == set(read.topics) for mine, read in zip(ours, theirs))
    assert same >= 0.95 * len(ours)


def test_topics_of_real_qald_queries(data_folder):
    questions = read_questions(data_folder / "wikidata" / "questions_qald10_test.dev.jsonl.gz")
    assert [wikidata_topics(q.sparql[0]) for q in questions] == [q.topics for q in questions]
