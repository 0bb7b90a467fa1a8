"""Writes a small GRBench: a folder for each of five domains, with graph.json and questions.jsonl as published."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from kgqa.testing.grbench import academic, commerce, healthcare, legal, literature
from kgqa.testing.grbench.json_graph import JsonGraph
from kgqa.testing.grbench.templates import questions_of

DOMAINS: Mapping[str, ModuleType] = {
    "academic": academic,
    "commerce": commerce,
    "literature": literature,
    "healthcare": healthcare,
    "legal": legal,
}
"""The module of each domain, by the name of its folder."""
GRAPH, QUESTIONS = "graph.json", "questions.jsonl"
PER_TEMPLATE = 10
"""Questions of each template, as in GRBench, where the number of a question divided by ten gives its template."""


def write_mini_grbench(folder: Path, *, seed: int = 0, per_template: int = PER_TEMPLATE) -> list[Path]:
    """Write the graphs and their questions, and return the folders of the domains.

    A line of questions.jsonl has `qid`, `question`, `answer` (a list, or a number), `level`, and `program`: lines of
    calls whose last one is `Finish[...]`.

    Args:
        folder: created if needed.
        per_template: at most `PER_TEMPLATE` questions of each template.
    """
    return [_write_domain(folder / domain, domain, seed, per_template) for domain in DOMAINS]


def _write_domain(folder: Path, domain: str, seed: int, per_template: int) -> Path:
    module, rng = DOMAINS[domain], random.Random(f"{domain} {seed}")
    folder.mkdir(parents=True, exist_ok=True)
    data = module.make(rng)
    (folder / GRAPH).write_text(json.dumps(data, indent=4), encoding="utf-8")
    graph = JsonGraph(data, module.PAIRS)
    with open(folder / QUESTIONS, "w", encoding="utf-8") as file:
        for number, template in enumerate(module.TEMPLATES):
            for place, each in enumerate(questions_of(template, graph, rng, per_template)):
                answer = each.answers[0] if isinstance(each.answers[0], int) else list(each.answers)
                row = {
                    "qid": str(number * PER_TEMPLATE + place),
                    "question": each.text,
                    "answer": answer,
                    "level": each.level,
                    "program": each.program,
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return folder
