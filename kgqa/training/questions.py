"""Questions for training a ranker: their gold paths, and the exclusion of questions of the evaluation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Entity, RelationPath
from kgqa.schema import Schema
from kgqa.search.masking import drop_mentions
from kgqa.text.words import local_name, normalise
from kgqa.training.gold_queries import gold_paths

_WEB_QUESTIONS = re.compile(r"WebQ(?:Trn|Test)-\d+")


PathsOf = Callable[[Mapping[str, Any]], list[RelationPath]]
NamesOf = Callable[[Sequence[Entity]], Mapping[Entity, Sequence[str]]]


def gold_path_reader(schemas: Sequence[Schema], by_local_name: Mapping[str, str] | None = None) -> PathsOf:
    """Return a function that reads a question's gold paths with the first schema that gives any; see `gold_paths`."""

    def paths_of(row: Mapping[str, Any]) -> list[RelationPath]:
        found = (gold_paths(row, schema, by_local_name=by_local_name) for schema in schemas)
        return next((paths for paths in found if paths), [])

    return paths_of


@dataclass(frozen=True, slots=True)
class TrainingQuestion:
    """A question and one of its gold paths.

    Attributes:
        text: The question.
        asked: The question without the mentions of its topics.
        path: The gold path.
    """

    text: str
    asked: str
    path: RelationPath


def training_questions(
    rows: Iterable[Mapping[str, Any]], paths_of: PathsOf, *, names: NamesOf = lambda entities: {}
) -> list[TrainingQuestion]:
    """Return one training question for each gold path of each question.

    Args:
        rows: Lines of question files.
        paths_of: Reads the gold paths of a line.
        names: Maps topics to their names; these names are removed from the questions.
    """
    found = [(row, paths) for row in rows if (paths := paths_of(row))]
    known = names(list(dict.fromkeys(path.topic for _, paths in found for path in paths)))
    result = []
    for row, paths in found:
        mentions = [str(item.get("name") or "") for item in row.get("topic_entities") or () if isinstance(item, dict)]
        mentions += [name for path in paths for name in known.get(path.topic, ())]
        asked = drop_mentions(row["question"], mentions)
        result += [TrainingQuestion(row["question"], asked, path) for path in dict.fromkeys(paths)]
    return result


class LeakGuard:
    """Excludes the questions of an evaluation from training.

    Two questions count as the same if they agree in one of these: the normalised text; a topic and the relations of its
    gold path, whatever their direction; the WebQuestions number in the id.
    """

    def __init__(self, paths_of: PathsOf, inverses: Mapping[str, str] | None = None) -> None:
        self._paths_of = paths_of
        self._inverses = inverses or {}
        self._known: set[Any] = set()

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add questions of the evaluation."""
        for row in rows:
            self._known.update(self._keys(row))

    def keep(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the questions that are not in the evaluation."""
        return [row for row in rows if self._known.isdisjoint(self._keys(row))]

    def _keys(self, row: Mapping[str, Any]) -> Iterator[Any]:
        yield normalise(row["question"])
        if number := _WEB_QUESTIONS.match(str(row.get("id", ""))):
            yield "id", number.group()
        for path in self._paths_of(row):
            # a relation and its inverse count as the same
            relations = (step.relation for step in path.steps)
            yield path.topic, tuple(min(each, self._inverses.get(each, each)) for each in relations)


def labels_in(graphs: Sequence[KnowledgeGraph]) -> NamesOf:
    """Return a function that looks up the labels of entities in the given graphs, for `training_questions`."""

    def names(entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        found: dict[Entity, list[str]] = {}
        for graph in graphs:
            for entity, label in graph.labels(entities).items():
                found.setdefault(entity, []).append(label)
        return found

    return names


def relations_by_local_name(graphs: Sequence[KnowledgeGraph]) -> dict[str, str]:
    """Map the last part of each relation's IRI to the relation; if several relations share a part, it is left out."""
    found: dict[str, set[str]] = {}
    for graph in graphs:
        for relation in graph.tables.relations:
            found.setdefault(local_name(relation), set()).add(relation)
    return {name: relations.pop() for name, relations in found.items() if len(relations) == 1}
