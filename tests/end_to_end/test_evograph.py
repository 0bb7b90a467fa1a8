"""EvoGraph-R1 on the command line: a question with an image, and runs whose questions build on each other."""

from __future__ import annotations

import json
import shutil

import pytest

from kgqa.testing.agents.evograph_agent import EvographAgent
from kgqa.testing.server import ScriptedServer
from tests.cli_runner import run_cli
from tests.methods.evograph.conftest import call, final
from tests.methods.evograph.hyper_corpus import FALSE, MISSING, QUESTIONS, VAGUE, write_hyper_corpus, write_web

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evograph")
    return write_hyper_corpus(folder / "corpus"), write_web(folder / "web.jsonl")


def options(server, folder, *more):
    named = ["--graph", folder, "--method", "evograph", "--llm", f"{server.url}#m", "--embeddings", "off"]
    return [*named, "--set", "evograph.commit=off", *more]


def test_image_is_sent_and_what_it_shows_is_searched_first(written, tmp_path):
    image = tmp_path / "clock.png"
    image.write_bytes(PNG)
    replies = [
        json.dumps({"answers": ["tide clock"]}),
        call("graph_search", query="<img>"),
        call("graph_search", query="Mara Holt born"),
        final("Tarn Harbour [2]"),
    ]
    with ScriptedServer(replies) as server:
        question = "Where was the builder of this born?"
        found = run_cli("ask", question, "--image", image, "--trace", *options(server, written[0]))
        assert found.returncode == 0, found.err
        assert "Tarn Harbour" in found.out and "graph_search" in found.err and "Think." in found.err
        first, second = server.requests[0].messages[-1]["content"], server.requests[1].messages[-1]["content"]
        for content in (first, second):
            assert content[0]["image_url"]["url"].startswith("data:image/png;base64,")
        assert 'The image may show: ["tide clock"]' in second[-1]["text"]
        assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("data", "more", "said"),
    [
        (b"GIF but not", (), "cannot be sent to a model"),
        (None, (), "cannot be used"),
        (PNG, ("--method", "rag"), "does not look at images"),
    ],
)
def test_unusable_images_fail_with_a_reason(written, tmp_path, data, more, said):
    image = tmp_path / "x.png"
    if data is not None:
        image.write_bytes(data)
    with ScriptedServer([final("x")]) as server:
        found = run_cli("ask", "What is this?", "--image", image, *options(server, written[0], *more))
        assert found.returncode == 1 and said in found.out + found.err
        assert not server.requests


def test_a_run_sends_the_images_of_its_questions(written, tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "clock.png").write_bytes(PNG)
    rows = [
        {"id": name, "question": f"What is {name}?", "image": f"{name}.png"} for name in ("clock", "../clock", "gone")
    ]
    (tmp_path / "q.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with ScriptedServer(lambda messages: final("unknown")) as server:
        given = ("eval", "run", "--dataset", tmp_path / "q.jsonl", *options(server, written[0], "--concurrency", "1"))
        assert run_cli(*given, "--out", tmp_path / "without").returncode == 1
        assert not server.requests  # questions about images are not asked without them
        assert (
            run_cli(*given, "--out", tmp_path / "with", "--set", f"evograph.images={tmp_path}/images").returncode == 0
        )
        assert all(request.messages[-1]["content"][0]["type"] == "image_url" for request in server.requests)
    records = [json.loads(line) for line in (tmp_path / "with" / "predictions.jsonl").read_text().splitlines()]
    reasons = {each["id"]: each["answer"]["reason"] for each in records}
    assert "no answer" in reasons["clock"] and "not in the folder" in reasons["../clock"]
    assert "cannot be used" in reasons["gone"]


def test_questions_of_a_run_build_on_each_other_and_the_table_says_so(written, tmp_path):
    corpus = shutil.copytree(written[0], tmp_path / "corpus")
    file = tmp_path / "questions.jsonl"
    order = [MISSING, VAGUE, MISSING, FALSE]
    rows = [
        {"id": f"q{n}", "question": text, "answers": [{"name": QUESTIONS[text].answer}]} for n, text in enumerate(order)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with ScriptedServer(EvographAgent(QUESTIONS)) as server:
        more = ["--preset", "one-graph", "--set", "evograph.commit=auto"]
        more += ["--set", f"evograph.web=replay:{written[1]}", "--concurrency", "4"]
        out = tmp_path / "run"
        arguments = ["eval", "run", "--dataset", file, "--out", out]
        found = run_cli(*arguments, *options(server, corpus, *more))
        assert found.returncode == 0, found.err
    records = [json.loads(line) for line in (out / "predictions.jsonl").read_text().splitlines()]
    assert [each["id"] for each in records] == ["q0", "q1", "q2", "q3"]
    assert [each["usage"]["calls"] for each in (row["answer"] for row in records)] == [4, 4, 2, 4]
    assert "in order" in run_cli("report", "compare", out, out).out or "in order" in found.out
    # a run that has changed its own graph can be resumed
    predictions = out / "predictions.jsonl"
    predictions.write_text("".join(predictions.read_text().splitlines(keepends=True)[:3]))
    with ScriptedServer(EvographAgent(QUESTIONS)) as server:
        found = run_cli("eval", "resume", out, "--llm", f"{server.url}#m")
        assert found.returncode == 0, found.err
    assert len(predictions.read_text().splitlines()) == 4


def test_edits_that_are_not_committed_cannot_persist(written):
    with ScriptedServer([final("x")]) as server:
        found = run_cli("ask", MISSING, *options(server, written[0], "--preset", "one-graph"))
        assert found.returncode == 1 and "evograph.commit=auto" in found.out + found.err
