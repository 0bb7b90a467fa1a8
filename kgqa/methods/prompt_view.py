"""What a language model sees of one question: the masked question, paths in words, and their end nodes.

All text from the graph passes through this module before it enters a prompt. The module masks the topics, and counts
the strings that still contain a topic's name (thesis, section 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import Ends
from kgqa.model import Candidate, Entity, Named, RelationPath, Step, Value
from kgqa.search.masking import leaks, placeholders, replace_spans, topic_spans
from kgqa.search.topics import generic_topics
from kgqa.settings.values import Settings
from kgqa.text.words import ambiguous_relations, is_unnamed, prompt_words, published_words
from kgqa.trace import GaveUp
from kgqa.trace.trace import Trace

MOST_ENDS = 10
"""Most entities shown at the end of a path."""
COUNTED = 200
"""Limit up to which the end nodes of a path are counted."""
COUNTED_AS_PUBLISHED = 1000
LONGEST_NAME = 80
TOO_MANY = "too many to be listed"


class PromptView:
    """One question as a language model sees it.

    Attributes:
        question: The question; the topics are masked unless the setting `llm.mask` is "none".
        elements: Maps a path to strings: the topic, each hop, and each path from another topic that meets the path.
        pruned: The same for the tournaments, which see only the last hop with `explore.prune_by` "last-relation".
        ends: Maps a path to the names of some of its end nodes, and the number of further end nodes, as one string.
        samples: Maps a path to the names of a few of its end nodes, and the number of all, as one string.
        published: Whether the wording is as published.
        generic: Topics from which no path should start; they are shown by their names.
        texts: All strings shown to the model so far; they are searched for names of masked topics.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text: str,
        topics: Sequence[Named],
        names: Mapping[Value, Sequence[str]],
        settings: Settings,
        trace: Trace,
    ) -> None:
        self._graph = graph
        self._topics = topics
        self.published = settings.rank.wording == "published"
        self._counted = COUNTED_AS_PUBLISHED if self.published else COUNTED
        self._sampled = settings.llm.samples
        last_only = settings.explore.prune_by == "last-relation"
        self._trace = trace
        style: str = settings.llm.mask
        if style == "same":
            style = {"drop": "placeholder"}.get(settings.explore.mask, settings.explore.mask)
        self.masks = style != "none"
        self._named = {value: texts for value, texts in names.items() if isinstance(value, Entity)}
        self._marks: dict[Entity, str] = {}
        self.question = text
        spans = topic_spans(text, self._named)
        mentioned = {span.topic for span in spans}
        self.generic = set() if self.published else generic_topics(graph, list(self._named), mentioned)
        if self.masks:
            if style == "placeholder":
                # a mark that the question does not contain would tell a model nothing
                masked = mentioned - self.generic
                self._named = {topic: texts for topic, texts in self._named.items() if topic in masked}
                spans = [span for span in spans if span.topic in masked]
            entities = {t.value: t.id for t in topics if isinstance(t.value, Entity) and t.value in self._named}
            every = list(chain.from_iterable(self._named.values()))
            # an id that contains the topic's name must not be shown
            ids = {e: id_ for e, id_ in entities.items() if not leaks([id_], every)} if style == "id" else {}
            self._marks = {**placeholders(entities), **ids}
            self.question = replace_spans(text, spans, self._marks)
        self._names = list(chain.from_iterable(self._named.values()))
        self._ends_known: dict[Any, Ends | StoreTimeout | PartialResult] = {}
        """By the identity of a candidate."""
        self.elements = cache(self._elements)
        self.pruned = cache(partial(self._elements, last_only=True)) if last_only else self.elements
        self.ends = cache(self._ends)
        self.samples = cache(self._samples)
        self.texts: set[str] = {self.question}

    @property
    def topics_asked(self) -> tuple[Entity, ...]:
        """The topic entities of the question."""
        return tuple(topic.value for topic in self._topics if isinstance(topic.value, Entity))

    def topic(self, entity: Entity) -> str:
        """Return the text shown for a topic: a placeholder, an id, or the name."""
        if entity in self._marks:
            return self._marks[entity]
        return next((topic.name for topic in self._topics if topic.value == entity), entity.iri)

    def name(self, value: Value, name: str) -> str:
        """Return the text shown for a value: a placeholder for a topic, else the name, in which topics are masked."""
        if isinstance(value, Entity) and value in self._marks:
            return self._marks[value]
        if not self.masks:
            return name
        # another entity's name may contain a topic's name; for example, the title of a sequel
        if not leaks([name], self._names):
            return name
        return replace_spans(name, topic_spans(name, self._named), placeholders(self._named))

    def look_up(self, candidates: Sequence[Candidate]) -> None:
        """Look up the end nodes of paths, and the names of those that are shown, with few queries."""
        new = [each for each in {c.identity: c for c in candidates}.values() if each.identity not in self._ends_known]
        found = self._graph.paths.ends(new, limit=self._counted, tolerated=(StoreTimeout, PartialResult))
        self._ends_known |= zip([each.identity for each in new], found)
        shown = (self._shown(each)[: self._sampled] for each in new)
        self._graph.labels(value for values in shown for value in values if isinstance(value, Entity))

    def distinct(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates without those that have no end nodes, or exactly those of an earlier one.

        Candidates of which only some end nodes are known are all kept. A path without end nodes returns to its topic.
        """
        self.look_up(candidates)
        kept: list[Candidate] = []
        seen: set[frozenset[Value]] = set()
        for candidate in candidates:
            found = self._ends_known[candidate.identity]
            if not isinstance(found, Ends) or found.approximate:
                kept.append(candidate)
            elif found.values and frozenset(found.values) not in seen:
                kept.append(candidate)
                seen.add(frozenset(found.values))
        return kept

    def _elements(self, candidate: Candidate, *, last_only: bool = False) -> tuple[str, ...]:
        hops = self._hops(candidate.path)
        joins = (
            f"AND{self._meeting(candidate.path, join.at)} "
            f"{self.topic(join.path.topic)} {' '.join(self._hops(join.path))}"
            for join in candidate.joins
        )
        found = (self.topic(candidate.path.topic), *(hops[-1:] if last_only else hops), *joins)
        self.texts.add(" ".join(found))
        return found

    def _meeting(self, path: RelationPath, at: int) -> str:
        """Return where a joined path meets a path: at its end (""), at a record, or at the nodes of a hop."""
        if at == len(path):
            return ""
        if self._graph.tables.leads_to_mediator(path.steps[at - 1]):
            return " in the same record"
        return f" at hop {sum(not self._graph.tables.leads_to_mediator(step) for step in path.steps[:at])}"

    def _hops(self, path: RelationPath) -> tuple[str, ...]:
        graph = self._graph
        schema, labels = graph.schema, graph.tables.relation_labels
        if self.published:
            return tuple(published_words(RelationPath(path.topic, (step,)), schema, labels) for step in path.steps)
        return tuple(f"-> {each}" for each in path_words(graph, path))

    def _samples(self, candidate: Candidate) -> str:
        """Return some end nodes of a path and their number: `Paris; Lyon; 12 in all`; "" if none are to be shown."""
        if not self._sampled:
            return ""
        found, values = self._found(candidate), self._shown(candidate)
        if not isinstance(found, Ends):
            return TOO_MANY
        names = self._texts_of(values[: self._sampled])
        if found.approximate or len(names) < len(values):
            names.append(f"{f'more than {self._counted}' if found.approximate else len(values)} in all")
        return self.noted("; ".join(names) or "only what the question names")

    def _ends(self, candidate: Candidate) -> str:
        found, values = self._found(candidate), self._shown(candidate)
        if not isinstance(found, Ends):
            return self.noted(TOO_MANY)
        if not values:
            return self.noted("only what the question names" if found.values else "nothing")
        texts = self._texts_of(values[:MOST_ENDS])
        others = (self._counted if found.approximate else len(values)) - len(texts)
        if found.approximate or others > 0:
            texts.append(f"and {'more than ' if found.approximate else ''}{others} others")
        return self.noted("; ".join(texts))

    def noted(self, text: str) -> str:
        """Note that a text is shown, and return it."""
        self.texts.add(text)
        return text

    def _found(self, candidate: Candidate) -> Ends | StoreTimeout | PartialResult:
        if candidate.identity not in self._ends_known:
            self.look_up([candidate])
        found = self._ends_known[candidate.identity]
        if not isinstance(found, Ends):
            self._trace.record(GaveUp(path=candidate.words, error=str(found)))
        return found

    def _shown(self, candidate: Candidate) -> list[Value]:
        """Return the known end nodes of a path that are not topics of the question."""
        found = self._ends_known[candidate.identity]
        others = {topic.value for topic in self._topics} - {candidate.path.topic}
        return [value for value in found.values if value not in others] if isinstance(found, Ends) else []

    def _texts_of(self, values: Sequence[Value]) -> list[str]:
        """Return the names of values, first those that have one; if none has one, say so."""
        named = [
            each for each in self._graph.named(values) if self.published or not is_unnamed(each, self._graph.schema)
        ]
        # a date may be stored both typed and untyped
        texts = list(dict.fromkeys(self.name(each.value, each.name)[:LONGEST_NAME] for each in named))
        return texts or ["unnamed"] * bool(values)

    def leaked(self) -> int:
        """Return how many of the strings shown so far contain the name of a masked topic."""
        return len(leaks(sorted(self.texts), self._names)) if self.masks else 0


def path_words(graph: KnowledgeGraph, path: RelationPath) -> tuple[str, ...]:
    """Return the words of each hop for prompts; see `prompt_words`."""
    return prompt_words(
        path,
        graph.schema,
        graph.tables.relation_labels,
        is_mediator=graph.tables.leads_to_mediator,
        inverse=graph.tables.inverses.get,
        target_type=graph.tables.target_type,
        ambiguous=ambiguous_in(graph),
    )


def ambiguous_in(graph: KnowledgeGraph) -> frozenset[str]:
    """Return the ambiguous relations of a graph; they are computed again after an edit."""
    tables = graph.tables

    def of_mediators(relation: str) -> bool:
        return tables.leads_to_mediator(Step(relation, "in"))

    return tables.values.get(
        "ambiguous relations", lambda: ambiguous_relations(tables.relations, graph.schema, of_mediators=of_mediators)
    )
