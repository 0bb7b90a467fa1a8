"""Damaged or malformed question files: errors that name the file and the record."""

from __future__ import annotations

import gzip
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.errors import KgqaError
from kgqa.evaluation.datasets import fields, record_stream
from kgqa.evaluation.datasets.questions import QuestionFileError
from kgqa.evaluation.datasets.registry import READERS, dataset_questions
from tests.conftest import SOAK
from tests.evaluation.datasets.conftest import FIXTURES, SOURCES

FRAMES = ("webqsp", "tog-webqsp", "qald10", "okvqa")
"""Formats whose original is one object that holds the records."""
JSON_FORMATS = [name for name in SOURCES if name not in ("simplequestions", "evqa")]


@pytest.fixture
def write_data(tmp_path):
    def write(data, name="q.json"):
        file = tmp_path / name
        file.write_bytes(
            data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json.dumps(data).encode()
        )
        return file

    return write


def error_message(name, file) -> str:
    with pytest.raises(QuestionFileError) as raised:
        dataset_questions(f"{name}:{file}")
    return str(raised.value)


@pytest.mark.parametrize("name", SOURCES)
def test_gzip_and_byte_order_mark(name, write_data):
    plain = (FIXTURES / SOURCES[name]).read_bytes()
    file = write_data(gzip.compress(b"\xef\xbb\xbf" + plain), "q.test.json.gz")
    found, whole = dataset_questions(f"{name}:{file}"), dataset_questions(f"{name}:{FIXTURES / SOURCES[name]}")
    assert [q.text for q in found] == [q.text for q in whole]


@pytest.mark.parametrize("name", JSON_FORMATS)
def test_json_lines_and_json_array(name, write_data):
    records = records_of(FIXTURES / SOURCES[name])
    whole = [(q.id, q.text) for q in dataset_questions(f"{name}:{FIXTURES / SOURCES[name]}")]
    array = write_data(records, "q.test.json")
    assert [(q.id, q.text) for q in dataset_questions(f"{name}:{array}")] == whole != []
    lines = write_data("\n".join(map(json.dumps, records)) + "\n\n", "q.test.jsonl")
    if name in FRAMES:
        assert "has no array" in error_message(name, lines)  # a single object is read as the frame of the original
    else:
        assert [(q.id, q.text) for q in dataset_questions(f"{name}:{lines}")] == whole


def records_of(file) -> list:
    """Return the records of a fixture in any of its forms."""
    text = file.read_text()
    try:
        data = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]
    return next(data[key] for key in ("Questions", "questions") if key in data) if isinstance(data, dict) else data


WRONG_RECORDS = (None, "a", [], {}, {"question": 3.5, "answers": "x"}, {"question": {"a": 1}})


@pytest.mark.parametrize(
    ("name", "record"), [*((name, 7) for name in JSON_FORMATS), *(("cwq", record) for record in WRONG_RECORDS)]
)
def test_invalid_record_is_named(name, record, write_data):
    frame = {"webqsp": "Questions", "qald10": "questions", "okvqa": "questions"}.get(name)
    file = write_data({"a": [1], frame: [record]} if frame else [record])
    assert error_message(name, file).startswith(f"{file}, record 1: ")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("cwq", {"answers": ["m.1"]}, '"answers" must be a list of objects'),
        ("cwq", {"answers": [{"answer": "x", "aliases": [7]}]}, '"aliases" must be a list of strings'),
        ("cwq", {"ID": ""}, '"ID" must be an id'),
        ("cwq", {"sparql": ["SELECT"]}, '"sparql" must be a text'),
        ("grailqa", {"graph_query": [1]}, '"graph_query" must be an object'),
        ("webquestions", {"targetValue": "(list"}, "a closing bracket is missing"),
        ("hotpotqa", {"context": [["a", "b"]]}, "titles with lists of sentences"),
        ("hotpotqa", {"supporting_facts": [["a"]]}, "a list of pairs"),
        ("grbench", {"answer": {"a": 1}}, '"answer" must be a text'),
        ("tog-cwq", {"topic_entity": ["m.1"]}, '"topic_entity" must map'),
        ("tog-qald", {"answer": {"Q1": [1]}}, '"Q1" must be a text'),
    ],
)
def test_invalid_field_is_named(name, change, message, write_data):
    text = (FIXTURES / SOURCES[name]).read_text()
    data = [json.loads(line) for line in text.splitlines()] if SOURCES[name].endswith("data.json") else json.loads(text)
    data[1] |= change
    file = write_data(data)
    found = error_message(name, file)
    assert found.startswith(f"{file}, record 2: ") and message in found and f"in the format {name}" in found


