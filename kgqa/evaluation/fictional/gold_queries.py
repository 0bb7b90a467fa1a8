"""What gold queries say of a graph, and the questions that come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.errors import KgqaError, SchemaError
from kgqa.evaluation.datasets.questions import GoldQuestion
from kgqa.evaluation.fictional.facts import Progress
from kgqa.evaluation.metrics.keys import Key, literal_key, text_key
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.templates import render_term
from kgqa.model import Entity, Join, Value
from kgqa.training.gold_paths import gold_paths

SECONDS = 30.0
MOST_ANSWERS = 100_000


@dataclass(frozen=True)
class Asked:
    """A question with its gold query and what that query gives on the true graph. `problem` says why there is none."""

    question: GoldQuestion
    sparql: str = ""
    true: tuple[Value, ...] = ()
    problem: str = ""

    @property
    def shape(self) -> str:
        """`conjunction` where several topics have to meet, else `path`."""
        kind = self.question.kind.lower()
        several = len(self.question.topics) > 1 and kind not in ("composition", "path")
        return "conjunction" if kind.startswith("conj") or several else "path"


def asked_of(
    questions: Sequence[GoldQuestion], graph: KnowledgeGraph, progress: Progress = lambda *_: None
) -> list[Asked]:
    """Each question with its gold query, run on the true graph. Where a file gives gold paths instead, the query is
    made of them, by the graph's rule for walks.
    """
    names: dict[str, str] = {}
    for relation in graph.relations:
        names[relation.replace("#", "/").rsplit("/", 1)[-1]] = relation
    found: list[Asked] = []
    for question in questions:
        found.append(_asked(question, graph, names))
        progress("asking the true graph", len(found), len(questions))
    return found


def _asked(question: GoldQuestion, graph: KnowledgeGraph, names: dict[str, str]) -> Asked:
    problem = "no gold query"
    try:
        for sparql in _queries(question, graph, names):
            if true := run(sparql, graph):
                return Asked(question, sparql, true)
            problem = "no answer in the true graph"
    except KgqaError as error:
        problem = f"the gold query failed: {error}"
    return Asked(question, problem=problem)


def _queries(question: GoldQuestion, graph: KnowledgeGraph, names: dict[str, str]) -> tuple[str, ...]:
    """The gold queries of a question's readings; the first that has an answer stands for all."""
    if question.sparql:
        return question.sparql
    paths = gold_paths(question.row, graph.schema, by_local_name=names)
    if not paths:
        return ()
    main, *others = paths
    return (graph.answer_query(main, joins=[Join(len(main), path) for path in others]),)


def run(sparql: str, graph: KnowledgeGraph) -> tuple[Value, ...]:
    """The first column of what a query gives, in order.

    Raises:
        StoreError: it fails, or gives more than can be meant.
    """
    rows = graph.store.select(sparql, timeout=SECONDS, max_rows=MOST_ANSWERS)
    values = dict.fromkeys(row[0] for row in rows if row and row[0] is not None)
    return tuple(sorted(values, key=render_term))


def keys_of(values: Sequence[Value]) -> set[Key]:
    """Values as keys that can be compared."""
    return {("id", v.iri) if isinstance(v, Entity) else literal_key(v) for v in values}


def true_keys(asked: Asked, graph: KnowledgeGraph) -> set[Key]:
    """Everything that is true for a question: what its query gives, and what its file says."""
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
    """Which answers of a fictional question (its line) are called as a true one is: a model that remembers is right by
    that name, though it is another node.
    """
    known = [answer for readings in (question.answers, *question.parses) for answer in readings]
    names = [name for answer in known for name in (answer.name, *answer.aliases)]
    true = {text_key(name) for name in (*names, *map(_called, row["true_answers"])) if name.strip()}
    return [name for name in map(_called, row["answers"]) if name.strip() and text_key(name) in true]


def _called(answer: Mapping[str, str]) -> str:
    return answer.get("name") or answer.get("value") or ""


def fictional_row(asked: Asked, values: Sequence[Value], graph: KnowledgeGraph) -> dict[str, Any]:
    """A question of the rewired graph as a line of a question file; `true_answers` are those of the world."""
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
    # relations are what they were; what the true chains pass is not
    more = {"hops": question.hops, "level": question.level, "gold_path": row.get("gold_path")}
    return found | {name: value for name, value in more.items() if value}


def answer_objects(values: Sequence[Value], graph: KnowledgeGraph) -> list[dict[str, str]]:
    """Answers as question files have them."""
    found = []
    for named in graph.named(values):
        if isinstance(named.value, Entity):
            found.append({"id": named.id, "name": named.name})
        else:
            found.append({"value": named.value.value, "datatype": named.value.datatype})
    return found
