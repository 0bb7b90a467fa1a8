"""What a language model sees of one question: the masked question, paths in words, and their end nodes.

All text from the graph passes through this module before it enters a prompt. The module masks the topics, and counts
the strings that still contain a topic's name (thesis, section 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.events import GaveUp
from kgqa.explore.masking import Span, leaks, placeholders, replace_spans, topic_spans
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Named, RelationPath, Value
from kgqa.settings import Settings
from kgqa.trace import Trace
from kgqa.words import grouped_steps, published_words, relation_words

MOST_ENDS = 10
"""Most entities shown at the end of a path (thesis, section 4.2)."""
COUNTED = 1000
"""Limit up to which the end nodes of a path are counted."""


class PromptView:
    """One question as a language model sees it.

    `spans` are the result of `topic_spans` for the question, if it is known.

    Attributes:
        question: The question; the topics are masked unless the setting `llm.mask` is "none".
        elements: Maps a path to strings: the topic, each hop, and each path from another topic that meets the path.
        ends: Maps a path to the names of some of its end nodes, and the number of further end nodes, as one string.
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
        spans: Sequence[Span] | None = None,
    ) -> None:
        self._graph = graph
        self._topics = topics
        self._wording = settings["rank.wording"]
        self._last_only = settings["explore.prune_by"] == "last-relation"
        self._trace = trace
        style = settings["llm.mask"]
        if style == "same":
            style = {"drop": "placeholder"}.get(settings["explore.mask"], settings["explore.mask"])
        self.masks = style != "none"
        entities = {topic.value: topic.id for topic in topics if isinstance(topic.value, Entity)}
        self._named = {value: texts for value, texts in names.items() if isinstance(value, Entity)}
        self._names = [name for texts in names.values() for name in texts]
        self._marks: dict[Entity, str] = {}
        self.question = text
        if self.masks:
            # an id that contains the topic's name must not be shown
            ids = {e: id_ for e, id_ in entities.items() if not leaks([id_], self._names)} if style == "id" else {}
            self._marks = {**placeholders(entities), **ids}
            spans = topic_spans(text, self._named) if spans is None else spans
            self.question = replace_spans(text, spans, self._marks)
        self.elements = cache(self._elements)
        self.ends = cache(self._ends)
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

    def _elements(self, candidate: Candidate) -> tuple[str, ...]:
        hops = self._hops(candidate.path)
        joins = (
            f"(which {'at its end' if join.at == len(candidate.path) else 'on the way'} meets "
            f"{self.topic(join.path.topic)} {' '.join(self._hops(join.path))})"
            for join in candidate.joins
        )
        found = (self.topic(candidate.path.topic), *(hops[-1:] if self._last_only else hops), *joins)
        self.texts.add(" ".join(found))
        return found

    def _hops(self, path: RelationPath) -> tuple[str, ...]:
        schema, labels = self._graph.schema, self._graph.relation_labels
        if self._wording == "published":
            return tuple(published_words(RelationPath(path.topic, (step,)), schema, labels) for step in path.steps)
        return tuple(
            f"{'->' if group[-1].direction == 'out' else '<-'} "
            + " · ".join(relation_words(step.relation, schema, labels) for step in group)
            for group in grouped_steps(path, self._graph.leads_to_mediator)
        )

    def _ends(self, candidate: Candidate) -> str:
        text = self._ends_text(candidate)
        self.texts.add(text)
        return text

    def _ends_text(self, candidate: Candidate) -> str:
        try:
            found = self._graph.ends(candidate.path, **candidate.limits, limit=COUNTED)
        except (StoreTimeout, PartialResult) as error:
            self._trace.record(GaveUp(path=candidate.words, error=str(error)))
            return "too many to be listed"
        others = {topic.value for topic in self._topics} - {candidate.path.topic}
        values = [value for value in found.values if value not in others]
        if not values:
            return "nothing but what the question names" if found.values else "nothing"
        named = self._graph.named(values[:MOST_ENDS])
        names = "; ".join(self.name(item.value, item.name) for item in named)
        if found.approximate:
            return f"{names}; and more than {COUNTED - MOST_ENDS} others"
        return f"{names}; and {len(values) - MOST_ENDS} others" if len(values) > MOST_ENDS else names

    def leaked(self) -> int:
        """Return how many of the strings shown so far contain the name of a masked topic."""
        return len(leaks(sorted(self.texts), self._names)) if self.masks else 0
