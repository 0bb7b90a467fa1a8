"""Checks of question files and the inventory of published files."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import replace

import pytest

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets import checking
from kgqa.evaluation.datasets.catalogue import PublishedDataset, PublishedFile, published_datasets
from kgqa.evaluation.datasets.checking import check, inventory
from tests.evaluation.datasets.conftest import FIXTURES, SOURCES

CWQ = FIXTURES / "ComplexWebQuestions_dev.json"


@pytest.fixture
def set_published(monkeypatch):
    """`known("cwq", questions=4)`: change what is known of the published file behind a fixture."""

    def set_fields(name, **fields):
        (file,) = [f for f in published_datasets()[name].files if f.name == SOURCES[name].rpartition("/")[2]]
        changed = {**published_datasets(), name: replace(published_datasets()[name], files=(replace(file, **fields),))}
        monkeypatch.setattr(checking, "published_datasets", lambda: changed)

    return set_fields


def test_complete_file(set_published):
    set_published("cwq", questions=4, sha256=hashlib.sha256(CWQ.read_bytes()).hexdigest())
    found = check(f"cwq:{CWQ}")
    assert found.problems == () and (found.questions, found.expected, found.split) == (4, 4, "dev")
    assert (found.answers, found.topics, found.queries, found.hash) == (3, 4, 4, "same")
    assert found.notes == ("Questions without a gold answer: 1.",)


def test_hash_is_of_the_unpacked_file(set_published, tmp_path):
    set_published("cwq", questions=4, sha256=hashlib.sha256(CWQ.read_bytes()).hexdigest())
    (tmp_path / (CWQ.name + ".gz")).write_bytes(gzip.compress(CWQ.read_bytes()))
    assert check(f"cwq:{tmp_path / (CWQ.name + '.gz')}").hash == "same"
    (tmp_path / CWQ.name).write_bytes(CWQ.read_bytes() + b"\n")
    other = check(f"cwq:{tmp_path / CWQ.name}")
    assert other.hash == "other" and other.problems == () and "SHA-256" in other.notes[0]


def test_incomplete_file():
    found = check(f"cwq:{CWQ}")
    assert "4 questions, but ComplexWebQuestions_dev.json should have 3,519" in found.problems[0]


def test_file_of_another_format():
    found = check(f"webqsp:{CWQ}")
    assert found.questions == 0 and "webqsp" in found.problems[0] and "record 1" in found.problems[0]


def test_missing_gold_answers_are_a_problem(set_published, tmp_path):
    set_published("cwq", questions=3)
    records = json.loads((FIXTURES / "ComplexWebQuestions_test.json").read_text())
    (tmp_path / CWQ.name).write_text(json.dumps(records))
    found = check(f"cwq:{tmp_path / CWQ.name}")
    assert found.problems == (
        "No gold answers, although ComplexWebQuestions_dev.json should have some. Download the file again.",
    )


def test_blind_test_file_needs_no_answers():
    blind = check(f"cwq:{FIXTURES / 'ComplexWebQuestions_test.json'}")
    assert blind.split == "test-blind" and "There are no gold answers: the questions" in " ".join(blind.notes)
    assert all("gold answers" not in problem for problem in blind.problems)


def test_unknown_files(tmp_path):
    (tmp_path / "mine.json").write_bytes(CWQ.read_bytes())
    found = check(f"cwq:{tmp_path / 'mine.json'}")
    assert found.expected is None and found.problems == () and "no published file" in found.notes[0]
    (tmp_path / "mine.jsonl").write_text('{"question": "a?", "id": "1"}\n{"question": "b?", "id": "1"}\n')
    own = check(str(tmp_path / "mine.jsonl"))
    assert own.format == "kgqa" and own.notes[-1] == "Repeated ids: 1."
    assert check("demo-webqsp").notes == ()
    missing = check("cwq:missing.json")
    assert missing.problems and missing.questions == 0
    with pytest.raises(SettingsError):
        check("nothing")


def test_published_files_are_recognised_by_folder_and_name():
    grbench = published_datasets()["grbench"]
    assert grbench.file_like(FIXTURES / "grbench" / "legal" / "data.json").split == "legal"
    assert grbench.file_like(FIXTURES / "data.json") is None
    one = PublishedDataset("x", "X", "g", "u", "l", (PublishedFile("test", "a.json", 1),))
    assert one.file_like(FIXTURES / "a.json.gz") and not one.file_like(FIXTURES / "ba.json")


def test_inventory(tmp_path, monkeypatch):
    assert all(item.file is None for item in inventory())
    (tmp_path / "musique").mkdir()
    (tmp_path / "musique" / "musique_ans_v1.0_dev.jsonl.gz").write_bytes(b"")
    (tmp_path / "WebQSP.test.json").write_bytes(b"")
    monkeypatch.setenv("KGQA_DATASETS", str(tmp_path))
    here = {(item.dataset, item.known.split) for item in inventory() if item.file}
    assert here == {("musique", "dev"), ("webqsp", "test")}
    assert len(inventory()) == sum(len(dataset.files) for dataset in published_datasets().values())
