"""Topics that are classes: a path from a class starts at its instances."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import NameMatch
from kgqa.graph.paths import Ends
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.model.conditions import Condition
from kgqa.rank.lexical import terms
from kgqa.rank.tournaments.chooser import TextScorer
from kgqa.schema import INSTANCE_OF, SUBCLASS_OF, TYPE
from kgqa.search.linking import Mention, find_mentions
from kgqa.search.name_matching import NameText
from kgqa.search.tolerance import TOLERATED
from kgqa.search.words import stems
from kgqa.text.words import type_words


def class_relations(graph: KnowledgeGraph) -> tuple[str, ...]:
    """Return the relations from a node to its classes; where classes have subclasses, the one to all above a node."""
    has_subclasses = SUBCLASS_OF in graph.tables.relations and not graph.store.capabilities.remote
    return (INSTANCE_OF,) if has_subclasses and TYPE in graph.schema.types else graph.schema.types


def with_subclasses(graph: KnowledgeGraph, condition: Condition) -> Condition:
    """Return a condition; one on the type of a node is also met by the subclasses of the type."""
    is_type = len(condition.steps) == 1 and condition.steps[0].relation in graph.schema.types
    return replace(condition, steps=tuple(map(Step, class_relations(graph)[:1]))) if is_type else condition


def instances_of(graph: KnowledgeGraph, topics: Sequence[Entity]) -> dict[Entity, RelationPath]:
    """Return for each topic that is a class the path to its instances."""
    counted, relations = graph.tables.counted_types, class_relations(graph)
    # a class may only have instances of its subclasses
    topics = [topic for topic in topics if not counted or topic.iri in counted or relations == (INSTANCE_OF,)]
    paths = [RelationPath(topic, (Step(relation, "in"),)) for topic in topics for relation in relations]
    ends = graph.paths.ends([Candidate(path) for path in paths], limit=1, tolerated=TOLERATED)
    return {path.topic: path for path, found in zip(paths, ends) if isinstance(found, Ends) and found.values}


def find_class(graph: KnowledgeGraph, question: str) -> list[Mention]:
    """Return the mention of a class that has no label, by the words of its id; the longest, none if there is none."""
    classes: dict[tuple[str, ...], str] = graph.tables.values.get(
        "classes by words",
        lambda: {stems(type_words(each, graph.schema)): each for each in sorted(graph.tables.classes)},
    )
    text = NameText(question)
    for start, end in sorted(text.windows(4), key=lambda window: window[0] - window[1]):
        written = text.written(start, end)
        if (found := classes.get(stems(written))) and not text.is_part(start, end):
            name = type_words(found, graph.schema)
            return [Mention(written, (NameMatch(Entity(found), name, "label", exact=True),))]
    return []


def find_topics(graph: KnowledgeGraph, question: str, *, fit: TextScorer | None = None) -> list[Mention]:
    """Return the mentions in a question; if there are none, that of a class.

    The name of a class does not stand for a longer name with it: "ferries" is not the company Southern Ferries.
    """

    def names_class(mention: Mention) -> bool:
        return any(terms(each.text) == terms(mention.text) for each in find_class(graph, mention.text))

    mentions = [
        each for each in find_mentions(graph, question, fit=fit) if each.matches[0].exact or not names_class(each)
    ]
    return mentions or find_class(graph, question)


def starts(
    graph: KnowledgeGraph, topics: Sequence[Entity], *, all_topics: bool, nouns: Iterable[str] = ()
) -> list[Candidate]:
    """Return the paths from which to explore: those without steps from the topics that are no classes.

    If all topics are classes, the paths lead to their instances.

    Args:
        graph: The graph.
        topics: The topics.
        all_topics: Whether no topic is left out.
        nouns: What the question asks for or counts. In a graph whose types were not counted, only what is called so
            may be a class, and what no relation leads on from.
    """
    names = graph.labels(topics)
    named = {topic: names.get(topic) or type_words(topic.iri, graph.schema) for topic in topics}
    heads = {stems(noun)[-1:] for noun in nouns}
    steps = graph.paths.steps([Candidate(RelationPath(topic)) for topic in topics], tolerated=TOLERATED)
    dead_ends = {topic for topic, each in zip(topics, steps) if not isinstance(each, Exception) and not each.steps}
    may_be = [
        each for each in topics if graph.tables.counted_types or each in dead_ends or stems(named[each])[-1:] in heads
    ]
    instances = instances_of(graph, may_be)
    if len(instances) < len(topics):
        return [Candidate(RelationPath(topic)) for topic in topics if all_topics or topic not in instances]
    return [
        Candidate(path, name, hops=(name,), kinds=(topic.iri,), leads_to=name)
        for topic, path in instances.items()
        for name in [named[topic]]
    ]


def starts_at_instances(graph: KnowledgeGraph, path: RelationPath) -> bool:
    """Return whether a path begins with the step from a class to its instances."""
    return (
        bool(path.steps)
        and path.steps[0].direction == "in"
        and path.steps[0].relation in (*graph.schema.types, INSTANCE_OF)
    )