def test_invalid_qald_record(write_data):
    def record(**change):
        base = {"id": 1, "question": [{"language": "en", "string": "a?"}], "answers": [], "query": {"sparql": ""}}
        return {"questions": [base | change]}

    assert "question in some language" in error_message("qald10", write_data(record(question=[])))
    assert '"boolean"' in error_message("qald10", write_data(record(answers=[{"boolean": "yes"}])))
    assert '"bindings"' in error_message(
        "qald10", write_data(record(answers=[{"results": {"bindings": [{"x": "y"}]}}]))
    )
    assert '"query"' in error_message("qald10", write_data(record(query="SELECT")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "contains no question"),
        ("  \n ", "contains no question"),
        ('[{"ID": "a"', "record 1: not JSON"),
        ('[{"ID": "1", "question": "a?"}, {"ID"', "record 2: not JSON"),
        ('[{"ID": "1", "question": "a?"}', "record 2: not JSON (the end is missing)"),
        ('[{"ID": "1", "question": "a?"} {"ID": "2"}]', "a comma or ] was expected"),
        ('[{"ID": "1", "question": "a?"},]', "record 2: not JSON"),
        ('[{"ID": "1", "question": "a?"}] x', "text follows the end"),
        ("<html>", "record 1: not JSON"),
        ("[" * 200_000, "nested too deeply"),
        ('[{"ID": "1", "question": ' + "1" * 5000 + "}]", "record 1: not JSON"),
    ],
)
def test_invalid_json(text, message, write_data):
    assert message in error_message("cwq", write_data(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "has no array under the key 'Questions'"),
        ('{"Questions": {}}', "has no array under the key 'Questions'"),
        ('{"a": 1, "Questions" [', "a name was expected"),
        ('{"Questions": [', "the end is missing"),
        ('{"Questions": []', "the end is missing"),
        ('{"a": [1, "Questions"]}', "has no array"),
    ],
)
def test_invalid_frame(text, message, write_data):
    assert message in error_message("webqsp", write_data(text))


def test_empty_list(write_data):
    assert "contains no question" in error_message("webqsp", write_data('{"Questions": []}'))
    assert "contains no question" in error_message("cwq", write_data("[ ]"))
    assert "contains no question" in error_message("simplequestions", write_data("\n", "q.txt"))


def test_unreadable_files(tmp_path, write_data):
    whole = gzip.compress(
        json.dumps([{"ID": str(n), "question": random.Random(n).random()} for n in range(5000)]).encode()
    )
    assert "cannot be read" in error_message("cwq", write_data(whole[:-30], "cut.json.gz"))
    assert "cannot be read" in error_message("cwq", write_data(b"no gzip", "none.json.gz"))
    assert "UTF-8" in error_message("cwq", write_data(b'[{"ID": "\xff"}]'))
    assert "UTF-8" in error_message("simplequestions", write_data(whole, "q.txt"))
    assert "cannot be read" in error_message("cwq", tmp_path)


@pytest.mark.parametrize(
    "line", ["a", "m.1\tb.c\tm.2\t ", "x\tpeople.person.child\tm.2\tq?", "m.1\tchild\tm.2\tq?", "m.1\tb.c\tz\tq"]
)
def test_invalid_simplequestions_line(line, write_data):
    file = write_data(f"m.1\tb.c\tm.2\tq?\n\n{line}\n", "q.txt")
    assert error_message("simplequestions", file).startswith(f"{file}, line 3: ")


