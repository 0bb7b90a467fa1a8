"""Measures how kgqa answers questions that the graph cannot answer: without an answer, with a weak match, or wrongly.

off_topic.jsonl contains 60 questions of our own about three graphs: another subject altogether, a relation that the graph
or the topic does not have, and nonsense. Topics are found in the text. No language model is used. An answer that is
not called a weak match looks right and is wrong. Exits with 1 if fewer than --least questions are declined or weak.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

from accuracy import loaded
from accuracy_sets import SETS
from common import CHECKOUT, print_json, print_table

from kgqa.methods.ask import ask, open_resources
from kgqa.model import Answer
from kgqa.storage.cache import Cache

QUESTIONS = Path(__file__).with_name("off_topic.jsonl")
GRAPHS = {
    "demo": lambda: [Path(str(files("kgqa.demo") / "graph.nt"))],
    "freebase_fast": SETS["freebase_fast"].kg_files,
    "company": lambda: [CHECKOUT / "tests" / "company" / "graph.ttl"],
}
"""The files of each graph."""


def outcome(answer: Answer) -> str:
    """Return `declined`, `weak` or `looks right`."""
    if not answer.answers:
        return "declined"
    return "weak" if answer.weak else "looks right"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", action="append", choices=GRAPHS, help="repeat for several [all]")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where graphs are loaded [the user's cache]")
    parser.add_argument("--least", type=int, default=50, metavar="N", help="bound for all 60 questions [50]")
    parser.add_argument("--verbose", action="store_true", help="print a line per question to stderr")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    work = options.work or Cache.default().folder / "benchmarks"
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    counts: dict[str, Counter[str]] = {}
    for graph in options.graph or GRAPHS:
        counts[graph] = Counter()
        with closing(open_resources(loaded(GRAPHS[graph](), work))) as resources:
            for each in questions:
                if each["graph"] == graph:
                    answer = ask(each["question"], resources=resources)
                    counts[graph][outcome(answer)] += 1
                    if options.verbose:
                        shown = answer.paths[0].words if answer.paths else answer.reason
                        line = [each["id"], outcome(answer), str(answer.confidence), each["question"], shown]
                        print("\t".join(line), file=sys.stderr)
    every = sum(counts.values(), Counter())
    honest = every["declined"] + every["weak"]
    if options.json:
        print_json({"graphs": counts, "declined or weak": honest, "questions": every.total()})
    else:
        rows: list[list[Any]] = [
            [name, *(str(found[each]) for each in ("declined", "weak", "looks right"))]
            for name, found in {**counts, "all": every}.items()
        ]
        print_table(["graph", "declined", "weak", "looks right"], rows)
    sys.exit(not options.graph and honest < options.least)


if __name__ == "__main__":
    main()
