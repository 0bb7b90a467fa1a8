"""The tasks of the README on a real slice of Freebase."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.cli_runner import run_cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("real")


@pytest.fixture(scope="module")
def loaded(folder, data_folder, session_cache):
    files = [data_folder / "freebase_fast" / "kg.nt.gz", data_folder / "freebase" / "schema.nt.gz"]
    done = run_cli("graph", "load", *files, "--into", "fb", "--json", cwd=folder, KGQA_CACHE_FOLDER=str(session_cache))
    assert done.returncode == 0, done.err
    return json.loads(done.out)


@pytest.fixture
def kgqa(folder):
    return lambda *arguments, **options: run_cli(*arguments, cwd=folder, **options)


def test_load_info_search_and_ask(kgqa, loaded, data_folder):
    assert loaded["triples"] == 225_251 and loaded["schema"] == "freebase" and loaded["malformed"] == 0
    found = json.loads(kgqa("graph", "info", "fb", "--json").out)
    assert found["triples"] == 225_251 and found["labelled_entities"] > 13_000 and found["mediator_relations"] > 400
    assert kgqa("graph", "search", "alta verapaz", "--graph", "fb").out.startswith("Alta Verapaz Department (m.0146np)")
    with gzip.open(data_folder / "freebase_fast" / "questions.jsonl.gz", "rt") as lines:
        questions = [json.loads(line) for line in lines][:20]
    lines_of_questions = "".join(
        json.dumps({"question": q["question"], "topics": [t["id"] for t in q["topic_entities"]], "id": q["id"]}) + "\n"
        for q in questions
    )
    done = kgqa("ask", "--json", "--graph", "fb", input=lines_of_questions)
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [a["id"] for a in answers] == [q["id"] for q in questions]
    assert not any(a["status"] == "failed" or a["defects"] for a in answers)
    assert all(a["query_class"] == "exact" for a in answers if a["status"] == "answered")
    gold = [{a.get("id") for a in q["answers"]} for q in questions]
    right = sum({a["id"] for a in found["answers"]} == wanted for found, wanted in zip(answers, gold))
    assert right >= 10, "zero-shot ranking answers at least half of these"


def test_question_without_a_topic(kgqa, loaded):
    found = json.loads(kgqa("ask", "what language is spoken in Haiti?", "--graph", "fb", "--json").out)
    assert found["topics"][0]["id"] == "m.03gyl" and found["status"] == "answered"
