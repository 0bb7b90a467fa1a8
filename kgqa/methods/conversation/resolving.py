"""Resolves what a question of a conversation refers to: by a language model if there is one, else by rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.errors import KgqaError, NamesNotIndexed
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.conversation.ellipsis import complete
from kgqa.methods.conversation.references import Reference, find_references
from kgqa.methods.conversation.referents import TURNS, Referents
from kgqa.methods.conversation.rewriting import rewrite
from kgqa.methods.conversation.turns import Resolved, Turn
from kgqa.methods.resources import Resources
from kgqa.model import Named
from kgqa.search.linking import find_mentions
from kgqa.search.topics import check_text
from kgqa.text.words import display_name
from kgqa.trace.trace import BudgetExhausted, Trace

MAX_TOGETHER = 3
"""Maximum entities that one question is asked about together."""
_SHOWN = 4
_TOGETHER = re.compile(
    r"\b(?:both|together|each other|in common|share[ds]?|same|all of (?:them|these|those))\b", re.IGNORECASE
)


_EXCEPT = re.compile(
    r"\b(?:other than|besides|apart from|except(?:ing)?(?: for)?|excluding)\s+(?:the\s+)?\Z", re.IGNORECASE
)
"""Before a name, says that the question is not about it."""
_OF = re.compile(r"\bof\s+\Z", re.IGNORECASE)
"""Before a reference, says that it means a whole list: which of them."""


@dataclass(frozen=True, slots=True)
class _Name:
    """An entity that a question names, the characters of its name, and whether it is excluded: other than Paris."""

    start: int
    end: int
    entity: Named
    excluded: bool

    def overlaps(self, reference: Reference) -> bool:
        return reference.start < self.end and self.start < reference.end


def resolve(question: str, turns: Sequence[Turn], resources: Resources, *, trace: Trace | None = None) -> Resolved:
    """Return what is asked, given the turns so far, the latest last.

    A question that refers to nothing before it is returned as it is. If the reply of the language model cannot be
    read, or the model cannot be used, the rules decide; a question that was stopped ends when it is asked.

    Args:
        question: The question.
        turns: The turns so far.
        resources: The graph and, perhaps, a language model.
        trace: Is charged for the language model; needed only if there is one.

    Raises:
        QuestionError: The question is empty or too long.
        StoreError: A query failed.
    """
    text = check_text(question)
    if not turns:
        return Resolved(text)
    known = [turn for turn in turns if turn.answers or turn.topics][-TURNS:]
    graph = resources.graph
    referents = Referents.of(graph, known)
    if known and resources.by_model and trace is not None:
        try:
            found = rewrite(text, referents, resources, trace)
        except (BudgetExhausted, KgqaError):
            found = None
        if found is not None:
            return _with_named(found, graph)
    return _by_rules(text, referents, graph)


def _by_rules(text: str, referents: Referents, graph: KnowledgeGraph) -> Resolved:
    if (completed := complete(text, referents.turns, graph)) is not None:
        return completed
    references = find_references(text)
    if not references:
        return Resolved(text)
    named = _named_in(text, graph)
    # in "Who sang Let It Be?", It is part of a name
    references = [
        each for each in references if all(each.end <= name.start or name.end <= each.start for name in named)
    ]
    meant, topics, notes = list[tuple[Reference, Sequence[Named]]](), list[Named](), list[str]()
    for reference in references:
        if _refers_within(reference, named, graph):
            continue
        found = referents.choose(reference)
        if not found:
            if reference.kind != "noun":
                notes.append(f"Nothing before this question fits “{reference.text}”.")
            continue
        if len(found) > 1 and _OF.search(text[: reference.start]):
            notes.append(_too_many(reference, found))
            continue
        together = reference.kind in ("several", "noun") and _TOGETHER.search(text) and len(found) <= MAX_TOGETHER
        chosen = found if together else found[:1]
        if len(found) > len(chosen):
            notes.append(_ambiguous(reference, found))
        meant.append((reference, chosen))
        topics += chosen
    if not topics:
        return Resolved(text, notes=tuple(notes))
    resolved = Resolved(_with_names(text, meant), tuple(dict.fromkeys(topics)), tuple(notes), "rules")
    return _with_named(resolved, graph, named)


def _with_names(text: str, meant: Sequence[tuple[Reference, Sequence[Named]]]) -> str:
    """Return a question with names in place of its references."""
    for reference, named in reversed(meant):  # so that the positions of those before stay right
        before, words, after = text[: reference.start], reference.filled(text, _listed(named)), text[reference.end :]
        if len(named) == 1:
            before, after = reference.agreeing(before, after)
        text = f"{before}{words}{after}"
    return text


def _refers_within(reference: Reference, names: Sequence[_Name], graph: KnowledgeGraph) -> bool:
    """Return whether a reference may mean an entity that the question names before it."""
    before = tuple(each.entity for each in names if each.start < reference.start)
    if not before or reference.kind in ("several", "any", "numbered"):
        return False
    return bool(Referents.of(graph, [Turn("", before)]).choose(reference))


def _named_in(text: str, graph: KnowledgeGraph) -> list[_Name]:
    """Return the entities that a text names in full and in capitals."""
    try:
        mentions = find_mentions(graph, text, whole_only=True)
    except NamesNotIndexed:
        return []
    # "Who" at the beginning of a question is no name of an organisation
    found = [
        (start, mention)
        for mention in mentions
        if (start := text.find(mention.text)) > 0 and mention.certain and any(map(str.isupper, mention.text))
    ]
    entities = graph.named(mention.matches[0].entity for _, mention in found)
    return [
        _Name(start, start + len(mention.text), each, bool(_EXCEPT.search(text[:start])))
        for (start, mention), each in zip(found, entities)
    ]


def _with_named(resolved: Resolved, graph: KnowledgeGraph, names: Sequence[_Name] | None = None) -> Resolved:
    """Add the entities that the question names itself to those that it refers to."""
    if not resolved.topics:
        return resolved
    names = _named_in(resolved.question, graph) if names is None else names
    meant = (name.entity for name in names if not name.excluded)
    topics = {each.value: each for each in (*resolved.topics, *meant)}
    return Resolved(resolved.question, tuple(topics.values()), resolved.notes, resolved.by)


def _listed(named: Sequence[Named]) -> str:
    names = [each.name for each in named]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _too_many(reference: Reference, found: Sequence[Named]) -> str:
    names = ", ".join(map(display_name, found[:_SHOWN]))
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"“{reference.text}” means {names}{more}: ask about one of them by its name."


def _ambiguous(reference: Reference, found: Sequence[Named]) -> str:
    others = ", ".join(map(display_name, found[1:_SHOWN]))
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"Asked about {display_name(found[0])} only; “{reference.text}” may also mean {others}{more}."
