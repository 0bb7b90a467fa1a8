"""The evidence graph of a question, as the events of its trace build it: facts added, merged names, removed facts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from kgqa.trace import Event, EvidenceEdited, LocalFact

MAX_FACTS = 400
_WORD = re.compile(r"\w+")


@dataclass(eq=False)
class GrownFact:
    """A fact of the evidence graph, with names after merging. `edit`: position of the edit that added it, from 0.

    `removed`: position of the edit that removed it; None if it stayed.
    """

    subject: str
    relation: str
    object: str
    fact: LocalFact
    edit: int
    removed: int | None = None


@dataclass(frozen=True)
class Edit:
    """One change of the evidence graph. `removed`: what was removed: words of facts, or IRIs of pieces."""

    step: int
    added: tuple[LocalFact, ...] = ()
    removed: tuple[str, ...] = ()
    merged: tuple[tuple[str, str], ...] = ()
    refused: int = 0


@dataclass
class EvidenceGraph:
    """The facts and the edits, in the order in which they were made. `left_out`: number of facts that are not kept."""

    facts: list[GrownFact] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    left_out: int = 0


def evidence_graph(trace: Iterable[Event]) -> EvidenceGraph:
    """Build the evidence graph of a trace; edits that change nothing are left out."""
    found = EvidenceGraph()
    names = _Names()
    for event in trace:
        if not isinstance(event, EvidenceEdited):
            continue
        if not (event.added or event.removed or event.merged or event.refused):
            continue
        number = len(found.edits)
        found.edits.append(Edit(event.step, event.added, event.removed, event.merged, event.refused))
        for pair in event.merged:
            names.merge(*pair)
        gone = {_words(text) for text in event.removed}
        for fact in found.facts:
            if fact.removed is None and _words(f"{fact.fact.subject} {fact.fact.relation} {fact.fact.object}") in gone:
                fact.removed = number
        for each in event.added:
            if len(found.facts) < MAX_FACTS:
                found.facts.append(GrownFact(each.subject, each.relation, each.object, each, number))
            else:
                found.left_out += 1
    for fact in found.facts:
        fact.subject, fact.object = names.of(fact.subject), names.of(fact.object)
    return found


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


class _Names:
    """Names that mean the same; the first spelling of the first name stands for all."""

    def __init__(self) -> None:
        self._same: dict[str, str] = {}
        self._spelling: dict[str, str] = {}

    def merge(self, one: str, other: str) -> None:
        first, second = self._root(one), self._root(other)
        if first != second:
            self._same[second] = first

    def of(self, name: str) -> str:
        return self._spelling.get(self._root(name), name)

    def _root(self, name: str) -> str:
        key = name.casefold()
        self._spelling.setdefault(key, name)
        while key in self._same:
            key = self._same[key]
        return key
