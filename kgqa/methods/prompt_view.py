"""What a language model is shown of one question: the masked question, paths in words, and what lies at their ends.

Everything a prompt says of the graph goes through here, so that masking is in one place and leaks are counted (thesis,
section 3.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa.errors import PartialResult, StoreTimeout
from kgqa.explore.masking import leaks, mask, placeholders
from kgqa.graph.graph import KnowledgeGraph
from kgqa.model import Candidate, Entity, Named, RelationPath, Value
from kgqa.settings import Settings
from kgqa.trace import Trace
from kgqa.words import grouped_steps, published_words, relation_words

MOST_ENDS = 10
"""Entities at the end of a path that are shown (thesis, section 4.2)."""
COUNTED = 1000
"""Up to so many the others are counted."""


class PromptView:
    """One question as a language model sees it.

    Attributes:
        question: with its topics masked, as the settings say.
        texts: everything of the graph that was shown, to look for leaks in.
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
        self._wording = settings["rank.wording"]
        self._last_only = settings["explore.prune_by"] == "last-relation"
        self._trace = trace
        style = settings["llm.mask"]
        if style == "same":
            style = {"drop": "placeholder"}.get(settings["explore.mask"], settings["explore.mask"])
        self.masks = style != "none"
        entities = [topic.value for topic in topics]
        self._marks: dict[Value, str] = {}
        self.question = text
        if self.masks:
            marks = placeholders(entities)  # type: ignore[arg-type]
            # an id that says the name is none to show
            every = [name for several in names.values() for name in several]
            ids = {t.value: t.id for t in topics if not leaks([t.id], every)} if style == "id" else {}
            self._marks = {**marks, **ids}
            masked = mask(text, names, style=style, ids=ids)  # type: ignore[arg-type]
            self.question = masked.text
        self._named = names
        self._names = [name for several in names.values() for name in several]
        self._elements: dict[Candidate, tuple[str, ...]] = {}
        self._ends: dict[Candidate, str] = {}
        self.texts: set[str] = {self.question}

    def topic(self, entity: Entity) -> str:
        """What stands for a topic."""
        if entity in self._marks:
            return self._marks[entity]
        return next((topic.name for topic in self._topics if topic.value == entity), entity.iri)

    def name(self, value: Value, name: str) -> str:
        """What is shown of a value that was reached: its name, or what stands for it where it is a topic."""
        if value in self._marks or not self.masks:
            return self._marks.get(value, name)
        # namesakes, titles that repeat the name, sequels
        return mask(name, self._named, style="placeholder").text if leaks([name], self._names) else name

    def elements(self, candidate: Candidate) -> tuple[str, ...]:
        """A path: the topic, then a text for each hop, then one for each path it must meet."""
        found = self._elements.get(candidate)
        if found is None:
            hops = self._hops(candidate.path)
            if self._last_only:
                hops = hops[-1:]
            joins = (
                f"(which {'at its end' if join.at == len(candidate.path) else 'on the way'} meets "
                f"{self.topic(join.path.topic)} {' '.join(self._hops(join.path))})"
                for join in candidate.joins
            )
            found = (self.topic(candidate.path.topic), *hops, *joins)
            self._elements[candidate] = found
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

    def ends(self, candidate: Candidate) -> str:
        """Some names of what lies at the end of a path, and how many there are."""
        text = self._ends.get(candidate)
        if text is None:
            self._ends[candidate] = text = self._ends_text(candidate)
            self.texts.add(text)
        return text

    def _ends_text(self, candidate: Candidate) -> str:
        try:
            found = self._graph.ends(
                candidate.path, joins=candidate.joins, restricted=candidate.restricted, limit=COUNTED
            )
        except (StoreTimeout, PartialResult) as error:
            self._trace.event("gave_up", path=candidate.words, error=str(error))
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
        """How many of the texts shown so far carry the name of a topic that was to be masked."""
        return len(leaks(sorted(self.texts), self._names)) if self.masks else 0
