"""A batch of questions to a slow language model: `kgqa eval run`, compared with a bare loop of the same calls.

    python benchmarks/text_batch.py --work /tmp/retrieval [--methods rag tog3 graphsearch] [--latency 1] [--check]

The questions are those of MuSiQue, repeated under new ids up to 200, over the corpus of `text_methods.py`. The language
model is a scripted agent in a process of its own, which takes `--latency` seconds for each call. The bare loop sends
the same prompts with the openai library, as many questions at a time, the prompts of one round together. Both are whole
processes, with their start and, for kgqa, the opening of the corpus and of the embedding model.

`--check` exits with 1 if the run has less than 80% of the throughput of the bare loop, or takes more than 20 ms of CPU
per call beyond that of the bare loop.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import machine, print_json, print_table
from text_agents import AGENTS
from text_sets import TextQuestion, musique_corpus, read_text_questions

from kgqa.methods.ask import ask, open_resources
from kgqa.settings.values import resolve
from kgqa.testing.agents.text_agents import TextAgent
from kgqa.testing.server import ScriptedServer

SHARE_LIMIT = 0.8
CPU_LIMIT = 0.020
KGQA = Path(sys.executable).with_name("kgqa")


class Memory:
    """Replies of an agent, each made once, so that the server's CPU time does not count."""

    def __init__(self, agent: TextAgent) -> None:
        self._agent = agent
        self._replies: dict[str, str] = {}

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        key = json.dumps(messages)
        if key not in self._replies:
            self._replies[key] = self._agent(messages)
        return self._replies[key]


def _serve(pipe: Any, agent: TextAgent) -> None:
    """Serve an agent; each number that arrives becomes the latency, until None arrives."""
    with ScriptedServer(Memory(agent)) as server:
        pipe.send(server.url)
        while (latency := pipe.recv()) is not None:
            server.latency = latency
            pipe.send(server.calls)


@contextmanager
def served(agent: TextAgent) -> Iterator[tuple[str, Any]]:
    """Serve an agent in a process of its own; yield its URL, and the pipe that sets the latency."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, agent), daemon=True)
    process.start()
    try:
        yield ours.recv(), ours
    finally:
        ours.send(None)
        process.join(10)


def record_calls(method: str, folder: Path, url: str, questions: Sequence[TextQuestion]) -> list[list[list[Any]]]:
    """Ask each question once; return the messages of its prompts, in the batches in which they are sent."""
    local = threading.local()
    settings = {"ask.method": method, "llm.model": f"{url}#m", "llm.concurrency": 32}
    with open_resources(folder, settings=resolve(settings)) as resources:
        assert resources.models is not None
        clients = {id(each): each for each in resources.models.by_stage.values()}
        for client in clients.values():
            complete = client.complete

            def noted(prompts: Sequence[Any], complete: Any = complete, **options: Any) -> Any:
                messages = [[{"role": m.role, "content": m.text} for m in prompt.messages] for prompt in prompts]
                local.batches.append(messages)
                return complete(prompts, **options)

            client.complete = noted  # type: ignore[method-assign]

        def batches(question: TextQuestion) -> list[list[Any]]:
            local.batches = []
            ask(question.text, resources=resources)
            return list(local.batches)

        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(batches, questions))


def bare_loop(url: str, file: Path, concurrency: int) -> None:
    """Send recorded prompts with the openai library: questions concurrently, the batches of each one in order."""
    from openai import OpenAI

    client = OpenAI(base_url=url, api_key="none", max_retries=0)

    def send(messages: Any) -> None:
        client.chat.completions.create(model="m", messages=messages, temperature=0.0)

    def question(batches: list[list[Any]]) -> None:
        for batch in batches:
            if len(batch) == 1:
                send(batch[0])
                continue
            threads = [threading.Thread(target=send, args=(messages,)) for messages in batch]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

    with ThreadPoolExecutor(concurrency) as pool:
        list(pool.map(question, json.loads(file.read_text())))


def timed(command: Sequence[str | Path]) -> tuple[float, float]:
    """Run a process; return its wall time and the CPU time of it and its children, in seconds."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([str(each) for each in command], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_batch(
    method: str, work: Path, *, count: int = 200, concurrency: int = 32, latency: float = 1.0
) -> dict[str, Any]:
    """Measure one method; return the figures, with times in seconds."""
    distinct = read_text_questions("musique")
    folder = musique_corpus(work)
    agent = AGENTS[method]({each.text: each.gold for each in distinct})
    with served(agent) as (url, pipe), tempfile.TemporaryDirectory() as temporary:
        calls = record_calls(method, folder, url, distinct)
        sent = [calls[number % len(calls)] for number in range(count)]
        rows = [{**_row(distinct[n % len(distinct)]), "id": f"q{n}"} for n in range(count)]
        dataset, recorded = Path(temporary, "questions.jsonl"), Path(temporary, "calls.json")
        dataset.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        recorded.write_text(json.dumps(sent))
        pipe.send(latency)
        before = pipe.recv()
        bare = [sys.executable, __file__, "--bare", url, recorded, "--concurrency", str(concurrency)]
        ours = [KGQA, "eval", "run", "--dataset", dataset, "--graph", folder, "--method", method, "-q"]
        ours += ["--llm", f"{url}#m", "--concurrency", str(concurrency), "--out", Path(temporary, "run")]
        ours += ["--set", f"llm.concurrency={2 * concurrency}"]
        first, run, second = timed(bare), timed(ours), timed(bare)
        pipe.send(0.0)
        number = sum(len(batch) for batches in sent for batch in batches)
        assert pipe.recv() - before == 3 * number, "the run sends other calls than the bare loop"
    wall, cpu = ((one + other) / 2 for one, other in zip(first, second))
    return {
        "questions": count,
        "calls": number / count,
        "bare s": wall,
        "ours s": run[0],
        "share": wall / run[0],
        "own CPU ms a call": 1000 * (run[1] - cpu) / number,
    }


def _row(question: TextQuestion) -> dict[str, Any]:
    return {"question": question.text, "answers": [{"name": answer} for answer in question.gold.answers]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder for the corpora; reused by later runs")
    parser.add_argument("--methods", nargs="+", default=list(AGENTS), choices=list(AGENTS))
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--latency", type=float, default=1.0, help="seconds per call [1]")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bare", nargs=2, metavar=("URL", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        bare_loop(options.bare[0], Path(options.bare[1]), options.concurrency)
        return
    if options.work is None:
        parser.error("--work is missing")
    results = {
        method: measure_batch(
            method, options.work, count=options.questions, concurrency=options.concurrency, latency=options.latency
        )
        for method in options.methods
    }
    if options.json:
        print_json({"machine": machine(), "latency": options.latency, "results": results})
    else:
        head = ["method", *next(iter(results.values()))]
        print_table(head, [[name, *map(float, row.values())] for name, row in results.items()])
    missed = [
        name
        for name, row in results.items()
        if row["share"] < SHARE_LIMIT or row["own CPU ms a call"] > 1000 * CPU_LIMIT
    ]
    if options.check and missed:
        sys.exit(f"Limits missed: {', '.join(missed)}")


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
