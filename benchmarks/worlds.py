"""Asks the questions of five small graphs of unfamiliar domains, and counts what became of them.

    worlds.py [--world NAME ...] [--setting KEY=VALUE ...] [--limit N] [--verbose] [--json]

Topics are found in the text, and no language model is used unless a setting names one (`--setting llm.model=...`). An
answer is right if it has exactly the values of the gold answer; a question without an answer in the graph is right if
it is declined. Otherwise an answer is weak, if kgqa says so, or wrong. `failed` counts errors of kgqa.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
from accuracy import loaded, settings_of
from common import data_file, machine, print_json, print_table
from computed import keys

from kgqa.evaluation.datasets.questions import spread
from kgqa.methods.ask import ask, open_resources
from kgqa.model import Answer, Entity, Literal
from kgqa.settings.values import Settings
from kgqa.storage.cache import Cache

WORLDS = ("brewery", "festivals", "league", "railway", "registry")
TYPE = re.compile(r"\?x (?:a|wdt:P1) \w+:(\w+)")
"""The pattern of a gold query that says the class of the answer; the league's wdt:P1 is `instance of`."""
OUTCOMES = ("right", "right but weak", "wrong", "weak", "declined", "failed")


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question of a world and what became of it, with its CPU time in milliseconds."""

    id: str
    world: str
    kind: str
    start: str
    question: str
    outcome: str
    answer: str
    path: str
    gold: str
    cpu: float
    queries: int


def outcome(answer: Answer, gold: Sequence[str]) -> str:
    """Say which of `OUTCOMES` an answer is; without gold answers, a declined question is right."""
    if answer.status == "failed":
        return "failed"
    if not answer.answers:
        return "declined" if gold else "right"
    entities = {item.value.iri for item in answer.answers if isinstance(item.value, Entity)}
    expected = keys([Entity(value) if value in entities else Literal(value) for value in gold])
    if keys([item.value for item in answer.answers]) == expected:
        return "right but weak" if answer.weak else "right"
    return "weak" if answer.weak else "wrong"


def start_of(question: dict[str, Any]) -> str:
    """Say whether the gold query of a question starts from a class alone, a class with an entity, or an entity."""
    classed = TYPE.search(question["sparql"])
    if not classed:
        return "entity"
    words = {topic.rpartition("/")[2].rpartition("#")[2] for topic in question["topics"]}
    return "class" if words <= {classed[1]} else "class and entity"


def asked(world: str, settings: Settings, limit: int | None, work: Path) -> Iterator[Outcome]:
    """Ask the questions of one world."""
    lines = data_file("worlds", f"{world}.jsonl").read_text(encoding="utf-8").splitlines()
    with closing(open_resources(loaded([data_file("worlds", f"{world}.ttl")], work), settings=settings)) as resources:
        for question in spread([json.loads(line) for line in lines], limit):
            started = time.process_time()
            answer = ask(question["question"], resources=resources)
            yield Outcome(
                question["id"],
                world,
                question["kind"],
                start_of(question),
                question["question"],
                outcome(answer, question["answers"]),
                str(answer)[:100],
                str(answer.paths[0].words if answer.paths else answer.reason),
                ", ".join(question["answer_labels"])[:100],
                1000 * (time.process_time() - started),
                answer.usage.queries,
            )


@click.command(help=__doc__)
@click.option("--world", "worlds", multiple=True, type=click.Choice(WORLDS), help="a world; repeat for several [all]")
@click.option("--setting", "given", multiple=True, metavar="KEY=VALUE", help="a setting of kgqa; repeat for several")
@click.option("--limit", type=int, help="ask at most so many questions of each world [all]")
@click.option("--work", type=click.Path(path_type=Path), help="where graphs are loaded [the user's cache]")
@click.option("--verbose", is_flag=True, help="print a line for each question to stderr")
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def main(
    worlds: Sequence[str], given: Sequence[str], limit: int | None, work: Path | None, verbose: bool, as_json: bool
) -> None:
    settings = settings_of({"settings": given})
    found = []
    for world in worlds or WORLDS:
        for item in asked(world, settings, limit, work or Cache.default().folder / "benchmarks"):
            found.append(item)
            if verbose:
                line = (item.id, item.outcome, item.question, item.answer, item.path, f"gold: {item.gold}")
                click.echo("\t".join(line), file=sys.stderr)
    lines = [
        _line(f"{part} {name}", [item for item in found if getattr(item, part) == name])
        for part in ("world", "kind", "start")
        for name in dict.fromkeys(getattr(item, part) for item in found)
    ]
    lines.append(_line("all", found))
    if as_json:
        print_json({"machine": machine(), "lines": lines})
    else:
        print_table(["questions", "n", *OUTCOMES, "cpu ms", "queries"], lines)


def _line(name: str, found: Sequence[Outcome]) -> list[Any]:
    counts = Counter(item.outcome for item in found)
    middle = (median(item.cpu for item in found), median(item.queries for item in found))
    return [name, len(found), *(counts[outcome] for outcome in OUTCOMES), *middle]


if __name__ == "__main__":
    main()
