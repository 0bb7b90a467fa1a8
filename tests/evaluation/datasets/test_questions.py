"""Question files in the JSON Lines format of the project."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.evaluation.datasets.questions import GoldAnswer, QuestionFileError, read_questions, spread

FULL = {
    "id": "q7",
    "dataset": "cwq_test",
    "question": "who sang it?",
    "topic_entities": [{"id": "m.1", "name": "It"}, {"id": "m.2", "name": None}, {"id": "m.1", "name": "again"}],
    "answers": [{"id": "m.3", "name": "Ann"}, {"name": "1996"}, {"id": "m.4", "name": None}],
    "support": "observed",
    "sparql": "SELECT ...",
}


@pytest.fixture
def write(tmp_path):
    def write(*lines, name="some.questions.jsonl"):
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        file = tmp_path / name
        file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return file

    return write


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_all_fields(write, name):
    (found,) = read_questions(write(FULL, name=name))
    assert (found.id, found.dataset, found.text, found.support) == ("q7", "cwq_test", "who sang it?", "observed")
    assert found.topics == ("m.1", "m.2")
    assert found.answers == (GoldAnswer("m.3", "Ann"), GoldAnswer("", "1996"), GoldAnswer("m.4", ""))
    assert found.row["sparql"] == "SELECT ..."
    assert found.hops is None


def test_default_id_and_number(write):
    first, second = read_questions(write({"question": "a?"}, "", {"question": "b?", "answers": None}))
    assert (first.id, first.dataset, first.number, first.topics, first.answers) == ("0", "some", 0, (), ())
    assert (second.id, second.number) == ("1", 1)


def test_literal_answer(write):
    (found,) = read_questions(write({"question": "a?", "answers": [{"value": "1913", "datatype": "http://e/gYear"}]}))
    assert found.answers == (GoldAnswer("", "1913", "http://e/gYear"),)


@pytest.mark.parametrize(
    ("fields", "hops"),
    [
        ({"hops": 3}, 3),
        ({"hops": 1, "gold_path": ["a", "b"]}, 1),
        ({"gold_path": ["a", "b"]}, 2),
        ({"gold_chains": [["t", "r", "x"], ["t2", "r", "y", "s", "x"]]}, 2),
        ({"gold_chains": []}, None),
        ({}, None),
    ],
)
def test_hops(write, fields, hops):
    assert read_questions(write({"question": "a?", **fields}))[0].hops == hops


@pytest.mark.parametrize(
    ("fields", "answerable"),
    [
        ({}, True),
        ({"support": "observed"}, True),
        ({"support": "observed+skolem"}, True),
        ({"support": "gold_built"}, False),
        ({"support": "incomplete"}, False),
        ({"path_check": "exact"}, True),
        ({"path_check": "superset"}, False),
        ({"answers": []}, False),
        ({"answers": None, "support": "exact"}, False),
    ],
)
def test_answerable(write, fields, answerable):
    (found,) = read_questions(write({"question": "a?", "answers": [{"id": "m.1"}], **fields}))
    assert found.answerable() == answerable


def test_answerable_with_other_support(write):
    (found,) = read_questions(write({"question": "a?", "answers": [{"id": "m.1"}], "support": "gold_built"}))
    assert found.answerable(("observed", "gold_built"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Expecting property name"),
        ("[]", "a question must be a JSON object"),
        ("null", "a question must be a JSON object"),
        ("{}", '"question" must be a non-empty text'),
        ({"question": "  "}, '"question" must be a non-empty text'),
        ({"question": 7}, '"question" must be a non-empty text'),
        ({"question": "a?", "id": 7}, '"id" must be a text'),
        ({"question": "a?", "answers": {"id": "m.1"}}, '"answers" must be a list of objects'),
        ({"question": "a?", "answers": ["m.1"]}, '"answers" must be a list of objects'),
        ({"question": "a?", "answers": [{}]}, 'neither "id" nor "name"'),
        ({"question": "a?", "answers": [{"name": 7}]}, '"name" must be a text'),
        ({"question": "a?", "answers": [{"name": str(n)} for n in range(100_001)]}, "more than 100,000 answers"),
        ({"question": "a?", "topic_entities": "m.1"}, '"topic_entities" must be a list of objects'),
        ({"question": "a?", "hops": 0}, '"hops" must be'),
        ({"question": "a?", "hops": True}, '"hops" must be'),
        ({"question": "a?", "hops": "2"}, '"hops" must be'),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_invalid_line_is_named(write, line, message):
    file = write(FULL, line, FULL)
    with pytest.raises(QuestionFileError) as raised:
        read_questions(file)
    assert str(raised.value).startswith(f"{file}, line 2: ") and message in str(raised.value)


PASSAGES = [{"title": "A", "text": "first"}, {"title": "B", "text": "second"}]


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [
        ({"passages": PASSAGES, "supporting": [1]}, ("B: second",)),
        ({"passages": PASSAGES}, ()),
        ({"supporting": [1]}, ()),
        ({"passages": PASSAGES, "supporting": 1}, ()),
        ({"passages": "A: first", "supporting": [0]}, ()),
        ({"passages": 3, "supporting": [0]}, ()),
        ({"passages": ["A", {"title": "B"}, PASSAGES[0]], "supporting": [0, 1, 2, "x", [1]]}, ("A: first",)),
    ],
)
def test_evidence_ignores_malformed_passages(write, fields, evidence):
    assert read_questions(write({"question": "a?", **fields}))[0].evidence == evidence


def test_invalid_utf8(tmp_path):
    file = tmp_path / "q.jsonl"
    file.write_bytes(b'{"question": "\xff\xfe?"}\n')
    with pytest.raises(QuestionFileError, match="line 1"):
        read_questions(file)


def test_line_limit(write):
    file = write(FULL, {"question": "a" * 2000})
    with pytest.raises(QuestionFileError, match="line 2: longer than 1,000 bytes"):
        read_questions(file, max_line_bytes=1000)


def test_unreadable_files(tmp_path, write):
    whole = write(*[FULL] * 500, name="q.jsonl.gz").read_bytes()
    cut, damaged, none = tmp_path / "cut.jsonl.gz", tmp_path / "damaged.jsonl.gz", tmp_path / "none.jsonl.gz"
    cut.write_bytes(whole[:-20])
    damaged.write_bytes(whole[:40] + b"\0\xff\0" + whole[43:])
    none.write_bytes(b"this is no gzip")
    for file in (cut, damaged, none, tmp_path / "missing.jsonl", tmp_path):
        with pytest.raises(QuestionFileError, match="cannot be read"):
            read_questions(file)


def test_empty_file(write):
    with pytest.raises(QuestionFileError, match="no question"):
        read_questions(write("", " "))


@given(st.lists(st.integers(), unique=True), st.integers(1, 30))
def test_spread(items, limit):
    found = spread(items, limit)
    assert len(found) == min(limit, len(items))
    assert found == [item for item in items if item in set(found)]  # in order, without repetition
    assert found[:1] == items[:1]
    assert spread(items, None) == items


def test_real_question_files(data_folder):
    files = sorted(data_folder.glob("*/*questions*.jsonl.gz"))
    counts = {file.name: len(read_questions(file)) for file in files}
    assert counts["questions_cwq_test.dev.jsonl.gz"] == 1574 and counts["questions.jsonl.gz"] == 243
    cwq = read_questions(data_folder / "freebase" / "questions_cwq_test.dev.jsonl.gz")
    assert sum(q.answerable() for q in cwq) == 513
