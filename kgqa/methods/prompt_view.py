"""What a language model sees of one question: the masked question, paths in words, and their end nodes.

All text from the graph passes through this module before it enters a prompt. The module masks the topics, and counts
the strings that still contain a topic's name (thesis, section 3.4).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.paths import Ends
from kgqa.model import Candidate, Entity, Named, RelationPath, Step, Value
from kgqa.search.masking import leaks, placeholders, replace_spans, topic_spans
from kgqa.search.tolerance import TOLERATED
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


class PromptView:
    """One question as a language model sees it.

    Attributes:
        question: The question; the topics are masked unless the setting `llm.mask` is "none".
        masks: Whether topics are masked.
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
        self._graph, self._topics, self._trace = graph, topics, trace
        self.published = settings.rank.wording == "published"
        self._counted = COUNTED_AS_PUBLISHED if self.published else COUNTED
        self._sampled = settings.llm.samples
        self._last_only = settings.explore.prune_by == "last-relation"
        style: str = settings.llm.mask
        if style == "same":
            style = {"drop": "placeholder"}.get(settings.explore.mask, settings.explore.mask)
        self.masks = style != "none"
        self._named = {value: texts for value, texts in names.items() if isinstance(value, Entity)}
        spans = topic_spans(text, self._named)
        mentioned = {span.topic for span in spans}
        self.generic = set() if self.published else generic_topics(graph, list(self._named), mentioned)
        if style == "placeholder":
            # a mark that the question does not contain would tell a model nothing
            self._named = {each: texts for each, texts in self._named.items() if each in mentioned - self.generic}
        self._names = [name for texts in self._named.values() for name in texts]
        self._marks: dict[Entity, str] = {}
        if self.masks:
            entities = {t.value: t.id for t in topics if isinstance(t.value, Entity) and t.value in self._named}
            # an id that contains the topic's name must not be shown
            ids = {e: id_ for e, id_ in entities.items() if style == "id" and not leaks([id_], self._names)}
            self._marks = {**placeholders(entities), **ids}
        spans = [span for span in spans if span.topic in self._marks]
        self.question = replace_spans(text, spans, self._marks)
        self._ends_known: dict[Hashable, Ends | None] = {}
        self._failures: dict[Hashable, str] = {}
        """Errors that the trace does not contain yet, because the model has not seen the paths."""
        self.texts: set[str] = {self.question}

    def topic(self, entity: Entity) -> str:
        """Return the text shown for a topic: a placeholder, an id, or the name."""
        names = {topic.value: topic.name for topic in self._topics}
        return self._marks.get(entity) or names.get(entity, entity.iri)

    def name(self, value: Value, name: str) -> str:
        """Return the text shown for a value: a placeholder for a topic, else the name, in which topics are masked."""
        if isinstance(value, Entity) and value in self._marks:
            return self._marks[value]
        # another entity's name may contain a topic's name; for example, the title of a sequel
        if not self.masks or not leaks([name], self._names):
            return name
        return replace_spans(name, topic_spans(name, self._named), placeholders(self._named))

    def distinct(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates without those that have no end nodes, or exactly those of an earlier one.

        Candidates of which only some end nodes are known are all kept. A path without end nodes returns to its topic.
        """
        self._look_up(candidates)
        kept: dict[Hashable, Candidate] = {}
        for each in candidates:
            ends = self._ends_known[each.identity]
            if ends is None or ends.approximate:
                kept[each.identity] = each
            elif ends.values:
                kept.setdefault(frozenset(ends.values), each)
        return list(kept.values())

    def elements(self, candidate: Candidate) -> tuple[str, ...]:
        """Return a path as strings: the topic, each hop, and each path from another topic that meets the path."""
        return self._elements(candidate, last_only=False)

    def pruned(self, candidate: Candidate) -> tuple[str, ...]:
        """Return what tournaments see of a path: only the last hop with `explore.prune_by` "last-relation"."""
        return self._elements(candidate, last_only=self._last_only)

    def _elements(self, candidate: Candidate, *, last_only: bool) -> tuple[str, ...]:
        hops = self._hops(candidate.path)
        joins = (
            f"AND{self._meeting(candidate.path, join.at)} "
            f"{self.topic(join.path.topic)} {' '.join(self._hops(join.path))}"
            for join in candidate.joins
        )
        found = (self.topic(candidate.path.topic), *(hops[-1:] if last_only else hops), *joins)
        self.noted(" ".join(found))
        return found

    def _meeting(self, path: RelationPath, at: int) -> str:
        """Return where a joined path meets a path: at its end (""), at a record, or at the nodes of a hop."""
        is_mediator = self._graph.tables.leads_to_mediator
        if at == len(path):
            return ""
        hop = sum(not is_mediator(step) for step in path.steps[:at])
        return " in the same record" if is_mediator(path.steps[at - 1]) else f" at hop {hop}"

    def _hops(self, path: RelationPath) -> tuple[str, ...]:
        graph = self._graph
        if not self.published:
            return tuple(f"-> {each}" for each in path_words(graph, path))
        schema, labels = graph.schema, graph.tables.relation_labels
        return tuple(published_words(RelationPath(path.topic, (step,)), schema, labels) for step in path.steps)

    def samples(self, candidate: Candidate) -> str:
        """Return some end nodes of a path and their number: `Paris; Lyon; 12 in all`; "" if none are to be shown."""
        return self._ends_of(candidate, self._sampled, total=True) if self._sampled else ""

    def ends(self, candidate: Candidate) -> str:
        """Return the names of some end nodes of a path, and the number of further ones."""
        return self._ends_of(candidate, MOST_ENDS, total=False)

    def _ends_of(self, candidate: Candidate, most: int, *, total: bool) -> str:
        self._look_up([candidate])
        ends, values = self._ends_known[candidate.identity], self._shown(candidate)
        if candidate.identity in self._failures:
            self._trace.record(GaveUp(path=candidate.words, error=self._failures.pop(candidate.identity)))
        if ends is None:
            return self.noted("too many to be listed")
        if not values:
            return self.noted("only what the question names" if ends.values or total else "nothing")
        texts = self._texts_of(values[:most])
        count = self._counted if ends.approximate else len(values)
        if ends.approximate or len(texts) < count:
            more = "more than " if ends.approximate else ""
            texts.append(f"{more}{count} in all" if total else f"and {more}{count - len(texts)} others")
        return self.noted("; ".join(texts))

    def noted(self, text: str) -> str:
        """Note that a text is shown, and return it."""
        self.texts.add(text)
        return text

    def _look_up(self, candidates: Sequence[Candidate]) -> None:
        """Look up the end nodes of paths, and the names of those that are shown, with few queries."""
        new = [each for each in {c.identity: c for c in candidates}.values() if each.identity not in self._ends_known]
        for each, found in zip(new, self._graph.paths.ends(new, limit=self._counted, tolerated=TOLERATED)):
            if isinstance(found, TOLERATED):
                self._failures[each.identity] = str(found)
            self._ends_known[each.identity] = found if isinstance(found, Ends) else None
        shown = (self._shown(each)[: self._sampled] for each in new)
        self._graph.labels(value for values in shown for value in values if isinstance(value, Entity))

    def _shown(self, candidate: Candidate) -> list[Value]:
        """Return the known end nodes of a path that are not topics of the question."""
        ends, others = self._ends_known[candidate.identity], {topic.value for topic in self._topics}
        return [value for value in ends.values if value not in others - {candidate.path.topic}] if ends else []

    def _texts_of(self, values: Sequence[Value]) -> list[str]:
        """Return the names of values, first those that have one; if none has one, say so."""
        named = self._graph.named(values)
        kept = [each for each in named if self.published or not is_unnamed(each, self._graph.schema)]
        # a date may be stored both typed and untyped
        texts = list(dict.fromkeys(self.name(each.value, each.name)[:LONGEST_NAME] for each in kept))
        return texts or ["unnamed"] * bool(values)

    def leaked(self) -> int:
        """Return how many of the strings shown so far contain the name of a masked topic."""
        return len(leaks(sorted(self.texts), self._names)) if self.masks else 0


def path_words(graph: KnowledgeGraph, path: RelationPath, labels: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the words of each hop for prompts, with the labels of relations in the graph or others."""
    return prompt_words(
        path,
        graph.schema,
        graph.tables.relation_labels if labels is None else labels,
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
