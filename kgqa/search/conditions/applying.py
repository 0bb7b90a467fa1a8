"""Adds the conditions and the operation that a question asks for to the ranked paths."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.query.words import condition_words, node_variable, operation_words
from kgqa.model import Candidate, Entity
from kgqa.model.conditions import Condition
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import terms
from kgqa.search.conditions.beside import Beside
from kgqa.search.conditions.filters import Filters, Found, Wording
from kgqa.search.conditions.operations import Operations, Scored
from kgqa.search.conditions.requests import Request
from kgqa.search.rows import read_rows
from kgqa.trace import ConditionsRead, ReadCondition
from kgqa.trace.trace import Trace

LOOKED_AT = 3
"""Most paths beside which conditions are looked for."""
MARGIN = 0.1
"""Most difference between the scores of the best path and of a path beside which conditions are looked for."""
MAX_WALKS = 200
NOT_APPLIED = "The time in the question was not applied"
ONLY_PART = "Only the year of the time in the question was applied."


class Conditions:
    """Finds the conditions and the operation that one question asks for.

    Args:
        graph: The graph.
        encoder: The embedding model; None to compare words only.
        wording: The question without its topics.
        request: What the question asks to compute; None if it asks for the ends of a path.
        topics: The topics of the question, in its order.
        named: The names of the topics in the question.
        trace: Records what was found.

    Attributes:
        notes: Sentences for the reader: how a word was read, and what was left out.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        encoder: CachedEncoder | None,
        wording: Wording,
        request: Request | None,
        topics: Sequence[Entity],
        named: str,
        trace: Trace,
    ) -> None:
        self._graph = graph
        self._wording = wording
        self._request = request
        self._operations = Operations(request, topics, Beside(graph, encoder), named) if request else None
        self._trace = trace
        self.notes: list[str] = []

    def applied(self, ranked: Scored, *, worded: bool = True) -> Scored:
        """Return the paths with the conditions and the operation of the question.

        Without an operation, the path whose conditions explain the most words of the question comes first, before the
        others; with a condition on the time, only this path is returned. With an operation, only the best path with it
        is returned; no path if there is none.

        Args:
            ranked: Paths with their scores, best first.
            worded: Whether the question has words for the path, apart from its topics and cue words.
        """
        if self._request is None or self._operations is None:
            return self._conditioned(ranked)
        between_topics = self._request.kind in ("compare", "difference")
        # two topics are compared by their values in the graph, which are those of the present
        past = self._wording.time is not None and not self._wording.time.is_now
        if self._wording.unread_time or (between_topics and (self._wording.excluded or past)):
            return []
        instances = self._operations.instances()
        every = [*ranked, *instances]
        found = self._found([*ranked[:LOOKED_AT], *instances])
        whole = [(found.get(each, Found(each)), score) for each, score in every]
        whole = [(each, score) for each, score in whole if self._is_whole(each)]
        best = self._operations.found([(each.candidate, score) for each, score in whole], worded=worded)
        if best is None:
            return []
        cues = next((each.cues for each, _ in whole if each.candidate.path == best[0].path), ())
        self._record(best[0], cues, self._request.noun)
        self.notes += self._operations.notes
        return [best]

    def _is_whole(self, found: Found) -> bool:
        """Return whether the time, the exclusions and the names in the question are in the path and its conditions."""
        known = terms(" ".join([found.candidate.words, found.candidate.leads_to, *found.cues]))
        applied = found.applied.issuperset(self._wording.restrictions) and not found.note
        return applied and set(known).issuperset(self._wording.names)

    def _conditioned(self, ranked: Scored) -> Scored:
        best = [pair for pair in ranked[:LOOKED_AT] if (ranked[0][1] or 0.0) - (pair[1] or 0.0) <= MARGIN]
        if not best:
            return ranked
        found = self._found(best)
        chosen, score = max(((found.get(c, Found(c)), score) for c, score in best), key=lambda pair: pair[0].explained)
        self._note_ignored(chosen)
        if not chosen.cues:
            return ranked
        self._record(chosen.candidate, chosen.cues, self._wording.noun)
        # no answer rather than one from another time
        return [(chosen.candidate, score), *([] if self._wording.time in chosen.applied else ranked)]

    def _note_ignored(self, chosen: Found) -> None:
        """Note which restrictions of the question the answers do not fulfil."""
        wording = self._wording
        if wording.time is not None and wording.time in chosen.applied:
            self.notes += [ONLY_PART] if wording.unread_time else []
        elif wording.time is not None and wording.time.is_now:
            self.notes.append(f"{NOT_APPLIED}.")
        elif words := wording.unread_time or (wording.time and wording.time.cue):
            self.notes.append(f"{NOT_APPLIED}: “{words}”.")
        self.notes += [chosen.note] if chosen.note else []
        for entity in self._graph.named([each for each in wording.excluded if each not in chosen.applied]):
            self.notes.append(f"{entity.name} was not excluded, because it is not among the answers.")

    def _record(self, candidate: Candidate, cues: Sequence[str], noun: str) -> None:
        """Record which words led to which conditions, and to the operation; without a cue, it was the noun."""
        graph, length = self._graph, len(candidate.path)
        found = [
            ReadCondition(cue, condition_words(graph, condition, node_variable(condition.at, length)))
            for cue, condition in zip_longest(cues, candidate.conditions, fillvalue=noun)
            if isinstance(condition, Condition)
        ]
        if candidate.operation is not None and self._request is not None:
            words = operation_words(graph, candidate.operation, candidate.path.steps)
            found.append(ReadCondition(self._request.cue, words))
        self._trace.record(ConditionsRead(path=candidate.words, found=tuple(found)))

    def _found(self, pairs: Scored) -> dict[Candidate, Found]:
        near = [c for c, _ in pairs if self._wording.restrictions or self._wording.unexplained(c)]
        rows = read_rows(self._graph, near, self._trace, limit=MAX_WALKS) if near else []
        return {each.candidate: Filters(self._graph, self._wording, each).found for each in rows}
