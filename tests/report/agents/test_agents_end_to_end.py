"""Questions that were answered in turns, from the method to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kgqa import ask, open_resources
from kgqa.evaluation.runs.records import Record
from kgqa.model import Answer
from kgqa.report.answer import answer_text
from kgqa.report.site.writing import write_site
from kgqa.report.text.explanation import explanation
from kgqa.settings.values import resolve
from kgqa.storage.answer_json import answer_object
from kgqa.testing.agents.counselor_agent import CounselorAgent
from kgqa.testing.server import ScriptedServer
from tests.methods.counselor.asking import COUNT, FILMS, PROGRAMS, run
from tests.methods.evograph.conftest import call, final
from tests.report.test_comparison import FakeRun
from tests.report.test_pages import ParsedPage
from tests.small_corpus import SINGLE, write_corpus

NEW = "The first tide clock stands in the museum of Oster Quay."
REPLIES = [
    call("graph_search", thought="The graph comes first.", query="first tide clock museum"),
    call("insert", content=NEW, sources=[1]),
    call("insert", content="Visit www.example.org for tide clocks.", sources=[1]),
    call("delete", target=1, reason="It is a passage."),
    final("Museum of Oster Quay [1]"),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def answered(corpus) -> Answer:
    """A question with a search, an edit that waits for review, one that a gate rejects, and an impossible one."""
    with ScriptedServer(list(REPLIES)) as server:
        given = {"ask.method": "evograph", "rank.embeddings": "off", "llm.model": f"{server.url}#m"}
        with open_resources(corpus, settings=resolve(given)) as resources:
            return ask(SINGLE, resources=resources)


def test_page(answered, corpus, tmp_path):
    record = Record("q", "corpus", SINGLE, json.loads(json.dumps(answer_object(answered, trace=True))), ())
    run = FakeRun("tools", [record], corpus, {"settings": {"graph.path": str(corpus)}})
    index = write_site([run], tmp_path)
    text = ParsedPage(next(tmp_path.glob("run-1/*.html")).read_text()).text
    assert "5 turns" in text and "2 edits proposed: 1 accepted, 1 rejected" in text
    assert "The graph comes first." in text and "waits for review" in text
    assert "Rejected by the gate “address”" in text and "only hyperedges can be changed" in text
    assert "✓ verified" in text and "Where does the first tide clock stand?" in text
    assert "edits accepted" in ParsedPage(index.read_text()).text


def test_text_and_explanation(answered):
    steps = "\n".join(line.strip() for line in answer_text(answered).splitlines())
    explained = explanation(answer_object(answered, trace=True))
    for text in (steps, explained):
        assert f"edit 1, step 2: insert “{NEW}” (source 1)" in text and "edit 1: accepted, waits for review" in text
        assert "edit 2, step 3: insert “Visit www.example.org for tide clocks.” (source 1)" in text
        assert "edit 2: rejected by the gate" in text
        assert "step 5: answer museum of Oster Quay (follows from what was found)" in text
    assert "waits for review" in answered._repr_html_()


def test_page_of_a_walk(tmp_path):
    """Of two questions, the first trial of one fails; the walks of both lead to their answers."""
    records = []
    for question, noise in ((FILMS, 0.5), (COUNT, 0.0)):
        answer = run(question, agent=CounselorAgent(PROGRAMS, noise=noise, seed=5)).answer
        assert answer.query_class == "exact"
        records.append(
            Record(question, "demo", question, json.loads(json.dumps(answer_object(answer, trace=True))), ())
        )
    write_site([FakeRun("walk", records)], tmp_path)
    first, second = (page.read_text() for page in sorted(tmp_path.glob("run-1/*.html")))
    text = ParsedPage(first).text
    assert "Trial 2" in text and "Reflection, read by the next trial" in text and "Answer accepted." in text
    assert 'class="link chosen"' in first and 'class="node answer"' in first
    assert "Count" in ParsedPage(second).text and 'class="link chosen"' in second
    assert "Follows from what was found." in text and "Other events" in text
