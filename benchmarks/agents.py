"""Measures the methods that act in turns: rightness, calls, queries and CPU, and the conversion of GRBench.

    python benchmarks/agents.py [--work build/retrieval] [--only counselor evograph conversion] [--check] [--json]

The agents are scripted (`kgqa.testing`), and served by a process of their own.

- `counselor`: the questions of the generated small GRBench, five domains, over HTTP by the real method on the embedded
  store. The agent plays the gold programs. Figures: the share of right answers, of exact queries, and of questions that
  take the calls of the formula (three per step, one verdict); the queries per turn, divided by those of the same calls
  without a method; and the CPU of this process per turn. The store and the agent run in other processes.
- `evograph`: MuSiQue's questions over the corpus of `retrieval.py` (needs --work). The agent searches the gold
  sub-questions, inserts what a result states, and answers. Figures: calls; the CPU of a search beside that of the
  retrievers that it asks; and the CPU per turn, without and with the embedding of queries.
- `conversion`: `kgqa graph convert grbench` on a generated graph and one four times as large: triples per second of CPU,
  and by how much the peak memory grows. It grows until the first million edges of each side are kept in files.

`--check` exits with 1 if a figure misses its limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import machine, print_json, print_table
from text_batch import KGQA, served
from text_sets import TextQuestion, musique_corpus, read_text_questions

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.retrieve.fused import DEPTH
from kgqa.evaluation.datasets.grbench.conversion import convert
from kgqa.graph.embedded.loading import load_graph
from kgqa.llm.replies.action_lines import read_action_line
from kgqa.methods.ask import ask, open_resources
from kgqa.methods.counselor.finishing import grounded_answer
from kgqa.methods.counselor.functions import GraphFunctions
from kgqa.methods.evograph.declarations import EvographSettings
from kgqa.methods.evograph.tools import EvographTools
from kgqa.methods.resources import Resources
from kgqa.model import Answer, PieceKind, Question
from kgqa.settings.values import resolve
from kgqa.testing.agents.counselor_agent import CounselorAgent, GoldProgram
from kgqa.testing.agents.evograph_agent import shown_results
from kgqa.testing.grbench import academic
from kgqa.testing.grbench.mini import write_mini_grbench
from kgqa.text.quotes import find_name
from kgqa.trace import ActionRead, Called
from kgqa.trace.trace import Trace

PARTS = ("counselor", "evograph", "conversion")
LIMITS: Mapping[str, tuple[float, float]] = {
    "right %": (100.0, 100.0),
    "exact %": (100.0, 100.0),
    "calls %": (100.0, 100.0),
    "queries": (0.0, 1.2),
    "search ms": (0.0, 5.0),
    "CPU ms": (0.0, 20.0),
    "ktriples/s": (100.0, float("inf")),
    "growth MiB": (0.0, 64.0),
}
"""The least and the greatest value of each figure."""
COPIES = 150
"""How often the generated graph is repeated for the conversion; the large one has four times as many."""


# --- counselor


def counselor(work: Path | None) -> dict[str, dict[str, float]]:
    """Play the gold programs of the small GRBench with the method, and without it."""
    del work
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for place in write_mini_grbench(Path(name) / "json"):
            nt, folder = Path(name) / f"{place.name}.nt", Path(name) / place.name
            convert(place, nt)
            load_graph(folder, [nt], schema="grbench")
            rows = [json.loads(line) for line in (place / "questions.jsonl").read_text().splitlines()]
            found[f"counselor {place.name}"] = _counselor_figures(folder, rows)
    return found


def _counselor_figures(folder: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    programs = {row["question"]: GoldProgram(tuple(row["program"]), tuple(_gold(row))) for row in rows}
    with served(CounselorAgent(programs)) as (url, _):
        settings = {"ask.method": "counselor", "rank.embeddings": "off", "llm.model": f"{url}#m"}
        with open_resources(folder, settings=resolve(settings)) as resources:
            bare = [_bare_queries(row, resources) for row in rows]
            cpu = time.process_time()
            answers = [ask(row["question"], resources=resources) for row in rows]
            cpu = time.process_time() - cpu
    turns = sum(isinstance(event, ActionRead) for answer in answers for event in answer.trace)
    right = [[each.name for each in answer.answers] == _gold(row) for answer, row in zip(answers, rows)]
    formula = [answer.usage.calls == 3 * len(row["program"]) + 1 for answer, row in zip(answers, rows)]
    return {
        "questions": len(rows),
        "right %": 100 * statistics.fmean(right),
        "exact %": 100 * statistics.fmean(answer.query_class == "exact" for answer in answers),
        "calls %": 100 * statistics.fmean(formula),
        "queries": sum(answer.usage.queries for answer in answers) / sum(bare),
        "CPU ms": 1000 * cpu / turns,
    }


def _gold(row: Mapping[str, Any]) -> list[str]:
    answer = row["answer"]
    return [str(each) for each in (answer if isinstance(answer, list) else [answer])]


def _bare_queries(row: Mapping[str, Any], resources: Resources) -> int:
    """Play a program without a method; return how many queries it takes."""
    trace = Trace()
    functions = GraphFunctions(resources.graph.for_question(trace), encoder=resources.encoder)
    for call in (call for line in row["program"] for call in read_action_line(line).value or ()):
        if call.name != "Finish":
            functions.run(call)
            continue
        text = str(call.arguments[0]) if call.arguments else ""
        grounded_answer(text, functions, Answer(Question(row["question"]), "no_answer"), trace)
    return trace.usage().queries


# --- evograph


@dataclass(frozen=True)
class SearchingAgent:
    """Searches the gold sub-questions, inserts the sentence that contains the answer, and answers.

    `table`: for each question, its sub-questions and its answer.
    """

    table: Mapping[str, tuple[Sequence[str], str]]

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        lines = str(messages[1]["content"]).splitlines()
        question = next(line.removeprefix("Question: ") for line in lines if line.startswith("Question: "))
        steps, answer = self.table[question]
        made = sum(message["role"] == "assistant" for message in messages)
        if made < len(steps):
            return _call("graph_search", query=steps[made])
        right = [each for each in shown_results(messages) if find_name(each["text"], answer)]
        numbers = [each["number"] for each in right]
        if made == len(steps) and right:
            sentences = right[0]["text"].split(". ")
            sentence = next((each for each in sentences if find_name(each, answer)), sentences[0])
            return _call("insert", content=f"{sentence[:400].rstrip('.')}.", sources=numbers[:1])
        return f"<think>It is known.</think><answer>{answer} {numbers[:1]}</answer>"


def _call(name: str, **arguments: Any) -> str:
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<think>The next step.</think><tool_call>{body}</tool_call>"


def evograph(work: Path | None) -> dict[str, dict[str, float]]:
    """Ask MuSiQue's questions over the corpus of their passages, with and without an embedding model."""
    assert work is not None
    questions, folder = read_text_questions("musique"), musique_corpus(work)
    table = {each.text: (each.grounded, each.gold.answers[0]) for each in questions}
    with served(SearchingAgent(table)) as (url, _):
        return {
            f"evograph, embeddings {each}": _evograph_figures(folder, url, questions, each) for each in ("off", "auto")
        }


