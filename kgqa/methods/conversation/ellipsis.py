"""Completes a question that only names what changes: and of Norway?, what about Parasite?, and when?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.conversation.references import find_references
from kgqa.methods.conversation.referents import types_in_words
from kgqa.methods.conversation.turns import Resolved, Turn
from kgqa.model import Entity, Named
from kgqa.rank.lexical import STOPWORDS
from kgqa.search.linking import find_mentions
from kgqa.search.masking import replace_spans, topic_spans
from kgqa.search.name_matching import generic_words
from kgqa.text.words import normalise

_ASKING = r"who|whom|whose|what|which|when|where|why|how(?: many| much| old| long| far)?"
_OTHER = re.compile(
    r"\s*(?:(?:and|or|but|so|then|ok(?:ay)?)\b[\s,]*)?(?P<cue>(?:what|how) about\b)?\s*"
    r"(?P<rest>.+?)\s*[?.!]*\s*",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(r"(?:of|in|for|from|by|at|on|with|to)\s+(?:the\s+)?", re.IGNORECASE)
_AND = re.compile(r"\s*(?:and|or|but)\b", re.IGNORECASE)
_QUESTION = re.compile(
    rf"(?:{_ASKING}|is|are|was|were|do|does|did|has|have|can|could|name|list|give|show|tell|find|count)\b",
    re.IGNORECASE,
)
_ONLY_ASKING = re.compile(rf"\s*(?:(?:and|but)\s+)?(?P<word>{_ASKING})\s*[?.!]*\s*", re.IGNORECASE)
_FIRST_WORD = re.compile(rf"\s*(?:in |at |on |from |to )?(?:{_ASKING})\b", re.IGNORECASE)


def complete(question: str, turns: Sequence[Turn], graph: KnowledgeGraph) -> Resolved | None:
    """Return the last question with what this one changes in it; None if this one is a question of its own.

    Raises:
        StoreError: a query failed.
    """
    last = next((turn for turn in reversed(turns) if turn.topics), None)
    if last is None:
        return None
    if only := _ONLY_ASKING.fullmatch(question):
        return _asked_otherwise(only["word"], last)
    match = _OTHER.fullmatch(question)
    if match is None or not (match["cue"] or _AND.match(question)) or find_references(question):
        return None
    rest = _PREPOSITION.sub("", match["rest"], count=1) if _PREPOSITION.match(match["rest"]) else match["rest"]
    if _QUESTION.match(rest):
        return None
    new = _only_entity(rest, graph)
    return _with_other_topic(last, new, graph) if new is not None else None


def _asked_otherwise(word: str, last: Turn) -> Resolved | None:
    if not _FIRST_WORD.match(last.question):
        return None
    text = _FIRST_WORD.sub(word.capitalize(), last.question, count=1)
    return Resolved(text, last.topics, by="rules")


def _only_entity(text: str, graph: KnowledgeGraph) -> Named | None:
    """Return the entity of which a text is the name, perhaps with an article or the word for its kind."""
    for mention in find_mentions(graph, text):
        others = set(normalise(text).split()) - set(normalise(mention.text).split())
        if others <= generic_words() | STOPWORDS:
            return graph.named([mention.matches[0].entity])[0]
    return None


def _with_other_topic(last: Turn, new: Named, graph: KnowledgeGraph) -> Resolved | None:
    """Return the last question about another entity, in place of the topic that is most like it.

    An entity that shares no type with a topic, where the graph has types, is not asked about.
    """
    topics = [each.value for each in last.topics if isinstance(each.value, Entity)]
    if not isinstance(new.value, Entity) or new.value in topics:
        return None
    types = types_in_words(graph, [new.value, *topics])
    alike = [len(set(types[new.value]) & set(types[topic])) for topic in topics]
    if types[new.value] and all(types[topic] for topic in topics) and not any(alike):
        return None
    replaced = topics[max(range(len(topics)), key=lambda at: (alike[at], at))]
    known = graph.names.names_of(topics)
    names = {each.value: [each.name, *known.get(each.value, [])] for each in last.topics if each.value in topics}
    spans = [span for span in topic_spans(last.question, names) if span.topic == replaced]
    if not spans:
        return None
    text = replace_spans(last.question, spans, {replaced: new.name})
    return Resolved(text, tuple(new if each.value == replaced else each for each in last.topics), by="rules")
