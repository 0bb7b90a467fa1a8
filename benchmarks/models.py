"""Measures the language model calls of the methods, and the time per question that kgqa itself takes.

    models.py noise       hit@1, calls, rounds, tokens of each tournament at p = .7, .8, .9
    models.py published   System 1 and 2 as published, `economy` and Think-on-Graph at p = .9, on CWQ
    models.py wall        wall time at 200 ms latency, compared with rounds x 200 ms plus the engine's time
    models.py cpu         kgqa's own CPU time per question, with recorded replies

The language model is an oracle that is right with probability p. For `wall` the oracle is an HTTP server in a separate
process. The graph is freebase_fast from the data folder.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from accuracy import chosen, loaded
from accuracy_sets import SETS
from common import machine, print_json, print_table
from oracle import running_oracle

from kgqa.evaluation.datasets.questions import ANSWERABLE, GoldQuestion
from kgqa.evaluation.runs.asking import ask_question
from kgqa.methods.ask import ask, open_resources
from kgqa.methods.resources import Resources
from kgqa.model import Question
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache

LATENCY = 0.2
WALL_LIMIT = 1.3
CPU_LIMIT = 0.050
TOURNAMENTS = ("chunked", "pairwise", "knockout", "pointwise")


def asked(
    graph: Path, questions: Sequence[GoldQuestion], p: float, settings: dict[str, Any], *, latency: float = 0.0
) -> dict[str, Any]:
    """Ask all questions with an oracle; return the oracle's report, with hit@1 over all questions."""
    with running_oracle(p, latency=latency) as oracle:
        given = {"llm.model": oracle.url, "budget.seconds": 3600.0} | settings
        with closing(open_resources(graph, settings=resolve(given))) as resources:
            for question in oracle.told(questions, resources):
                oracle.heard(ask_question(question, resources, topics="gold"))
        hits = [record.scores["hit@1"] for _, record in oracle.heard_of]
        return oracle.report() | {"hit@1": statistics.fmean(hits), "n": len(hits)}


def noise(graph: Path, questions: Sequence[GoldQuestion]) -> list[dict[str, Any]]:
    """Run System 2 with each tournament; unchanged System 2 uses `pairwise`."""
    lines = []
    for p in (0.7, 0.8, 0.9):
        for tournament in TOURNAMENTS:
            found = asked(graph, questions, p, {"ask.method": "top-2", "rank.tournament": tournament, "rank.pool": 30})
            lines.append({"p": p, "tournament": tournament, **_short(found)})
            print(lines[-1], file=sys.stderr)
    return lines


def published(graph: Path, questions: Sequence[GoldQuestion]) -> list[dict[str, Any]]:
    lines = []
    for method, preset in (
        ("top-1", "as-published"), ("top-1", "economy"), ("top-2", "as-published"), ("top-2", "economy"),
        ("tog", "as-published"),
    ):  # fmt: skip
        found = asked(graph, questions, 0.9, {"ask.method": method, "ask.preset": preset, "explore.depth": 3})
        lines.append({"method": method, "preset": preset, **_short(found)})
        print(lines[-1], file=sys.stderr)
    return lines


def _short(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in ("n", "hit@1", "calls", "most calls", "rounds", "tokens", "unparsed")}


@contextmanager
def timed_engine(resources: Resources) -> Iterator[list[float]]:
    """Yield a list that collects the seconds of each query to the store."""
    store = resources.graph.store
    spent: list[float] = []
    select = store.select

    def timed(*arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            return select(*arguments, **options)
        finally:
            spent.append(time.perf_counter() - started)

    store.select = timed  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        del store.select  # type: ignore[attr-defined]


def wall(graph: Path, questions: Sequence[GoldQuestion]) -> list[dict[str, Any]]:
    """Compare each question's wall time with the time of its language model calls and its SPARQL queries."""
    lines = []
    for method in ("top-1", "top-2"):
        ratios = []
        with running_oracle(0.9, latency=LATENCY) as oracle:
            given = {"llm.model": oracle.url, "ask.method": method, "llm.concurrency": 16}
            with (
                closing(open_resources(graph, settings=resolve(given))) as resources,
                timed_engine(resources) as engine,
            ):
                told = oracle.told(questions, resources)
                for question in told:
                    engine.clear()
                    record = ask_question(question, resources, topics="gold")
                    if rounds := record.answer["usage"]["rounds"]:
                        ratios.append(record.seconds / (WALL_LIMIT * rounds * LATENCY + sum(engine)))
        lines.append(
            {"method": method, "n": len(ratios), "p50 of limit": statistics.median(ratios), "worst": max(ratios)}
        )
    return lines


def cpu(graph: Path, questions: Sequence[GoldQuestion]) -> list[dict[str, Any]]:
    """Measure this process's CPU time per question with recorded replies; the engine runs in other processes."""
    lines = []
    for method in ("top-1", "top-2"):
        with TemporaryDirectory() as folder:
            given = {"ask.method": method, "llm.replay": str(Path(folder) / "replies.jsonl")}
            with running_oracle(0.9) as oracle:
                live = given | {"llm.model": oracle.url}
                with closing(open_resources(graph, settings=resolve(live))) as resources:
                    for question in oracle.told(questions, resources):
                        ask(Question(question.text), topics=question.topics, resources=resources)
                recorded = given | {"llm.model": oracle.url, "llm.replay_only": "on"}
                with closing(open_resources(graph, settings=resolve(recorded))) as resources:
                    cold = _cpu_each(questions, resources)
                    warm = _cpu_each(questions, resources)
        lines.append(
            {"method": method, "n": len(warm), "p50 ms": 1000 * statistics.median(warm),
             "p50 ms, first time": 1000 * statistics.median(cold), "limit ms": 1000 * CPU_LIMIT}
        )  # fmt: skip
    return lines


def _cpu_each(questions: Sequence[GoldQuestion], resources: Resources) -> list[float]:
    spent = []
    for question in questions:
        started = time.process_time()
        ask(Question(question.text), topics=question.topics, resources=resources)
        spent.append(time.process_time() - started)
    return spent


PARTS = {"noise": noise, "published": published, "wall": wall, "cpu": cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="questions [100]")
    parser.add_argument("--graph", type=Path, metavar="FOLDER", help="an existing graph folder of freebase_fast")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder for the graph [the user's cache]")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    which = SETS["freebase_fast"]
    graph = options.graph or loaded(which.kg_files(), options.work or Cache.default().folder / "benchmarks")
    dataset = "cwq" if options.part == "published" else ""
    file = which.question_file()
    every = chosen(file, {"support": list(ANSWERABLE), "half": "all", "limit": None if dataset else options.limit})
    questions = [q for q in every if dataset in q.dataset][: options.limit]
    lines = PARTS[options.part](graph, questions)
    if options.json:
        print_json({"machine": machine(), "lines": lines})
        return
    head = list(lines[0])
    print_table(head, [[f"{v:.3f}" if isinstance(v, float) else str(v) for v in line.values()] for line in lines])


if __name__ == "__main__":
    main()