def _evograph_figures(folder: Path, url: str, questions: Sequence[TextQuestion], embeddings: str) -> dict[str, float]:
    settings = {"ask.method": "evograph", "rank.embeddings": embeddings, "llm.model": f"{url}#m"}
    settings |= {"evograph.commit": "off"}
    with open_resources(folder, settings=resolve(settings)) as resources:
        ask(questions[0].text, resources=resources)  # reads the indexes
        cpu = time.process_time()
        answers = [ask(each.text, resources=resources) for each in questions]
        cpu = time.process_time() - cpu
        cost = _search_cost(resources, [text for each in questions for text in each.grounded])
    turns = [sum(isinstance(event, ActionRead) for event in answer.trace) for answer in answers]
    calls = [sum(isinstance(event, Called) for event in answer.trace) for answer in answers]
    return {
        "questions": len(questions),
        "calls %": 100 * statistics.fmean(a.usage.calls == t == c + 1 for a, t, c in zip(answers, turns, calls)),
        "search ms": cost,
        f"CPU {'with model ' if embeddings == 'auto' else ''}ms": 1000 * cpu / sum(turns),
    }


def _search_cost(resources: Resources, queries: Sequence[str]) -> float:
    """Return the median CPU of a search by the tool beside that of the retrievers that it asks, in ms."""
    corpus = resources.corpus
    assert isinstance(corpus, Corpus)
    channels = ("bm25", "dense") if corpus.index.vectors is not None else ("bm25",)
    kinds: tuple[PieceKind, ...] = ("hyperedge", "chunk")
    extra = []
    for query in queries:
        tools = EvographTools(
            Overlay(corpus, question=query, agent="benchmark"), resources.settings.of(EvographSettings), Trace()
        )
        corpus.retriever("chunk", channels).search([query], DEPTH)  # the embedding is remembered
        start = time.process_time()
        tools.call("graph_search", {"query": query})
        middle = time.process_time()
        for kind in kinds:
            for channel in channels:
                corpus.retriever(kind, (channel,)).search([query], DEPTH)
        extra.append(1000 * (middle - start - (time.process_time() - middle)))
    return statistics.median(extra)


