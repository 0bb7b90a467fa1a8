"""Compares the requests of kgqa's methods and of other programs, with the same server, questions and scripted model.

    peer.py --graph http://127.0.0.1:8890/sparql --graph-iri http://freebase.com --dataset questions.jsonl --limit 30
    peer.py ... --peer DIR --peer-command 'python main.py --questions {questions}' --peer-answers out.jsonl

All programs send their requests through the same counting proxy. The command of the other program runs in DIR. These
placeholders in it are replaced: {sparql}, {llm} (ends with /v1), {questions} (JSON lines), {questions_json} (a list
with `topic_entity`), {out} (an empty folder) and {mark}. Its environment contains the same addresses: SPARQL_ENDPOINT,
OPENAI_BASE_URL, OPENAI_API_BASE, PEER_QUESTION_URL. This project contains no code of other programs; peer_walker.py is
a substitute for tests.

The scripted model is an oracle that decides correctly with probability --p; the choice from a whole list is one
decision. It knows the gold paths of each question and recognises the prompts of kgqa, Think-on-Graph and Plan-on-Graph.
The output shows means per question, and the number of questions whose answer contains a gold answer. Seconds are
counted from the first request to the last reply.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from common import CHECKOUT, machine, print_json, print_table
from peer_answers import answer_text, holds_gold, read_answers, write_questions
from peer_gold import gold_along
from peer_oracle import PeerOracle
from peer_proxy import CountingProxy, Counts

from kgqa.evaluation.datasets.questions import GoldQuestion, spread
from kgqa.evaluation.datasets.registry import dataset_questions
from kgqa.methods.ask import open_resources
from kgqa.settings.values import resolve
from kgqa.testing.model_oracle import Gold
from kgqa.testing.server import ScriptedServer
from kgqa.training.gold_queries import gold_paths

METHODS = "tog,top-1,top-1:economy,top-2,top-2:economy,top,top:economy"
PEER_DEPTH = {"ask.method": "tog", "explore.depth": 3}
"""Settings with which gold paths are worded for other programs: unmodified relations and names, three hops."""


@dataclass
class Program:
    """A program to measure: its command and its file of answers ("": the last reply to each question is its answer)."""

    name: str
    command: list[str]
    folder: Path
    answers: str = ""
    settings: dict[str, Any] = field(default_factory=lambda: dict(PEER_DEPTH))


class Bench:
    """The server, oracle and proxy shared by all programs."""

    def __init__(self, options: argparse.Namespace, questions: Sequence[GoldQuestion], opened: ExitStack) -> None:
        self._options, self._questions = options, questions
        self._gold: dict[str, Gold] = {}
        self._oracle = PeerOracle(p=options.p, seed=options.seed, memory=options.memory)
        self._model = opened.enter_context(ScriptedServer(self._oracle))
        texts = {question.text.casefold(): question.id for question in questions}

        def question_of(prompt: str) -> str | None:
            found = [(prompt.casefold().rfind(text), ident) for text, ident in texts.items()]
            place, ident = max(found, default=(-1, ""))
            return ident if place >= 0 else None

        self.proxy = opened.enter_context(
            CountingProxy(
                options.graph, self._model.url, default_graph=options.graph_iri or "", round_trip=options.round_trip,
                latency=options.latency, question_of=question_of, on_question=self._begin,
            )
        )  # fmt: skip
        self._texts = {question.id: question.text for question in questions}

    def learn(self, settings: Mapping[str, Any]) -> None:
        """Give the oracle the right paths, worded as in the prompts under these settings."""
        iri = {"graph.iri": self._options.graph_iri} if self._options.graph_iri else {}
        given = {"llm.model": f"{self._model.url}#oracle", "rank.embeddings": "off", **settings, **iri}
        with open_resources(self._options.graph, settings=resolve(given)) as resources:
            schema = resources.graph.schema
            self._gold = {q.id: gold_along(q, resources, gold_paths(q.row, schema)) for q in self._questions}

    def _begin(self, ident: str) -> None:
        # A single entry matches every wording of the question, including masked ones.
        if ident in self._gold:
            self._oracle.table = {self._texts[ident]: self._gold[ident]}

    def run(self, program: Program, work: Path) -> dict[str, Any]:
        """Run a program on all questions; return its means and the figures of each question."""
        self.learn(program.settings)
        self._oracle.table = {self._texts[ident]: gold for ident, gold in self._gold.items()}
        self.proxy.reset()
        parts = [[question] for question in self._questions] if self._each(program) else [list(self._questions)]
        crashes = 0
        for part in parts:
            if len(parts) > 1:
                self.proxy.begin(part[0].id)
            crashes += self._start(program, part, work)
        said = {ident: answer_text(counts.last_reply) for ident, counts in self.proxy.counts.items()}
        if program.answers:
            file = program.folder / program.answers.replace("{out}", str(work))
            said = read_answers(file, self._questions) if file.is_file() else {}
        return self._summary(said, crashes)

    def _each(self, program: Program) -> bool:
        return self._options.each and program.folder == self._options.peer

    def _start(self, program: Program, questions: Sequence[GoldQuestion], work: Path) -> int:
        places = write_questions(questions, work) | {
            "sparql": self.proxy.sparql_url,
            "llm": self.proxy.model_url,
            "mark": self.proxy.question_url,
            "out": str(work),
        }
        command = [_filled(part, places) for part in program.command]
        environment = {
            **os.environ,
            "SPARQL_ENDPOINT": places["sparql"],
            "OPENAI_BASE_URL": places["llm"],
            "OPENAI_API_BASE": places["llm"],
            "OPENAI_API_KEY": "none",
            "PEER_QUESTION_URL": places["mark"],
            # A method must not use cached results from a different method.
            "KGQA_ENDPOINT_CACHE": "off",
        }
        try:
            done = subprocess.run(
                command, check=False, cwd=program.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, errors="replace", env=environment, timeout=self._options.seconds,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            print(f"{program.name} did not finish within {self._options.seconds:g} s (see --seconds)", file=sys.stderr)
            return 1
        if done.returncode:
            print(f"{program.name} exited with {done.returncode}:\n{done.stderr[-2000:]}", file=sys.stderr)
        return int(done.returncode != 0)

    def _summary(self, said: Mapping[str, str], crashes: int) -> dict[str, Any]:
        counts = self.proxy.counts
        each = [counts.get(question.id, Counts()) for question in self._questions]
        right = [holds_gold(said.get(question.id, ""), question) for question in self._questions]

        def mean(name: str) -> float:
            return sum(getattr(one, name) for one in each) / len(each)

        return {
            "SPARQL queries": mean("queries"),
            "kB": mean("bytes") / 1000,
            "SPARQL ms": mean("query_ms"),
            "calls": mean("calls"),
            "prompt tokens": mean("prompt_tokens"),
            "prompt characters": mean("prompt_chars"),
            "reply tokens": mean("reply_tokens"),
            "wall s": mean("seconds"),
            "right": sum(right),
            "failed requests": sum(one.failed for one in counts.values()),
            "crashes": crashes,
            "set-up queries": counts[""].queries if "" in counts else 0,
            "questions": [
                {"id": q.id, "right": good, "answer": said.get(q.id, ""), **asdict(one), "wall s": one.seconds}
                for q, good, one in zip(self._questions, right, each)
            ],
        }


def _filled(part: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        part = part.replace(f"{{{name}}}", value)
    return part


def own_program(method: str, options: argparse.Namespace) -> Program:
    """Return a method of kgqa, given as `METHOD` or `METHOD:PRESET`."""
    name, _, preset = method.partition(":")
    settings = {"ask.method": name, "rank.embeddings": options.embeddings} | ({"ask.preset": preset} if preset else {})
    command = [
        sys.executable, str(CHECKOUT / "benchmarks" / "peer_kgqa.py"), "--sparql", "{sparql}", "--llm", "{llm}",
        "--mark", "{mark}", "--questions", "{questions}", "--out", "{out}/answers.jsonl",
        "--settings", json.dumps(settings),
    ]  # fmt: skip
    if options.graph_iri:
        command += ["--graph-iri", options.graph_iri]
    return Program(f"kgqa {method}", command, CHECKOUT, "{out}/answers.jsonl", settings)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", required=True, metavar="URL", help="SPARQL endpoint")
    parser.add_argument(
        "--graph-iri", metavar="IRI", help="its named graph; the default graph for queries that name none"
    )
    parser.add_argument("--dataset", default="demo", help="questions, as for kgqa eval [demo]")
    parser.add_argument("--limit", type=int, default=30, metavar="N", help="questions [30]")
    parser.add_argument("--methods", default=METHODS, help=f"kgqa's, METHOD or METHOD:PRESET; '' for none [{METHODS}]")
    parser.add_argument("--embeddings", default="auto", choices=("auto", "off"), help="depth of kgqa's methods [auto]")
    parser.add_argument("--peer", type=Path, metavar="DIR", help="the folder of another program")
    parser.add_argument("--peer-command", metavar="COMMAND", help="its command, see above")
    parser.add_argument("--peer-answers", default="", metavar="FILE", help="its answers, in DIR [its last reply]")
    parser.add_argument("--peer-name", metavar="NAME", help="its name in the table [the folder's name]")
    parser.add_argument("--each", action="store_true", help="run it once per question, not once for all")
    parser.add_argument("--p", type=float, default=0.9, help="probability that a decision of the model is right [0.9]")
    parser.add_argument("--memory", type=float, default=0.0, help="probability that it knows an answer itself [0]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the model's errors [0]")
    parser.add_argument("--latency", type=float, default=0.2, metavar="S", help="seconds the model takes [0.2]")
    parser.add_argument("--round-trip", type=float, default=0.0, metavar="S", help="seconds added to each query [0]")
    parser.add_argument("--seconds", type=float, default=3600.0, metavar="S", help="maximum seconds per program [3600]")
    parser.add_argument("--json", action="store_true", help="print JSON, with every question")
    options = parser.parse_args()
    if bool(options.peer) != bool(options.peer_command):
        parser.error("--peer and --peer-command go together")
    if not options.peer and not options.methods:
        parser.error("nothing to measure: --methods or --peer")
    return options


def main() -> int:
    options = arguments()
    questions = spread([q for q in dataset_questions(options.dataset) if q.answerable()], options.limit)
    if not questions:
        sys.exit(f"{options.dataset} has no question with gold answers.")
    programs = [own_program(method, options) for method in options.methods.split(",") if method]
    if options.peer:
        name = options.peer_name or options.peer.resolve().name
        programs.append(Program(name, shlex.split(options.peer_command), options.peer, options.peer_answers))
    rows = {}
    with ExitStack() as opened:
        bench = Bench(options, questions, opened)
        for program in programs:
            work = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="kgqa-peer-")))
            rows[program.name] = bench.run(program, work)
    if options.json:
        print_json({"machine": machine(), "n": len(questions), "p": options.p, "programs": rows})
    else:
        latency = f"model at {1000 * options.latency:g} ms"
        print(f"{len(questions)} questions, p = {options.p:g}, {latency}; means of one question\n")
        names = [name for name in next(iter(rows.values())) if name != "questions"]
        print_table(("program", *names), [(name, *(row[each] for each in names)) for name, row in rows.items()])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
