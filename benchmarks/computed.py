"""Asks 60 questions that need a computation, a comparison or an exclusion, and counts right, wrong and declined answers.

The questions are in computed_questions.jsonl, each with a gold query that is run on the same graph. Topics are found in
the text, and no language model is used. Half of the questions (`part` "kept") were set aside when thresholds were tuned.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click
from accuracy import loaded
from accuracy_sets import METAQA, SETS
from common import data_file, machine, print_json, print_table

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.ask import ask, open_resources
from kgqa.model import Answer, Literal, Value
from kgqa.storage.cache import Cache

QUESTIONS = Path(__file__).with_name("computed_questions.jsonl")
FILES = {
    "freebase_fast": SETS["freebase_fast"].kg,
    "wikidata": ("wikidata/kg.nt.gz", "wikidata/names.nt.gz"),
    "metaqa": METAQA,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """A question and what became of it: `right`, `wrong` or `declined`."""

    id: str
    graph: str
    part: str
    kind: str
    question: str
    outcome: str
    answer: str
    gold: str


def keys(values: Sequence[Value]) -> frozenset[object]:
    """Return values as they are compared: numbers rounded to 6 digits, entities by their IRI."""
    return frozenset(_key(value) for value in values)


def _key(value: Value) -> object:
    if not isinstance(value, Literal):
        return value
    try:
        return round(float(value.value), 6)
    except ValueError:
        return value.value


def outcome_of(question: dict[str, str], graph: KnowledgeGraph, found: Answer) -> Outcome:
    """Compare an answer with the result of the gold query; an empty answer is declined."""
    gold = graph.run_exported(_ask_on_own_line(question["sparql"]))
    right = keys([each.value for each in found.answers]) == keys(gold)
    outcome = "declined" if not found.answers else "right" if right else "wrong"
    names = ", ".join(each.name for each in graph.named(gold))
    shared = {name: question[name] for name in ("id", "graph", "part", "kind", "question")}
    return Outcome(**shared, outcome=outcome, answer=str(found)[:100], gold=names[:100])


def _ask_on_own_line(sparql: str) -> str:
    return sparql.replace(" ASK {", "\nASK\n{")


def outcomes(graphs: Sequence[str], parts: Sequence[str], work: Path) -> list[Outcome]:
    """Ask the questions of some graphs and parts."""
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    found = []
    for name in graphs:
        folder = None if name == "demo" else loaded([data_file(*file.split("/")) for file in FILES[name]], work)
        with closing(open_resources(folder)) as resources:
            chosen = [each for each in questions if each["graph"] == name and each["part"] in parts]
            found += [outcome_of(each, resources.graph, ask(each["question"], resources=resources)) for each in chosen]
    return found


@click.command(help=__doc__)
@click.option(
    "--graph", "graphs", multiple=True, type=click.Choice(["demo", *FILES]), help="a graph; repeat for several [all]"
)
@click.option(
    "--part", "parts", multiple=True, type=click.Choice(["tuning", "kept"]), help="a half of the questions [both]"
)
@click.option("--work", type=click.Path(path_type=Path), help="where graphs are loaded [the user's cache]")
@click.option("--verbose", is_flag=True, help="print each question that is not right")
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def main(graphs: tuple[str, ...], parts: tuple[str, ...], work: Path | None, verbose: bool, as_json: bool) -> None:
    found = outcomes(
        graphs or ("demo", *FILES), parts or ("tuning", "kept"), work or Cache.default().folder / "benchmarks"
    )
    lines = [
        _line(f"graph {name}", [e for e in found if e.graph == name]) for name in dict.fromkeys(e.graph for e in found)
    ]
    lines += [_line(name, [e for e in found if e.kind == name]) for name in dict.fromkeys(e.kind for e in found)]
    lines += [
        _line(f"part {name}", [e for e in found if e.part == name]) for name in dict.fromkeys(e.part for e in found)
    ]
    lines.append(_line("all", found))
    if as_json:
        print_json({"machine": machine(), "lines": lines})
        return
    print_table(["questions", "n", "right", "wrong", "declined"], lines)
    for each in found if verbose else ():
        if each.outcome != "right":
            click.echo(
                f"{each.outcome}\t{each.id}\t{each.question}\t{each.answer}\t(gold: {each.gold})", file=sys.stderr
            )


def _line(name: str, found: Sequence[Outcome]) -> list[str | int]:
    counts = Counter(each.outcome for each in found)
    return [name, len(found), counts["right"], counts["wrong"], counts["declined"]]


if __name__ == "__main__":
    main()
