"""The passages of data sets as documents of a corpus."""

from __future__ import annotations

import json

import pytest

from kgqa.evaluation.datasets.passages import passage_documents
from kgqa.evaluation.datasets.questions import QuestionFileError
from kgqa.evaluation.runs.plan import RunPlan, select_questions

TEXTS = ["Tollo rowed the ferry of Tollen.", "Tollen lies on Lake Orrin.", "The mill grinds rye."]


def texts_of(source: str, **options) -> list[str]:
    return sorted(each.text.splitlines()[-1] for each in passage_documents(source, **options))


def test_shared_corpus_of_all_questions(source):
    assert texts_of(source("hipporag")) == sorted(TEXTS)
    assert texts_of(source("hypergraphrag")) == sorted([*TEXTS, "Nobody asks about Brenn."])
    (tollo,) = [each for each in passage_documents(source("hipporag")) if each.title == "Tollo"]
    assert tollo.text == "Tollo\nTollo rowed the ferry of Tollen."


@pytest.mark.parametrize("name", ["hipporag", "hypergraphrag", "ultradomain", "musique", "hotpotqa"])
@pytest.mark.parametrize("size", [1, 2])
def test_sample_has_the_passages_of_the_questions_that_a_run_asks(source, name, size):
    asked = select_questions(RunPlan(source(name), sample=size, seed=3)).questions
    wanted = {text for question in asked for _, text in question.passages}
    assert set(texts_of(source(name), sample_size=size, seed=3)) == wanted


def test_sample_of_repeated_ids_is_that_of_a_run(tmp_path):
    rows = [{"id": "same", "question": "?", "row": 1, "passages": [{"title": "T", "text": f"t{n}"}]} for n in range(9)]
    file = tmp_path / "q.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    asked = select_questions(RunPlan(str(file), sample=4)).questions
    assert texts_of(str(file), sample_size=4) == sorted(text for question in asked for _, text in question.passages)


def test_each_text_is_one_document(source):
    documents = passage_documents(source("ultradomain"))
    assert sorted(each.title for each in documents) == ["Boats of Orrin", "The mill grinds rye."]


def test_contexts_beside_the_questions(source, tmp_path):
    (tmp_path / "boats.json").write_text(json.dumps([{"question": "?", "golden_answers": ["x"], "context": ["c"]}]))
    assert texts_of(f"hypergraphrag:{tmp_path / 'boats.json'}") == ["c"], "without a corpus: what the questions name"
    (tmp_path / "boats_contexts.json").write_text(json.dumps(["one", "two"]))
    assert texts_of(f"hypergraphrag:{tmp_path / 'boats.json'}") == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "corpus", "message"),
    [
        ("hipporag", [{"title": "T"}], "boats_corpus.json, record 1: .*text"),
        ("hipporag", ["text"], "record 1: a passage must be an object"),
        ("hypergraphrag", ["fine", {"text": "x"}], "record 2: a context must be a text"),
    ],
)
def test_damaged_corpus(tmp_path, name, corpus, message):
    (tmp_path / "boats.json").write_text(json.dumps([{"question": "?", "answer": "x", "golden_answers": ["x"]}]))
    ending = "corpus" if name == "hipporag" else "contexts"
    (tmp_path / f"boats_{ending}.json").write_text(json.dumps(corpus))
    with pytest.raises(QuestionFileError, match=message):
        passage_documents(f"{name}:{tmp_path / 'boats.json'}")
