"""`check` tells whole files from others, and `inventory` what is missing."""

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
def known(monkeypatch):
    """`known("cwq", questions=4)`: what is published of the only file that the fixture of a format is."""

    def change(name, **fields):
        (file,) = [f for f in published_datasets()[name].files if f.name == SOURCES[name].rpartition("/")[2]]
        changed = {**published_datasets(), name: replace(published_datasets()[name], files=(replace(file, **fields),))}
        monkeypatch.setattr(checking, "published_datasets", lambda: changed)

    return change


def test_a_whole_file(known):
    known("cwq", questions=4, sha256=hashlib.sha256(CWQ.read_bytes()).hexdigest())
    found = check(f"cwq:{CWQ}")
    assert found.problems == () and (found.questions, found.expected, found.split) == (4, 4, "dev")
    assert (found.answers, found.topics, found.queries, found.hash) == (3, 4, 4, "same")
    assert found.notes == ("Questions without a gold answer: 1.",)


def test_the_hash_is_that_of_the_file_unpacked(known, tmp_path):
    known("cwq", questions=4, sha256=hashlib.sha256(CWQ.read_bytes()).hexdigest())
    (tmp_path / (CWQ.name + ".gz")).write_bytes(gzip.compress(CWQ.read_bytes()))
    assert check(f"cwq:{tmp_path / (CWQ.name + '.gz')}").hash == "same"
    (tmp_path / CWQ.name).write_bytes(CWQ.read_bytes() + b"\n")
    other = check(f"cwq:{tmp_path / CWQ.name}")
    assert other.hash == "other" and other.problems == () and "SHA-256" in other.notes[0]


def test_a_file_that_is_not_whole():
    found = check(f"cwq:{CWQ}")
    assert "4 questions, but ComplexWebQuestions_dev.json has 3,519" in found.problems[0]


def test_a_file_of_another_format():
    found = check(f"webqsp:{CWQ}")
    assert found.questions == 0 and "webqsp" in found.problems[0] and "record 1" in found.problems[0]


def test_a_file_that_should_have_answers(known, tmp_path):
    known("cwq", questions=3)
    records = json.loads((FIXTURES / "ComplexWebQuestions_test.json").read_text())
    (tmp_path / CWQ.name).write_text(json.dumps(records))
    found = check(f"cwq:{tmp_path / CWQ.name}")
    assert found.problems == ("No gold answers, but ComplexWebQuestions_dev.json has them. Fetch it again.",)


def test_a_file_that_has_none_by_right():
    blind = check(f"cwq:{FIXTURES / 'ComplexWebQuestions_test.json'}")
    assert blind.split == "test-blind" and "No gold answers: questions can be asked" in " ".join(blind.notes)
    assert all("gold answers" not in problem for problem in blind.problems)


def test_what_nothing_is_known_of(tmp_path):
    (tmp_path / "mine.json").write_bytes(CWQ.read_bytes())
    found = check(f"cwq:{tmp_path / 'mine.json'}")
    assert found.expected is None and found.problems == () and "No published file" in found.notes[0]
    (tmp_path / "mine.jsonl").write_text('{"question": "a?", "id": "1"}\n{"question": "b?", "id": "1"}\n')
    own = check(str(tmp_path / "mine.jsonl"))
    assert own.format == "kgqa" and own.notes[-1] == "Repeated ids: 1."
    assert check("demo-webqsp").notes == ()
    missing = check("cwq:missing.json")
    assert missing.problems and missing.questions == 0
    with pytest.raises(SettingsError):
        check("nothing")


def test_published_files_are_known_by_their_folders():
    grbench = published_datasets()["grbench"]
    assert grbench.file_like(FIXTURES / "grbench" / "legal" / "data.json").split == "legal"
    assert grbench.file_like(FIXTURES / "data.json") is None
    one = PublishedDataset("x", "X", "g", "u", "l", (PublishedFile("test", "a.json", 1),))
    assert one.file_like(FIXTURES / "a.json.gz") and not one.file_like(FIXTURES / "ba.json")


def test_the_inventory(tmp_path, monkeypatch):
    assert all(place.file is None for place in inventory())
    (tmp_path / "musique").mkdir()
    (tmp_path / "musique" / "musique_ans_v1.0_dev.jsonl.gz").write_bytes(b"")
    (tmp_path / "WebQSP.test.json").write_bytes(b"")
    monkeypatch.setenv("KGQA_DATASETS", str(tmp_path))
    here = {(place.dataset, place.known.split) for place in inventory() if place.file}
    assert here == {("musique", "dev"), ("webqsp", "test")}
    assert len(inventory()) == sum(len(each.files) for each in published_datasets().values())
