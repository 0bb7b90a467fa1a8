"""The golden records: faults planted in a record of the demo graph and corpus are found, and a poor record is refused."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tests.cli_runner import run_cli

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
QUESTION = "Which city is the capital of the country whose anthem is Kimigayo?"
SECTIONS = ("answers", "methods", "corpus")


@pytest.fixture(scope="module")
def golden():
    """The modules of the recording scripts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        import golden
        import golden_compare

        patch.setattr(golden_compare, "LEAST", {})
        patch.setattr(golden_compare, "SHARES", {"answered": 0.5})
        yield golden


@pytest.fixture(scope="module")
def records(golden, tmp_path_factory):
    """Records of two answers, of the prompts for a question, and of a search, by section."""
    from golden_corpora import inside
    from golden_methods import prompted
    from golden_records import asked

    rows = [{"id": "a", "question": QUESTION}, {"id": "b", "question": "Who directed the film Parasite?"}]
    corpus = tmp_path_factory.mktemp("golden") / "corpus"
    assert run_cli("corpus", "build", "--demo", "--into", corpus, "--embeddings", "off").returncode == 0
    found = inside("corpus", "search", "lighthouse of Sandrey", "--graph", corpus, "--embeddings", "off", "--json")
    answers = asked(rows, "--embeddings", "off", linked=True)
    prompts = prompted(rows[:1], lambda messages: "[1]", "--method", "top-1", "--embeddings", "off")
    return {
        "answers": [("demo", *each) for each in answers],
        "methods": [("top-1 ours", *each) for each in prompts],
        "corpus": [("search of demo", "chunk", found)],
    }


def compared(golden, tmp_path, before, after, capsys, *, allowed=""):
    """Write two records; return whether they compare as equal, and what is printed."""
    for name, records in {"before": before, "after": after}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "embedder.json").write_text('"some model"')
        for section, each in records.items():
            golden.write(tmp_path / name / f"{section}.jsonl.gz", each, tmp_path)
    (tmp_path / "allowed.toml").write_text(allowed)
    equal = golden.compare(tmp_path / "before", tmp_path / "after", SECTIONS, tmp_path / "allowed.toml")
    return equal, capsys.readouterr().out


def change_answer(records):
    records["answers"][0][2]["answers"][0]["name"] = "Kyoto"


def lose_line(records):
    message = records["methods"][0][2]["prompts"][0]["messages"][-1]
    message["content"] = "\n".join(line for n, line in enumerate(message["content"].split("\n")) if n != 1)


def change_order(records):
    records["corpus"][0][2].reverse()


FAULTS = {change_answer: "answers: demo: answers: 1", lose_line: "methods: top-1 ours: prompts: 1"}
FAULTS |= {change_order: "corpus: search of demo: value: 1"}


@pytest.mark.slow
@pytest.mark.parametrize("plant", FAULTS)
def test_planted_faults_are_found(golden, records, tmp_path, capsys, plant):
    after = copy.deepcopy(records)
    plant(after)
    equal, printed = compared(golden, tmp_path, records, after, capsys)
    assert not equal and FAULTS[plant] in printed and printed.count(": 1\n") == 1, printed


@pytest.mark.slow
def test_equal_records_are_equal_and_listed_differences_are_allowed(golden, records, tmp_path, capsys):
    assert len(records["methods"][0][2]["prompts"]) > 1 and len(records["corpus"][0][2]) > 1
    assert [each[2]["answers"][0]["name"] for each in records["answers"]] == ["Tokyo", "Bong Joon-ho"]
    (tmp_path / "equal").mkdir()
    equal, printed = compared(golden, tmp_path / "equal", records, records, capsys)
    assert equal and "some model" in printed
    after = copy.deepcopy(records)
    change_answer(after)
    rule = '[[allowed]]\nkind = "answers: *: answers"\nkey = "a"\nafter = "%s"\nreason = "a test"\n'
    for town, allowed in {"Kyoto": True, "Osaka": False}.items():
        (tmp_path / town).mkdir()
        assert compared(golden, tmp_path / town, records, after, capsys, allowed=rule % town)[0] == allowed


@pytest.mark.slow
def test_record_that_shows_little_is_refused(golden, records, tmp_path, capsys):
    poor = copy.deepcopy(records)
    for _, _, answer in poor["answers"]:
        answer["status"] = "failed"
    equal, printed = compared(golden, tmp_path, poor, {**poor, "methods": []}, capsys)
    assert not equal and "0 of 2 answers are answered" in printed and "methods has 0 records" in printed
    assert json.loads((tmp_path / "before" / "embedder.json").read_text())
