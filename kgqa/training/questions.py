"""Questions for training a ranker: their gold paths, and the exclusion of questions of the evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity, RelationPath
from kgqa.schema import Schema
from kgqa.search.masking import drop_mentions
from kgqa.text.words import local_name, normalise
from kgqa.training.gold_queries import gold_paths

_WEB_QUESTIONS = re.compile(r"WebQ(?:Trn|Test)-\d+")

Row = Mapping[str, Any]
"""A line of a question file."""
PathsOf = Callable[[Row], list[RelationPath]]


def gold_path_reader(schemas: Iterable[Schema], graphs: Sequence[KnowledgeGraph] = ()) -> PathsOf:
    """Return a function that reads a question's gold paths with the first schema that gives any; see `gold_paths`.

    Args:
        schemas: The schemas.
        graphs: Graphs whose relations may be named by the last part of their IRI, if no other relation has that part.
    """
    named: dict[str, set[str]] = {}
    for relation in (relation for graph in graphs for relation in graph.tables.relations):
        named.setdefault(local_name(relation), set()).add(relation)
    by_local_name = {name: relations.pop() for name, relations in named.items() if len(relations) == 1}
    distinct = {schema.name: schema for schema in schemas}.values()

    def paths_of(row: Row) -> list[RelationPath]:
        found = (gold_paths(row, schema, by_local_name=by_local_name) for schema in distinct)
        return next((paths for paths in found if paths), [])

    return paths_of


@dataclass(frozen=True, slots=True)
class TrainingQuestion:
    """A question and one of its gold paths.

    Attributes:
        asked: The question without the mentions of its topics.
        path: The gold path.
    """

    asked: str
    path: RelationPath


def training_questions(
    rows: Iterable[Row],
    paths_of: PathsOf,
    labels: Iterable[Callable[[Sequence[Entity]], Mapping[Entity, str]]] = (),
) -> list[TrainingQuestion]:
    """Return one training question for each gold path of each question.

    Args:
        rows: Lines of question files.
        paths_of: Reads the gold paths of a line.
        labels: Functions that map topics to their names, such as `graph.labels`; these names are removed from the
            questions.
    """
    found = [(row, paths_of(row)) for row in rows]
    topics = list(dict.fromkeys(path.topic for _, paths in found for path in paths))
    known = [named(topics) for named in labels]
    result = []
    for row, paths in found:
        mentions = [item.get("name") or "" for item in row.get("topic_entities") or ()]
        mentions += [names[path.topic] for path in paths for names in known if path.topic in names]
        asked = drop_mentions(row["question"], mentions)
        result += [TrainingQuestion(asked, path) for path in dict.fromkeys(paths)]
    return result


def without_evaluated(
    rows: Iterable[Row], evaluated: Iterable[Row], paths_of: PathsOf, inverses: Mapping[str, str]
) -> list[Row]:
    """Return the questions that are not in an evaluation.

    Two questions count as the same if they agree in one of these: the normalised text; a topic and the relations of its
    gold path, whatever their direction; the WebQuestions number in the id.
    """

    def keys(row: Row) -> set[Any]:
        number = _WEB_QUESTIONS.match(str(row.get("id", "")))
        found: set[Any] = {normalise(row["question"]), ("id", number.group()) if number else None} - {None}
        for path in paths_of(row):
            # a relation and its inverse count as the same
            relations = (min(step.relation, inverses.get(step.relation, step.relation)) for step in path.steps)
            found.add((path.topic, tuple(relations)))
        return found

    known = {key for row in evaluated for key in keys(row)}
    return [row for row in rows if known.isdisjoint(keys(row))]
