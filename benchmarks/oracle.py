"""Runs kgqa with an oracle (a simulated language model that makes errors) behind a server, and summarises the cost."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kgqa.evaluation.analysis.reach import Reach
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.runs.records import Record
from kgqa.methods.resources import Resources
from kgqa.testing.gold_table import gold_for
from kgqa.testing.model_oracle import ModelOracle
from kgqa.testing.server import ScriptedServer

KNOWN: dict[Hashable, Reach] = {}
"""Solutions of questions, shared by all runs on the same graph."""


@dataclass
class RunningOracle:
    """An oracle that is given the right paths before each question, and that collects the records."""

    oracle: ModelOracle
    server: ScriptedServer
    heard_of: list[tuple[bool, Record]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.server.url}#oracle"

    def told(self, questions: Iterable[GoldQuestion], resources: Resources) -> Iterator[GoldQuestion]:
        """Yield the questions; before each question, set its right paths in the oracle."""
        for question in questions:
            self.oracle.table = {question.text: gold_for(question, resources, known=KNOWN)}
            yield question

    def heard(self, record: Record) -> None:
        (gold,) = self.oracle.table.values()
        self.heard_of.append((bool(gold.solutions), record))

    def report(self) -> dict[str, Any]:
        """Return hit@1 on the questions that paths can express, and mean calls per question."""
        expressible = [record for can, record in self.heard_of if can]
        usages = [record.answer["usage"] for _, record in self.heard_of]
        count = len(usages) or 1
        return {
            "expressible": len(expressible),
            "hit@1 of expressible": sum(r.scores["hit@1"] for r in expressible) / (len(expressible) or 1),
            "calls": sum(u["calls"] for u in usages) / count,
            "most calls": max((u["calls"] for u in usages), default=0),
            "rounds": sum(u["rounds"] for u in usages) / count,
            "tokens": sum(u["prompt_tokens"] + u["completion_tokens"] for u in usages) / count,
            "unparsed": sum(stage["unparsed"] for u in usages for stage in u["stages"]),
            "lost": [r.id for r in expressible if r.scores["hit@1"] < 1],
            "not expressible": [record.id for can, record in self.heard_of if not can],
        }

    def text(self, verbose: bool) -> str:
        found = self.report()
        lines = [
            f"{found['expressible']} expressible, hit@1 of these {100 * found['hit@1 of expressible']:.1f}; a question: "
            f"{found['calls']:.1f} calls (at most {found['most calls']}), {found['rounds']:.1f} rounds, "
            f"{found['tokens']:.0f} tokens; {found['unparsed']} replies unparsed"
        ]
        if found["lost"]:
            lines.append("expressible, but not all right: " + " ".join(found["lost"]))
        if verbose:
            lines.append("not expressible: " + " ".join(found["not expressible"]))
        return "\n".join(lines)


@contextmanager
def running_oracle(p: float, *, latency: float = 0.0, seed: int = 0) -> Iterator[RunningOracle]:
    """Start an oracle that is right with probability `p`, behind a server that replies after `latency` seconds."""
    oracle = ModelOracle(p=p, seed=seed)
    with ScriptedServer(oracle) as server:
        server.latency = latency
        yield RunningOracle(oracle, server)