# --- conversion


def conversion(work: Path | None) -> dict[str, dict[str, float]]:
    """Convert a graph and one that is four times as large, each in a process of its own."""
    del work
    with tempfile.TemporaryDirectory() as name:
        small, large = (_converted(Path(name), copies) for copies in (COPIES, 4 * COPIES))
    return {
        "conversion": {
            "ktriples/s": large["triples"] / large["cpu"] / 1000,
            "growth MiB": large["peak"] - small["peak"],
            "peak MiB": large["peak"],
            "triples": large["triples"],
        }
    }


MEASURED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
"""Runs a command from a small process: the peak memory of a child is at least that of its parent."""


def _converted(folder: Path, copies: int) -> dict[str, float]:
    place = folder / f"g{copies}"
    place.mkdir()
    with open(place / "graph.json", "w", encoding="utf-8") as file:
        file.writelines(_repeated(copies))
    out = folder / f"{copies}.nt"
    command = [sys.executable, "-c", MEASURED, KGQA, "graph", "convert", "grbench", place, "--out", out, "-q"]
    done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
    cpu, peak = map(float, done.stdout.split())
    with open(out, "rb") as file_:
        triples = sum(1 for _ in file_)
    return {"triples": triples, "cpu": cpu, "peak": peak / 1024}


def _repeated(copies: int) -> Iterator[str]:
    """Yield the JSON of the academic graph, repeated under new ids."""
    import random

    data = academic.make(random.Random(0))
    sections = {section: json.dumps(nodes) for section, nodes in data.items()}
    ids = {ident for nodes in data.values() for ident in nodes}
    for place, (section, text) in enumerate(sections.items()):
        yield f"{',' if place else '{'} {json.dumps(section)}: {{"
        nodes = json.loads(text)
        for copy in range(copies):
            for at, (ident, node) in enumerate(nodes.items()):
                links = {
                    link: [f"{each}-{copy}" if each in ids else each for each in listed]
                    for link, listed in node["neighbors"].items()
                }
                comma = "," if copy or at else ""
                body = json.dumps({"features": node["features"], "neighbors": links}, indent=4)
                yield f"{comma}{json.dumps(f'{ident}-{copy}')}: {body}\n"
        yield "}"
    yield "}"


def missed(results: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return which figures miss their limits."""
    return [
        f"{name}: {key} {row[key]:.2f}, not {least:g} to {most:g}"
        for name, row in results.items()
        for key, (least, most) in LIMITS.items()
        if key in row and not least <= row[key] <= most
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="folder for the corpora; reused by later runs")
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if "evograph" in options.only and options.work is None:
        parser.error("evograph needs --work")
    measures = {"counselor": counselor, "evograph": evograph, "conversion": conversion}
    results: dict[str, dict[str, float]] = {}
    for part in options.only:
        results |= measures[part](options.work)
    wrong = missed(results)
    if options.json:
        print_json({"machine": machine(), "results": results, "missed": wrong})
    else:
        head = list(dict.fromkeys(key for row in results.values() for key in row))
        rows = [[name, *(float(row.get(key, "nan")) for key in head)] for name, row in results.items()]
        print_table(["", *head], rows)
        for each in wrong:
            print(f"missed: {each}")
    if options.check and wrong:
        sys.exit(1)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
