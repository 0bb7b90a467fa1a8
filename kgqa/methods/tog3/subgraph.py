"""The evidence graph of one question: the pieces that were kept, facts that a model added, and edits checked in code.

The graph lives as long as the question; nothing of it is written to the corpus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.resolution.types import types_agree
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.text.searching import BYTES_PER_TOKEN, within_tokens
from kgqa.methods.tog3.replies import ProposedFact, Refinement
from kgqa.model import Piece, Span
from kgqa.text.quotes import find_name, find_quote
from kgqa.text.words import normalise
from kgqa.trace import EvidenceEdited, LocalFact

MAX_EDITS = 20
"""Most pairs of names, and most new facts, of a reply."""
MAX_FACTS = 40
"""Most facts in a prompt."""


@dataclass(frozen=True)
class AddedFact(Piece):
    """A fact that a model read from a passage for this question; its IRI is that of the passage."""

    local: LocalFact = field(kw_only=True)


class Subgraph:
    """The evidence graph.

    Args:
        corpus: The corpus.
        graph: Its graph, charged to the question; knows the names of entities.

    Attributes:
        passages: The chunks, each with the step and the rank at which it was kept first.
        facts: Stored facts, by IRI.
        summaries: Summaries of communities, by IRI.
        local: Facts that a model added.
        same: Pairs of names that mean the same.
        cited: IRIs of chunks with quotes that were verified.
    """

    def __init__(self, corpus: Corpus, graph: KnowledgeGraph) -> None:
        self.passages: dict[str, tuple[Piece, int, int]] = {}
        self.facts: dict[str, Piece] = {}
        self.summaries: dict[str, Piece] = {}
        self.local: dict[LocalFact, AddedFact] = {}
        self.same: dict[tuple[str, str], None] = {}
        self.cited: dict[str, None] = {}
        self._dropped: set[str] = set()
        self._corpus = corpus
        self._graph = graph

    def add(
        self, step: int, passages: Sequence[Piece], facts: Iterable[Piece] = (), summaries: Iterable[Piece] = ()
    ) -> bool:
        """Add pieces that were kept for a step, passages best first; return whether any of them is new.

        Facts that an edit has removed stay out, also those that say the same.
        """
        before = len(self.passages) + len(self.facts) + len(self.summaries)
        for rank, passage in enumerate(passages):
            self.passages.setdefault(passage.iri, (passage, step, rank))
        for fact in facts:
            if normalise(fact.text) not in self._dropped:
                self.facts.setdefault(fact.iri, fact)
        for summary in summaries:
            self.summaries.setdefault(summary.iri, summary)
        return len(self.passages) + len(self.facts) + len(self.summaries) > before

    def shown(self, tokens: int, *, passages: bool = True) -> list[Piece]:
        """Choose what a prompt shows: the passages that fit, and after them the latest facts, those of edits first.

        Passages with verified quotes come first, then the first of each step, the second, and so on. Of passages with
        the same rank, the one of the latest step comes first.

        Args:
            tokens: About how many tokens all of it may have.
            passages: Whether passages are shown.
        """
        # a path of one step says the same as its fact
        stored = {normalise(each.text): each for each in reversed(self.facts.values())}
        listed = [*reversed(self.local.values()), *reversed(stored.values())][:MAX_FACTS]
        texts = [fact_line(each, {}) for each in listed] + [each.text for each in self.summaries.values()]
        left = tokens - sum(len(text.encode()) for text in texts) // BYTES_PER_TOKEN
        ordered = sorted(self.passages.values(), key=lambda each: (each[0].iri not in self.cited, each[2], -each[1]))
        return [*(within_tokens([piece for piece, *_ in ordered], left) if passages else []), *listed]

    def edit(
        self, step: int, facts: Sequence[Piece], passages: Sequence[Piece], read: Refinement, *, quoted: bool = True
    ) -> EvidenceEdited:
        """Apply the edits of a reply that hold, and return what has changed.

        A new fact holds if its quote stands in its passage and holds one of its names, and the other one stands in the
        quote, too, or belongs to a known entity. Two names may mean the same if both are known and no types of theirs
        contradict each other.

        Args:
            step: The number of the sub-question.
            facts: The facts that the prompt showed.
            passages: The passages that the prompt showed.
            read: The proposed edits.
            quoted: Whether new facts need a quote; otherwise a name must be known or stand in the passage.
        """
        # an empty list of facts to keep is no decision; a fact that is kept under one number is kept under all
        kept = {number for number in read.keep if 1 <= number <= len(facts)} or range(1, len(facts) + 1)
        self._dropped |= {normalise(fact.text) for fact in facts} - {normalise(facts[at - 1].text) for at in kept}
        removed = [iri for iri, fact in self.facts.items() if normalise(fact.text) in self._dropped]
        for iri in removed:
            del self.facts[iri]
        merged = [(pair[0], pair[1]) for pair in read.same[:MAX_EDITS] if len({*pair}) == len(pair) == 2]
        merged = [pair for pair in merged if self._may_be_same(pair, passages)]
        refused = len(read.same[:MAX_EDITS]) - len(merged)
        merged = [pair for pair in dict.fromkeys(merged) if pair not in self.same]
        self.same |= dict.fromkeys(merged)
        added = []
        for proposed in read.add[:MAX_EDITS]:
            fact = self._checked(proposed, passages, quoted)
            if fact is None:
                refused += 1
            elif fact.local not in self.local:
                self.local[fact.local] = fact
                added.append(fact.local)
        return EvidenceEdited(
            step=step, added=tuple(added), removed=tuple(removed), merged=tuple(merged), refused=refused
        )

    def _checked(self, fact: ProposedFact, passages: Sequence[Piece], quoted: bool) -> AddedFact | None:
        """Return a proposed fact if it holds."""
        if not (fact.subject and fact.relation and fact.object and 1 <= fact.passage <= len(passages)):
            return None
        passage = passages[fact.passage - 1]
        place = find_quote(passage.text, fact.quote) if fact.quote else None
        source = fact.quote if place else passage.text
        names = [name for name in (fact.subject, fact.object) if not find_name(source, name)]
        if quoted and (place is None or len(names) == 2):
            return None  # the quote is wrong, or says nothing of either
        if not all(self._is_known(name, passage) for name in names):
            return None
        spans = tuple(Span(span.document, span.chunk, *(place or (0, 0)), span.source) for span in passage.spans)
        local = LocalFact(fact.subject, fact.relation, fact.object, passage.iri, fact.quote if place else "")
        return AddedFact(
            passage.iri, "statement", " | ".join((fact.subject, fact.relation, fact.object)), spans=spans, local=local
        )

    def _is_known(self, name: str, passage: Piece) -> bool:
        """Return whether a name is that of an entity of the graph, of the document, or of a fact held before."""
        document = self._corpus.reader.document(passage.spans[0].document) if passage.spans else None
        title = document.title if document is not None else ""
        held = {normalise(each) for fact in self.local for each in (fact.subject, fact.object)}
        return bool(find_name(title, name)) or normalise(name) in held or bool(self._entities(name))

    def _entities(self, name: str) -> list[str]:
        wanted = normalise(name)
        return [match.entity.iri for match in self._graph.names.exact([wanted]).get(wanted, ())]

    def _may_be_same(self, names: Sequence[str], passages: Sequence[Piece]) -> bool:
        texts = [each.text for each in (*passages, *self.facts.values(), *self.local.values())]
        types = []
        for name in names:
            entities = self._entities(name)
            if not entities and not any(find_name(text, name) for text in texts):
                return False
            types.append([each for iri in entities for each in self._types(iri)])
        return not all(types) or any(types_agree(one, other) for one in types[0] for other in types[1])

    def _types(self, entity: str) -> list[str]:
        piece = self._corpus.index.pieces("entity").get(entity)
        found = re.search(r"\(([^()]*)\)(?::|$)", piece.text) if piece else None
        return found[1].split(", ") if found else []


def fact_line(fact: Piece, numbers: Mapping[str, int]) -> str:
    """Return a fact in words, with the numbers of the passages that it was read from, if these are shown."""
    shown = sorted({numbers[span.chunk] for span in fact.spans if span.chunk in numbers})
    place = [f"passage {', '.join(map(str, shown))}"] if shown else []
    place += [f'"{fact.local.quote}"'] if isinstance(fact, AddedFact) and fact.local.quote else []
    return f"{fact.text} ({': '.join(place)})" if place else fact.text