def test_invalid_alias_file(tmp_path):
    for name in ("dev.json", "id_aliases.json"):
        (tmp_path / name).write_bytes((FIXTURES / "2wiki" / name).read_bytes())
    with (tmp_path / "id_aliases.json").open("a") as file:
        file.write("[1]\n")
    message = error_message("2wikimultihopqa", tmp_path / "dev.json")
    assert "id_aliases.json, record " in message and "a JSON object was expected" in message


def test_size_limits(monkeypatch, write_data):
    record = {"ID": "1", "question": "a" * 5000}
    monkeypatch.setattr(record_stream, "_CHUNK", 100)
    monkeypatch.setattr(record_stream, "MAX_RECORD_CHARS", 2000)
    assert "record 2: not JSON, or longer than 2,000 characters" in error_message(
        "cwq", write_data([{"ID": "0", "question": "q"}, record])
    )
    assert "longer than 2,000 characters" in error_message("simplequestions", write_data("a" * 5000, "q.txt"))
    monkeypatch.setattr(record_stream, "MAX_FILE_BYTES", 3000)
    assert "larger than 3,000 bytes" in error_message("cwq", write_data([{"ID": "1", "question": "a"}] * 500))


def test_answer_limit(monkeypatch, write_data):
    monkeypatch.setattr(fields, "MAX_ANSWERS", 2)
    answers = [{"answer": f"a{n}", "answer_id": f"m.{n}", "aliases": []} for n in range(3)]
    assert "more than 2 answers" in error_message("cwq", write_data([{"ID": "1", "question": "a", "answers": answers}]))


_JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def _key_paths(value, at=()):
    """Yield the key path of every value within a value."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _key_paths(inner, (*at, key))


@pytest.mark.soak
@pytest.mark.parametrize("name", JSON_FORMATS)
@settings(max_examples=100 if SOAK else 12)
@given(data=st.data())
def test_random_values_raise_only_named_errors(name, data, tmp_path_factory):
    text = (FIXTURES / SOURCES[name]).read_text()
    records = (
        [json.loads(line) for line in text.splitlines()]
        if SOURCES[name].endswith(("jsonl", "data.json"))
        else json.loads(text)
    )
    key_path = data.draw(st.sampled_from([path for path in _key_paths(records) if path]))
    target = records
    for key in key_path[:-1]:
        target = target[key]
    target[key_path[-1]] = data.draw(_JSON_VALUES)
    file = tmp_path_factory.getbasetemp() / f"{name}.json"
    file.write_text(json.dumps(records))
    message = ""
    try:
        assert all(question.text for question in dataset_questions(f"{name}:{file}"))
    except KgqaError as error:
        message = str(error)
    assert not message or str(file) in message


@given(
    st.lists(st.dictionaries(st.text(max_size=4), _JSON_VALUES, max_size=3), min_size=1, max_size=6), st.integers(1, 60)
)
def test_records_across_chunk_borders(tmp_path_factory, records, chunk):
    file = tmp_path_factory.getbasetemp() / "pieces.json"
    before = record_stream._CHUNK
    record_stream._CHUNK = chunk
    try:
        for text, within in (
            (json.dumps(records), ()),
            (json.dumps({"x": 12, "y": records, "z": [True]}, indent=2), ("y",)),
            ("\n".join(map(json.dumps, records)), ()),
        ):
            file.write_text(text)
            assert json.dumps(list(record_stream.json_records(file, within=within))) == json.dumps(records)
    finally:
        record_stream._CHUNK = before


def test_readers_yield_questions_one_by_one(tmp_path):
    """Questions before a damaged record are still returned."""
    first = json.loads((FIXTURES / SOURCES["cwq"]).read_text())[0]
    (tmp_path / "q.json").write_text(json.dumps([first])[:-1] + ", 7]")
    questions = READERS["cwq"](tmp_path / "q.json", "cwq")
    assert next(questions).id == first["ID"]
    with pytest.raises(QuestionFileError, match="record 2"):
        next(questions)
