"""Labels of relations, for schemas that name relations by their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.tables.labels import languages_of, names_by_node
from kgqa.graph.tables.whole_graph import WholeGraphQueries
from kgqa.model import Entity
from kgqa.schema import Schema

Labels = dict[Entity, str]
FindLabels = Callable[[Sequence[Entity]], Labels]


def find_relation_labels(
    relations: Iterable[str], schema: Schema, known: Mapping[Entity, str], find_labels: FindLabels
) -> dict[str, str]:
    """Return labels of relations: the label of a relation's `Schema.label_subject`, or else the relation's own label.

    Args:
        known: labels that are known already and are not looked up.
    """
    subjects = {relation: Entity(schema.label_subject(relation)) for relation in relations}
    labels = {**known, **find_labels([s for s in dict.fromkeys(subjects.values()) if s not in known])}
    own = [Entity(relation) for relation, s in subjects.items() if s not in labels and s.iri != relation]
    labels |= find_labels(own)
    found = {relation: labels.get(s) or labels.get(Entity(relation)) for relation, s in subjects.items()}
    return {relation: label for relation, label in found.items() if label}


def declared_labels(schema: Schema, whole: WholeGraphQueries) -> Labels:
    """Return the labels of all relations that the graph declares, in one query per label predicate."""
    found: Labels = {}
    if not schema.declared_by:
        return found
    declared_by, *kinds = map(Entity, schema.declared_by)
    note = "The graph has too many relations to read all their labels in one query: labels are looked up when needed."
    for predicate in map(Entity, schema.label):
        try:
            rows = whole.read(
                "declared_labels",
                what="The labels of relations",
                declared_by=declared_by,
                kinds=kinds,
                predicate=predicate,
                languages=languages_of(schema),
            )
        except (StoreTimeout, PartialResult):
            whole.notes[note] = "declared_labels"  # no label is lost, but finding the labels takes longer then
            continue
        for node, names in names_by_node(rows, schema).items():
            found.setdefault(node, names[0])
    return found
