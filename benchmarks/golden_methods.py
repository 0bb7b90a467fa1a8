"""What `golden.py` records of the methods: the prompts that a scripted model gets, text for text, and the answers."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from common import data_file
from golden_adapter import (
    Oracle,
    ScriptedServer,
    TextQuestion,
    counselor_agent,
    read_text_questions,
    text_agent,
    write_mini_grbench,
)
from golden_records import FREEBASE, KGQA, Record, file, kgqa, loaded, read_rows, spread, stable, stdin_lines

COUNT = 20
"""Questions of each method and preset."""
GRAPH_METHODS = {
    "top": ("ours", "economy"),
    "top-1": ("ours", "as-published"),
    "top-2": ("ours", "as-published"),
    "tog": ("ours", "as-published"),
    "io": ("ours",),
    "cot": ("ours",),
}
TEXT_METHODS = ("rag", "tog3", "graphsearch", "evograph")
PRESETS = ("ours", "as-published")
OTHER_PASSAGES = 10
"""One of so many passages that support no question is in the corpus."""


def prompted(
    rows: Sequence[dict[str, Any]], reply: Callable[..., str], *options: str, linked: bool = True
) -> Iterator[tuple[str, Any]]:
    """Ask questions one after another in one process; yield the id, and the prompts and the answer, of each."""
    with ScriptedServer(reply) as server:
        command = [KGQA, "ask", "--json", "-q", "--llm", f"{server.url}#m", "--concurrency", "1", *options]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin and process.stdout
            for row, line in zip(rows, stdin_lines(rows, linked).splitlines()):
                if isinstance(reply, Oracle):
                    reply.tell(row["id"])
                first = len(server.requests)
                print(line, file=process.stdin, flush=True)
                answer = json.loads(process.stdout.readline())
                prompts = [
                    {key: value for key, value in request.body.items() if key != "model"}
                    for request in server.requests[first:]
                ]
                yield row["id"], {**stable(answer), "prompts": prompts}
        if server.errors:
            raise server.errors[0]


def methods(work: Path) -> Iterator[Record]:
    yield from _on_graphs(work)
    yield from _over_text(work)
    yield from _counselor(work)


def _on_graphs(work: Path) -> Iterator[Record]:
    graph = loaded(FREEBASE[0], work)
    questions = file(FREEBASE[1])
    rows = spread(read_rows(questions), COUNT)
    for method, presets in GRAPH_METHODS.items():
        for preset in presets:
            oracle = Oracle(Path(graph[1]), questions, method=method, preset=preset)
            options = (*graph, "--method", method, "--preset", preset)
            for key, answer in prompted(rows, oracle, *options, linked=False):
                yield f"{method} {preset}", key, answer


def text_corpus(folder: Path, questions: Sequence[TextQuestion]) -> Path:
    """Build a corpus of the passages that support the questions, and some others, with the triples of GPT-3.5."""
    if not folder.exists():
        needed = {text for each in questions for text in each.passages}
        docs = read_rows(data_file("musique", "openie_gpt35.json.gz"))[0]["docs"]
        docs = [each for n, each in enumerate(docs) if each["passage"] in needed or n % OTHER_PASSAGES == 0]
        triples = folder.with_suffix(".json")
        triples.write_text(json.dumps({"docs": docs}))
        kgqa("corpus", "build", "--triples", triples, "--into", folder, "-q")
    return folder


def evograph_options(corpus: Path, web: Path) -> tuple[str, ...]:
    """Return the options with which evograph searches another corpus in place of the web."""
    return ("--graph", str(corpus), "--method", "evograph", "--set", f"evograph.web=corpus:{web}")


def _over_text(work: Path) -> Iterator[Record]:
    questions = read_text_questions("musique")[:COUNT]
    corpus, poor = text_corpus(work / "text", questions), text_corpus(work / "poor", ())
    rows = [{"id": each.id, "question": each.text} for each in questions]
    for method in TEXT_METHODS:
        for preset in PRESETS:
            options: tuple[str, ...] = ("--graph", str(corpus), "--method", method)
            if method == "evograph":
                options = evograph_options(shutil.copytree(poor, work / f"poor {preset}"), corpus)
            for key, answer in prompted(rows, text_agent(method, questions), *options, "--preset", preset):
                yield f"{method} {preset}", key, answer


def _counselor(work: Path) -> Iterator[Record]:
    for place in write_mini_grbench(work / "grbench"):
        triples, folder = work / f"{place.name}.nt", work / "graphs" / place.name
        kgqa("graph", "convert", "grbench", place, "--out", triples, "-q")
        kgqa("graph", "load", triples, "--into", folder, "--schema", "grbench", "-q")
        rows = [{**row, "id": row["qid"]} for row in spread(read_rows(place / "questions.jsonl"), COUNT // 5)]
        for preset in PRESETS:
            options = ("--graph", str(folder), "--method", "counselor", "--preset", preset)
            for key, answer in prompted(rows, counselor_agent(rows), *options):
                yield f"counselor {preset}", f"{place.name} {key}", answer
