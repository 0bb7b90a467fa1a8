"""Finds the topic entities that a question names, against the index of names and aliases."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names import NameMatch
from kgqa.model import Entity
from kgqa.rank.lexical import STOPWORDS
from kgqa.words import normalise

MAX_MENTION_WORDS = 12
MAX_NAMESAKES = 500
_WORD = re.compile(r"\w[\w'’.&-]*\w|\w", re.UNICODE)
_QUESTION_WORDS = STOPWORDS | {
    "name",
    "list",
    "give",
    "tell",
    "many",
    "much",
    "one",
    "first",
    "last",
    "new",
    "time",
    "two",
}


@dataclass(frozen=True, slots=True)
class Mention:
    """A stretch of the question that names entities; `matches` are ranked, the first is the one taken."""

    text: str
    matches: tuple[NameMatch, ...]

    @property
    def ambiguous(self) -> bool:
        return len(self.matches) > 1


def find_mentions(graph: KnowledgeGraph, question: str) -> list[Mention]:
    """The stretches of a question that are names or aliases of entities, longest first, without overlap.

    Single lower-case words count only where nothing else does: `capital` may be a film. Entities that share
    a name are ranked by degree.
    """
    words = list(_WORD.finditer(question))[:400]
    spans: dict[tuple[int, int], str] = {}
    longest = min(MAX_MENTION_WORDS, max(graph.names.longest, 1))
    for start in range(len(words)):
        for end in range(start + 1, min(start + longest, len(words)) + 1):
            text = question[words[start].start() : words[end - 1].end()]
            for variant in {normalise(text), normalise(re.sub(r"['’]s$", "", text))}:
                if variant and not all(word in _QUESTION_WORDS for word in variant.split()):
                    spans[(start, end)] = spans.get((start, end), "") or variant
                    if variant != spans[(start, end)]:
                        spans[(start, end)] += "\0" + variant
    wanted = sorted({variant for joined in spans.values() for variant in joined.split("\0")})
    known = graph.names.exact(wanted)
    found: list[tuple[int, int, list[NameMatch]]] = []
    for (start, end), joined in spans.items():
        # a relation may have a name too, but nobody asks about it
        matches = [
            match
            for variant in joined.split("\0")
            for match in known.get(variant, ())
            if match.entity.iri not in graph.relations
        ]
        if matches:
            found.append((start, end, matches))
    chosen: list[tuple[int, int, list[NameMatch]]] = []
    for plain in (False, True):
        if plain and chosen:
            break
        for start, end, matches in sorted(found, key=lambda item: (item[0] - item[1], item[0])):
            is_plain = end - start == 1 and words[start][0].islower()
            if is_plain == plain and all(end <= s or start >= e for s, e, _ in chosen):
                chosen.append((start, end, matches))
    chosen.sort()
    return [
        Mention(question[words[start].start() : words[end - 1].end()], _ranked(graph, matches))
        for start, end, matches in chosen
    ]


def _ranked(graph: KnowledgeGraph, matches: list[NameMatch]) -> tuple[NameMatch, ...]:
    unique: dict[Entity, NameMatch] = {}
    for match in matches:
        unique.setdefault(match.entity, match)
    if len(unique) == 1:
        return tuple(unique.values())
    degrees = graph.degrees(list(unique)[:MAX_NAMESAKES])
    return tuple(sorted(unique.values(), key=lambda m: (-degrees.get(m.entity, 0), m.kind == "alias", m.entity.iri)))
