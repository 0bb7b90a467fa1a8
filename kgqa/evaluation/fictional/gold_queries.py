"""Runs gold queries on the true and on the fictional graph, and builds fictional questions from the results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.errors import KgqaError, SchemaError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.fictional.facts import StageProgress
from kgqa.evaluation.metrics.keys import Key, literal_key, text_key
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.text import render_term
from kgqa.model import Entity, Join, Value
from kgqa.training.gold_queries import gold_paths

SECONDS = 30.0
MAX_ANSWERS = 100_000


@dataclass(frozen=True)
class GoldQuery:
    """A question with its gold query and its answers on the true graph (`true`).

    `problem`: why there are no answers; empty if there are answers.
    """

    question: GoldQuestion
    sparql: str = ""
    true: tuple[Value, ...] = ()
    problem: str = ""

    @property
    def shape(self) -> str:
        """`conjunction` if the question has several topic entities, else `path`."""
        kind = self.question.kind.lower()
        several = len(self.question.topics) > 1 and kind not in ("composition", "path")
        return "conjunction" if kind.startswith("conj") or several else "path"


def gold_queries_of(
    questions: Sequence[GoldQuestion], graph: KnowledgeGraph, progress: StageProgress = lambda *_: None
) -> list[GoldQuery]:
    """Run the gold query of each question on the true graph.

    If a question has gold paths but no gold query, the query is built from these paths with the graph's rule for walks.
    """
    names: dict[str, str] = {}
    for relation in graph.tables.relations:
        names[relation.replace("#", "/").rsplit("/", 1)[-1]] = relation
    found: list[GoldQuery] = []
    for question in questions:
        found.append(_asked(question, graph, names))
        progress("asking the true graph", len(found), len(questions))
    return found


def _asked(question: GoldQuestion, graph: KnowledgeGraph, names: dict[str, str]) -> GoldQuery:
    problem = "no gold query"
    try:
        for sparql in _queries(question, graph, names):
            if true := run_query(sparql, graph):
                return GoldQuery(question, sparql, true)
            problem = "no answer in the true graph"
    except KgqaError as error:
        problem = f"the gold query failed: {error}"
    return GoldQuery(question, problem=problem)


def _queries(question: GoldQuestion, graph: KnowledgeGraph, names: dict[str, str]) -> tuple[str, ...]:
    """Return the gold queries of a question, one for each interpretation in the data set."""
    if question.sparql:
        return question.sparql
    paths = gold_paths(question.row, graph.schema, by_local_name=names)
    if not paths:
        return ()
    main, *others = paths
    return (graph.answer_query(main, joins=[Join(len(main), path) for path in others]),)


def run_query(sparql: str, graph: KnowledgeGraph) -> tuple[Value, ...]:
    """Return the distinct values in the first column of a query's result, sorted.

    Raises:
        StoreError: the query fails, or its result has more than `MAX_ANSWERS` rows.
    """
    rows = graph.store.select(sparql, timeout=SECONDS, max_rows=MAX_ANSWERS)
    values = dict.fromkeys(row[0] for row in rows if row and row[0] is not None)
    return tuple(sorted(values, key=render_term))


def keys_of(values: Sequence[Value]) -> set[Key]:
    """Convert values to comparison keys."""
    return {("id", v.iri) if isinstance(v, Entity) else literal_key(v) for v in values}


def true_keys(asked: GoldQuery, graph: KnowledgeGraph) -> set[Key]:
    """Collect the keys of all true answers: the results on the true graph and the answers in the question file."""
    found = keys_of(asked.true)
    for readings in (asked.question.answers, *asked.question.parses):
        for answer in readings:
            if answer.id:
                try:
                    found.add(("id", graph.schema.iri(answer.id)))
                except SchemaError:
                    found.add(("id", answer.id))
            elif answer.name:
                found.add(text_key(answer.name))
    return found


def true_names_among(row: Mapping[str, Any], question: GoldQuestion) -> list[str]:
    """List the answers of a fictional question that have the name of a true answer.

    If such a name were kept, a language model that answers from memory could be counted as right.

    Args:
        row: the fictional question, from `fictional_row`.
        question: the original question.
    """
    known = [answer for readings in (question.answers, *question.parses) for answer in readings]
    names = [name for answer in known for name in (answer.name, *answer.aliases)]
    true = {text_key(name) for name in (*names, *map(_name_of, row["true_answers"])) if name.strip()}
    return [name for name in map(_name_of, row["answers"]) if name.strip() and text_key(name) in true]


def _name_of(answer: Mapping[str, str]) -> str:
    return answer.get("name") or answer.get("value") or ""


def fictional_row(asked: GoldQuery, values: Sequence[Value], graph: KnowledgeGraph) -> dict[str, Any]:
    """Build the line of a fictional question for the question file.

    The line has the new answers as `answers` and the answers of the true graph as `true_answers`.
    """
    row, question = asked.question.row, asked.question
    topics = row.get("topic_entities") or [{"id": topic} for topic in question.topics]
    found: dict[str, Any] = {
        "id": question.id,
        "dataset": f"{question.dataset}_fictional",
        "question": question.text,
        "topic_entities": topics,
        "answers": answer_objects(values, graph),
        "true_answers": answer_objects(asked.true, graph),
        "sparql": asked.sparql,
        "kind": question.kind or asked.shape,
    }
    # gold chains are left out, because rewiring changes their nodes; gold paths have only relations
    more = {"hops": question.hops, "level": question.level, "gold_path": row.get("gold_path")}
    return found | {name: value for name, value in more.items() if value}


def answer_objects(values: Sequence[Value], graph: KnowledgeGraph) -> list[dict[str, str]]:
    """Convert values to the form of answers in a question file."""
    found = []
    for named in graph.named(values):
        if isinstance(named.value, Entity):
            found.append({"id": named.id, "name": named.name})
        else:
            found.append({"value": named.value.value, "datatype": named.value.datatype})
    return found
