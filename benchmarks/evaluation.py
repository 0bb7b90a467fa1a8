"""Measures the overhead of `kgqa eval`: questions per second of its runner, compared with a bare loop.

The bare loop only sends the same prompts and SPARQL queries from as many threads. The language model is a scripted
server in a separate process; it takes 50 ms per reply. The questions are the 1,574 CWQ questions of the data folder,
repeated under new ids, with gold topics. They are asked on the slice with 1.32 M triples.

Bounds: at least 60% of the throughput of the bare loop; at most 15 ms more CPU time per question; constant memory
(resident memory after 500 questions and at the end). Requests are recorded in a first pass over the distinct questions,
without a result cache, so that the caches are equally warm for both.

"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import resource
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from common import data_file, machine, print_json, print_table
from freebase_slice import ready_graph

from kgqa.evaluation.datasets.questions import GoldQuestion, read_questions
from kgqa.evaluation.runs.manifest import new_manifest
from kgqa.evaluation.runs.plan import RunPlan, Selection
from kgqa.evaluation.runs.progress import RunProgress
from kgqa.evaluation.runs.run_folder import create_run
from kgqa.evaluation.runs.runner import run_questions
from kgqa.methods.ask import ask, open_resources
from kgqa.methods.resources import Resources
from kgqa.model import Question
from kgqa.settings.values import resolve
from kgqa.storage.answer_json import answer_object

LATENCY = 0.05
SHARE_LIMIT = 0.6
CPU_LIMIT = 0.015
GROWTH_LIMIT = 1.1


def serve(pipe: Any) -> None:
    """Serve a scripted language model that replies B to every prompt after 50 ms."""
    from kgqa.testing.server import ScriptedServer

    with ScriptedServer(lambda messages: "B", constrains="structured_outputs", latency=LATENCY) as server:
        pipe.send(server.url)
        pipe.recv()


@contextmanager
def model():
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        ours.send("end")
        process.join(10)


class Recorder:
    """Records the requests of a thread, in order: ("query", text) or ("calls", prompts)."""

    def __init__(self, resources: Resources) -> None:
        self._local = threading.local()
        self.store, self.llm = resources.graph.store, next(iter(resources.models.by_stage.values()))
        self._select, self._ask, self._complete = self.store.select, self.store.ask, self.llm.complete

    def __enter__(self) -> Recorder:
        self.store.select = lambda text, **o: (self._note("select", text), self._select(text, **o))[1]
        self.store.ask = lambda text, **o: (self._note("ask", text), self._ask(text, **o))[1]
        self.llm.complete = lambda prompts, **o: (self._note("calls", list(prompts)), self._complete(prompts, **o))[1]
        return self

    def __exit__(self, *_: object) -> None:
        for place, name in ((self.store, "select"), (self.store, "ask"), (self.llm, "complete")):
            del place.__dict__[name]

    def _note(self, kind: str, what: Any) -> None:
        self._local.__dict__.setdefault("noted", []).append((kind, what))

    def of(self, question: GoldQuestion, resources: Resources) -> list[tuple[str, Any]]:
        self._local.noted = []
        ask(Question(question.text), topics=question.topics, resources=resources)
        return list(self._local.noted)


def bare_loop(calls: Sequence[list[tuple[str, Any]]], url: str, store: Any, concurrency: int) -> tuple[float, float]:
    """Send all recorded requests with the openai library and the store; return wall and CPU seconds."""
    from openai import OpenAI

    client = OpenAI(base_url=url, api_key="none", max_retries=0)
    todo: queue.SimpleQueue = queue.SimpleQueue()
    for each in calls:
        todo.put(each)

    def send(prompt: Any) -> None:
        messages = [{"role": m.role, "content": m.content} for m in prompt.messages]
        client.chat.completions.create(model="m", messages=messages, temperature=0.0)

    def work() -> None:
        while True:
            try:
                noted = todo.get_nowait()
            except queue.Empty:
                return
            for kind, what in noted:
                if kind == "select":
                    store.select(what)
                elif kind == "ask":
                    store.ask(what)
                elif len(what) == 1:
                    send(what[0])
                else:
                    threads = [threading.Thread(target=send, args=(prompt,)) for prompt in what]
                    for thread in threads:
                        thread.start()
                    for thread in threads:
                        thread.join()

    begun_at, cpu = time.perf_counter(), time.process_time()
    threads = [threading.Thread(target=work) for _ in range(concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun_at, time.process_time() - cpu


def resident() -> float:
    """Return the resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def cwq_questions(count: int) -> list[GoldQuestion]:
    """Return `count` CWQ questions of the data folder; questions that repeat get new ids."""
    some = read_questions(data_file("freebase", "questions_cwq_test.dev.jsonl.gz"))
    return [replace(some[n % len(some)], id=f"{some[n % len(some)].id}-{n}", number=n) for n in range(count)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--graph", type=Path, default=Path("/tmp/kgqa-benchmark-freebase"), help="folder for the slice")
    parser.add_argument("--questions", type=int, default=3531)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--method", default="top")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work, model() as url:
        graph = ready_graph(options.graph, timeout=60.0)
        given = {
            "ask.method": options.method, "llm.model": f"{url}#m", "rank.embeddings": "off",
            "llm.concurrency": options.concurrency, "llm.mask": "none",
        }  # fmt: skip
        with open_resources(graph, settings=resolve(given, environment={})) as resources:
            questions = cwq_questions(options.questions)
            distinct = {q.text: q for q in questions}
            with ThreadPoolExecutor(options.concurrency) as pool:
                list(pool.map(lambda q: ask(Question(q.text), topics=q.topics, resources=resources), distinct.values()))
                with Recorder(resources) as recorder:
                    noted = pool.map(lambda q: recorder.of(q, resources), distinct.values())
                    calls = dict(zip(distinct, noted, strict=True))
            sent = [calls[question.text] for question in questions]
            seen: dict[int, float] = {}

            def on_progress(progress: RunProgress) -> None:
                for mark in (500, options.questions):
                    if progress.done >= mark and mark not in seen:
                        seen[mark] = resident()

            plan = RunPlan("cwq", concurrency=options.concurrency)
            times = {}
            for way in ("bare", "ours", "bare again"):
                if way != "ours":
                    times[way] = bare_loop(sent, url, resources.graph.store, options.concurrency)
                    continue
                with create_run(
                    Path(work) / "run", new_manifest(plan, Selection(questions, questions), resources)
                ) as folder:
                    at, cpu = time.perf_counter(), time.process_time()
                    run_questions(
                        questions, resources, folder, progress=RunProgress(len(questions)),
                        concurrency=options.concurrency, on_progress=on_progress,
                    )  # fmt: skip
                    times[way] = time.perf_counter() - at, time.process_time() - cpu
            one = next(iter(questions))
            sample = ask(Question(one.text), topics=one.topics, resources=resources)
            line_bytes = len(json.dumps(answer_object(sample, trace=True)))
    n = len(questions)
    bare = [sum(times[way][part] for way in ("bare", "bare again")) / 2 for part in (0, 1)]
    found = {
        "questions": n,
        "model calls a question": sum(len(what) for each in sent for kind, what in each if kind == "calls") / n,
        "queries a question": sum(kind != "calls" for each in sent for kind, _ in each) / n,
        "bare, questions a second": n / bare[0],
        "ours, questions a second": n / times["ours"][0],
        "bytes of an answer with its trace": line_bytes,
        "RSS in MB after 500": seen.get(500, float("nan")),
        "RSS in MB at the end": seen.get(options.questions, float("nan")),
    }
    share = bare[0] / times["ours"][0]
    own = (times["ours"][1] - bare[1]) / n
    growth = found["RSS in MB at the end"] / found["RSS in MB after 500"]
    rows = [
        ("share of the bare throughput", share, f"at least {SHARE_LIMIT}", share >= SHARE_LIMIT),
        ("own CPU a question, ms", 1000 * own, f"at most {1000 * CPU_LIMIT:.0f}", own <= CPU_LIMIT),
        ("RSS at the end / after 500", growth, f"at most {GROWTH_LIMIT}", growth <= GROWTH_LIMIT),
    ]
    if options.json:
        print_json({"machine": machine(), **found, "limits": {name: value for name, value, _, _ in rows}})
    else:
        print_table(("what", "measured"), [(name, float(value)) for name, value in found.items()])
        print()
        print_table(("what", "measured", "limit", ""), [(*row[:3], "within" if row[3] else "OVER") for row in rows])
    return 0 if all(row[3] for row in rows) else 1


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    raise SystemExit(main())
