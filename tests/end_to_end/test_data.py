"""`kgqa data`."""

from __future__ import annotations

import json
import re
import shutil

from tests.evaluation.datasets.conftest import FIXTURES

CWQ_DEV = FIXTURES / "ComplexWebQuestions_dev.json"


def test_list(kgqa, tmp_path):
    done = kgqa("data", "list")
    assert done.returncode == 0 and "webqsp" in done.out and "1,639" in done.out and "(here)" not in done.out
    one = kgqa("data", "list", "cwq")
    assert (
        "https://" in one.out and "licence" in one.out and "ComplexWebQuestions_test.json, without answers" in one.out
    )
    shutil.copy(CWQ_DEV, tmp_path)
    here = kgqa("data", "list", KGQA_DATASETS=str(tmp_path))
    assert "dev 3,519 (here)" in here.out
    unknown = kgqa("data", "list", "cqw")
    assert unknown.returncode == 2 and "cwq" in unknown.err


def test_list_as_json(kgqa, tmp_path):
    shutil.copy(CWQ_DEV, tmp_path)
    data = json.loads(kgqa("data", "list", "cwq", "--json", KGQA_DATASETS=str(tmp_path)).out)
    (cwq,) = data["datasets"]
    assert cwq["name"] == "cwq" and {file["split"] for file in cwq["files"]} == {"train", "dev", "test", "test-blind"}
    assert [file["file"] for file in cwq["files"] if file["split"] == "dev"] == [str(tmp_path / CWQ_DEV.name)]


def test_check(kgqa):
    good = kgqa("data", "check", "demo", "demo-webqsp", f"hotpotqa:{FIXTURES / 'hotpot_dev_distractor_v1.json'}")
    assert good.returncode == 1 and good.out.count("ok ") == 2 and "Download the file again" in good.out
    assert kgqa("data", "check", "demo", "demo-cwq", "demo-grailqa").returncode == 0
    bad = kgqa("data", "check", f"webqsp:{CWQ_DEV}", "cwq:missing.json", "--json")
    assert bad.returncode == 1
    first, second = json.loads(bad.out)["checks"]
    assert "record 1" in first["problems"][0] and "missing.json" in second["problems"][0]


def test_check_lists_missing_files(kgqa, tmp_path):
    nothing = kgqa("data", "check")
    assert nothing.returncode == 2 and "KGQA_DATASETS" in nothing.err
    shutil.copy(CWQ_DEV, tmp_path)
    done = kgqa("data", "check", KGQA_DATASETS=str(tmp_path))
    assert done.returncode == 1 and "4 questions of 3,519" in done.out
    missing = done.out.split("Missing:\n")[1]
    assert re.search(r"^  cwq +ComplexWebQuestions_train.json", missing, re.MULTILINE) and "hotpotqa" in missing
    found = json.loads(kgqa("data", "check", "--json", KGQA_DATASETS=str(tmp_path)).out)
    assert {"dataset": "webqsp", "file": "WebQSP.test.json"} in found["missing"] and len(found["checks"]) == 1


def test_terminal_escapes_are_removed(kgqa, tmp_path):
    (tmp_path / "q\x1b[31m.json").write_text("[7]")
    done = kgqa("data", "check", "cwq:q\x1b[31m.json")
    assert done.returncode == 1 and "\x1b" not in done.out + done.err
