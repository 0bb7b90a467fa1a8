"""Counts the questions whose gold query, translated into one candidate, returns the gold answers; lists the others.

Nothing is searched: the gold query is read, written again as a path with joins, conditions and an operation, and run
on the graph. Each graph is loaded once. The line `computed` of a set is about the gold queries that count, compare,
add up or order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import click
from accuracy import loaded
from accuracy_sets import FREEBASE, SETS, QuestionSet
from common import machine, print_json, print_table

from kgqa.errors import KgqaError
from kgqa.evaluation.datasets.questions import ANSWERABLE, GoldQuestion, read_questions
from kgqa.evaluation.metrics.keys import Key, answer_keys, gold_keys
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.graph.query.text import render_term
from kgqa.model import Entity, Literal
from kgqa.model.conditions import NUMBER_TEXT
from kgqa.storage.cache import Cache
from kgqa.testing.gold_candidates import gold_candidate
from kgqa.training.gold_queries import Untranslatable

WIKIDATA = ("wikidata/kg.nt.gz", "wikidata/names.nt.gz")
EXPRESSIBLE = {
    **{name: SETS[name] for name in ("freebase_fast", "webqsp", "cwq")},
    "grailqa": QuestionSet((*FREEBASE, "freebase/kg_gold_dev.nt.gz"), "freebase/questions_grailqa_1000.dev.jsonl.gz"),
    **{
        name: QuestionSet(WIKIDATA, f"wikidata/questions_{name}.dev.jsonl.gz")
        for name in ("qald10_test", "wwq_test", "wwq_val")
    },
}
COMPUTED = re.compile(r"(?i)\b(count|sum|avg|max|min|ask|limit|if)\b")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a question: `reason` is empty if the candidate returns exactly the gold answers."""

    set: str
    id: str
    question: str
    computed: bool
    simple: bool
    reason: str
    sparql: str = ""


def date_relations(graph: KnowledgeGraph) -> Callable[[str], bool]:
    """Return a function that looks up whether the values of a relation are dates."""

    @cache
    def is_date(relation: str) -> bool:
        rows = graph.queries.rows(f"SELECT ?value WHERE {{ ?node {render_term(Entity(relation))} ?value }} LIMIT 50")
        texts = [row[0].value for row in rows if isinstance(row[0], Literal)]
        return any(not re.fullmatch(NUMBER_TEXT, text) for text in texts)

    return is_date


def outcome_of(name: str, question: GoldQuestion, graph: KnowledgeGraph, is_date: Callable[[str], bool]) -> Outcome:
    """Translate the gold query of a question and compare the result with the gold answers."""
    sparql = question.sparql[0]
    candidate, reason, written = None, "", ""
    try:
        candidate = gold_candidate(sparql, [graph.schema.iri(topic) for topic in question.topics], is_date=is_date)
    except Untranslatable as error:
        reason = str(error)
    if candidate is not None:
        options = {"joins": candidate.joins, "conditions": candidate.conditions, "operation": candidate.operation}
        try:
            written = graph.answer_query(candidate.path, **options)
            gold, keys = gold_keys(question.answers), keys_of(question, graph, written)
            more, fewer = keys - gold, gold - keys
            if fewer and not more and fewer <= {("id", topic) for topic in question.topics}:
                reason = "a topic is an answer"  # the walk rule of the graph excludes it
            elif keys != gold:
                reason = f"returns {'other' if more and fewer else 'more' if more else 'fewer'} answers"
        except KgqaError as error:
            reason = f"query fails: {type(error).__name__}"
    simple = candidate is not None and not candidate.conditions and candidate.operation is None
    return Outcome(name, question.id, question.text, bool(COMPUTED.search(sparql)), simple, reason, written)


def keys_of(question: GoldQuestion, graph: KnowledgeGraph, sparql: str) -> frozenset[Key]:
    """Return the keys of the results of a query, for comparison with the gold answers of a question."""
    return answer_keys(graph.named(graph.run_exported(sparql)), gold_keys(question.answers))


def is_in(graph: KnowledgeGraph, question: GoldQuestion) -> bool:
    """Return whether the gold query returns the gold answers in this graph."""
    return keys_of(question, graph, question.sparql[0]) == gold_keys(question.answers)


def outcomes(name: str, work: Path) -> list[Outcome]:
    """Return the outcome of each question of a set whose gold query returns the gold answers in the graph."""
    chosen: QuestionSet = EXPRESSIBLE[name]
    support = (*ANSWERABLE, "gold_built") if name == "grailqa" else ANSWERABLE
    questions = [each for each in read_questions(chosen.question_file()) if each.answerable(support) and each.sparql]
    with open_graph(loaded(chosen.kg_files(), work)) as graph:
        is_date = date_relations(graph)
        return [outcome_of(name, each, graph, is_date) for each in questions if is_in(graph, each)]


def line(name: str, found: Sequence[Outcome]) -> list[str | int | float | None]:
    right = [each for each in found if not each.reason]
    simple = sum(each.simple for each in right)
    return [name, len(found), simple, len(right), 100 * len(right) / len(found) if found else None]


@click.command(help=__doc__)
@click.option("--set", "sets", multiple=True, type=click.Choice([*EXPRESSIBLE]), help="a set; repeat for several [all]")
@click.option("--work", type=click.Path(path_type=Path), help="where graphs are loaded [the user's cache]")
@click.option("--verbose", is_flag=True, help="print each question without a right translation, with its query")
@click.option("--json", "as_json", is_flag=True, help="print JSON")
def main(sets: tuple[str, ...], work: Path | None, verbose: bool, as_json: bool) -> None:
    names = sets or tuple(EXPRESSIBLE)
    found = {name: outcomes(name, work or Cache.default().folder / "benchmarks") for name in names}
    failed = [each for every in found.values() for each in every if each.reason]
    if as_json:
        lines = {name: line(name, each)[1:] for name, each in found.items()}
        print_json({"machine": machine(), "sets": lines, "failed": [asdict(each) for each in failed]})
        return
    rows = [line(name, each) for name, each in found.items()]
    rows += [line(f"{name}, computed", [one for one in each if one.computed]) for name, each in found.items()]
    print_table(["set", "questions", "by paths and joins alone", "expressible", "%"], rows)
    reasons = Counter((each.reason, each.set) for each in failed)
    click.echo()
    lines = [[reason, *(reasons[reason, name] for name in names)] for reason in _by_number(failed)]
    print_table(["not expressible", *names], lines)
    for each in failed if verbose else ():
        click.echo(f"\n{each.set} {each.id}: {each.question} -- {each.reason}\n{each.sparql}")


def _by_number(failed: Sequence[Outcome]) -> list[str]:
    return [reason for reason, _ in Counter(each.reason for each in failed).most_common()]


if __name__ == "__main__":
    main()
