"""Linking: finds the topic entities of a question in the index of names and aliases.

An entity is a candidate if the question contains its name, a similar spelling, or a distinctive part of the name.
Candidates are ranked by four values: the share of the name that occurs in the question, the share of the question that
belongs to the name, the entity's degree and, if there is an embedding model, how well the entity's relations fit the
question.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import NameMatch
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Candidate, Entity, RelationPath
from kgqa.rank.lexical import STOPWORDS, terms
from kgqa.rank.tournaments.chooser import TextScorer
from kgqa.search.masking import drop_mentions
from kgqa.search.name_lookup import NameHit, NameLookup, names_in_capitals
from kgqa.search.word_matching import words_of
from kgqa.search.words import word_list
from kgqa.text.words import relation_words

RelationFit = TextScorer
"""Maps a question without the topic's name and relations of an entity, in words, to their similarities, at most 1."""

MAX_CANDIDATES = 100
MAX_FITTED = 8
MAX_MATCHES = 20
# weights of the score, fitted to the first half of the question sets in benchmarks/linking.py and rounded
QUALITY = 7.0
COVERED = 5.0
WORDS = 0.6
DEGREE = 0.4
LIKE_A_RELATION = -2.2
LOWER_CASE = -2.6
WITHIN_A_NAME = -1.2
FUNCTIONAL = -8.0
FIT = 8.0
DEAD_END = -1.4
MIN_PART = 0.4


@dataclass(frozen=True, slots=True)
class Mention:
    """A part of the question that names an entity.

    Attributes:
        text: The part of the question.
        matches: The entities that the text may mean, most likely first; the first entity is used as topic.
        dead_end: Whether no relation leads on from these entities.
    """

    text: str
    matches: tuple[NameMatch, ...]
    dead_end: bool = False

    @property
    def certain(self) -> bool:
        """Whether the text is the exact name of only one entity."""
        return len(self.matches) == 1 and self.matches[0].exact


def find_mentions(
    graph: KnowledgeGraph, question: str, *, fit: RelationFit | None = None, whole_only: bool = False
) -> list[Mention]:
    """Return the mentions of topics in a question, in the order of the question; mentions do not overlap.

    The first mention is the best match among whole names, large parts of names, and parts of names in capitals.
    Further mentions must be whole names, or large parts of names in capitals. They must not consist only of words from
    names of relations (a film may be called "Capital"), or of words that name nothing by themselves (now, it). They
    must not be in lower case if the question has capitals elsewhere.

    Args:
        graph: The graph.
        question: The question.
        fit: Compares the question with the relations of entities of the same name.
        whole_only: Whether only whole names count; this takes less than half of the time.
    """
    ranked = LinkRanking(graph, question, fit, whole_only=whole_only)
    chosen: list[_ScoredHit] = []
    for best in ranked.best_of_spans():
        large = best.found.quality >= MIN_PART
        good_part = large and best.capitals if chosen else large or best.capitals
        if not (best.whole or good_part) or (chosen and best.doubtful):
            continue
        if all(best.found.end <= other.found.start or best.found.start >= other.found.end for other in chosen):
            chosen.append(best)
    mentions = []
    for item in sorted(chosen, key=lambda item: item.found.start):
        matches, alive = ranked.matches_of(item)
        mentions.append(Mention(ranked.lookup.written_name(item.found), matches, not alive))
    # a mention of an entity without relations counts only if no mention has an entity with relations
    return [mention for mention in mentions if not mention.dead_end] or mentions


def unknown_names(question: str, mentions: Iterable[str]) -> list[str]:
    """Return the names in capitals within a question that no mention covers, such as Johann Sebastian Bach."""
    words = words_of(question)
    spans = [(question.find(text), question.find(text) + len(text)) for text in mentions]
    return [
        question[words[start].start : words[end - 1].end]
        for start, end in names_in_capitals(question, words)
        if not {word.key for word in words[start:end]}.issubset(word_list("months"))
        and not any(words[start].start < right and left < words[end - 1].end for left, right in spans)
    ]


@dataclass(frozen=True, slots=True)
class _ScoredHit:
    """A hit with its score; `doubtful` words may be a topic only if no other words are."""

    found: NameHit
    score: float
    capitals: bool
    doubtful: bool

    @property
    def whole(self) -> bool:
        return self.found.how not in ("part", "initials")


class LinkRanking:
    """The candidates of one question, best first. Looking up their degrees takes two queries per 50 candidates."""

    def __init__(
        self, graph: KnowledgeGraph, question: str, fit: RelationFit | None, *, whole_only: bool = False
    ) -> None:
        self.graph = graph
        self.question = question
        self.lookup = NameLookup(question, graph.names)
        whole = self.lookup.whole()
        # a relation may have a name in the index, but is never a topic
        found = [
            item
            for item in (*whole, *(() if whole_only else self.lookup.in_part(whole)))
            if item.match.entity.iri not in graph.tables.relations
        ]
        self._total = self.lookup.weight(0, len(self.lookup.words)) or 1.0
        self._mixed = any(question[word.start].isupper() for word in self.lookup.words[1:])
        self._whole = {(item.start, item.end) for item in found if item.how != "part"}
        self._relations: dict[Entity, tuple[str, ...]] = {}
        self._vocabulary = _relation_vocabulary(graph)
        items = sorted((self._scored(item) for item in found), key=_order)[:MAX_CANDIDATES]
        degrees = graph.paths.degrees({item.found.match.entity for item in items})
        self.items = sorted(
            (replace(item, score=item.score + DEGREE * math.log1p(degrees[item.found.match.entity])) for item in items),
            key=_order,
        )
        if fit:
            self._fit(fit)

    @property
    def entities(self) -> list[Entity]:
        """The most likely topics of the question, best first."""
        return list(dict.fromkeys(item.found.match.entity for item in self.items))

    def _scored(self, found: NameHit) -> _ScoredHit:
        words = self.lookup.words[found.start : found.end]
        content = [word.key for word in words if word.key not in STOPWORDS]
        initial = [self.question[word.start] for word in words]
        upper = any(char.isupper() or char.isdigit() for char in initial)
        like_a_relation = bool(content) and set(terms(" ".join(content))) <= self._vocabulary
        lower_case = self._mixed and not upper
        functional = len(words) == 1 and self.lookup.is_functional(found.start, found.end)
        within = any(
            start <= found.start and found.end <= end and found.end - found.start < end - start
            for start, end in self._whole
        )
        score = (
            QUALITY * found.quality
            + COVERED * found.covered / self._total
            + WORDS * math.log(found.end - found.start)
            + LIKE_A_RELATION * like_a_relation
            + LOWER_CASE * lower_case
            + WITHIN_A_NAME * within
            + FUNCTIONAL * functional
        )
        return _ScoredHit(found, score, self._mixed and upper, like_a_relation or lower_case or functional)

    def _fit(self, fit: RelationFit) -> None:
        """Add the fit of relations and question to the scores of the best candidates, with one query per candidate."""
        best = self.items[:MAX_FITTED]
        self._look_up(item.found.match.entity for item in best)
        texts: dict[tuple[int, int], list[str]] = {}
        for item in best:
            texts.setdefault((item.found.start, item.found.end), []).extend(self.relations_of(item.found.match.entity))
        # one call per span, because all entities of a span share the same question without the span
        likely = {}
        for span, words in texts.items():
            distinct = list(dict.fromkeys(words))
            asked = drop_mentions(self.question, [self.lookup.text(*span)])
            likely[span] = dict(zip(distinct, fit(asked, distinct), strict=True)) if distinct else {}
        fitted = []
        for item in best:
            relations = self.relations_of(item.found.match.entity)
            known = likely[item.found.start, item.found.end]
            nearest = max((float(known[words]) for words in relations), default=0.0)
            fitted.append(replace(item, score=item.score + (FIT * max(nearest, 0.0) if relations else DEAD_END)))
        self.items = [*sorted(fitted, key=_order), *self.items[MAX_FITTED:]]

    def relations_of(self, entity: Entity) -> tuple[str, ...]:
        """Return the relations that lead on from an entity, in words; empty if no relation leads on."""
        self._look_up([entity])
        return self._relations[entity]

    def _look_up(self, entities: Iterable[Entity]) -> None:
        """Look up the relations of entities."""
        new = [entity for entity in dict.fromkeys(entities) if entity not in self._relations]
        expansions = self.graph.paths.steps([Candidate(RelationPath(entity)) for entity in new])
        labels = self.graph.tables.relation_labels if new else {}
        for entity, expansion in zip(new, expansions):
            words = {relation_words(step.relation, self.graph.schema, labels) for step in expansion.steps}
            self._relations[entity] = tuple(sorted(words))

    def best_of_spans(self) -> Iterable[_ScoredHit]:
        """Return the best candidate of every span of the question, best first."""
        best: dict[tuple[int, int], _ScoredHit] = {}
        for item in self.items:
            best.setdefault((item.found.start, item.found.end), item)
        return best.values()

    def matches_of(self, chosen: _ScoredHit) -> tuple[tuple[NameMatch, ...], bool]:
        """Return the entities that a span may mean, best first, and whether the first entity has relations to follow.

        If the span is the whole name of the chosen entity, only entities with that whole name are returned.
        """
        span = (chosen.found.start, chosen.found.end)
        unique: dict[Entity, NameMatch] = {}
        for item in self.items:
            if (item.found.start, item.found.end) == span and item.whole == chosen.whole:
                unique.setdefault(item.found.match.entity, item.found.match)
        matches = list(unique.values())[:MAX_MATCHES]
        for index, match in enumerate(matches[:3]):
            if self.relations_of(match.entity):
                return (match, *matches[:index], *matches[index + 1 :]), True
        return tuple(matches), False


def _order(item: _ScoredHit) -> tuple[float, bool, str]:
    return (-item.score, item.found.match.kind == "alias", item.found.match.entity.iri)


_VOCABULARIES: weakref.WeakKeyDictionary[GraphTables, tuple[dict[str, int], frozenset[str]]] = (
    weakref.WeakKeyDictionary()
)


def _relation_vocabulary(graph: KnowledgeGraph) -> frozenset[str]:
    """Return the stems of all words in the names of a graph's relations; noise relations are left out."""
    relations = graph.tables.relations
    known = _VOCABULARIES.get(graph.tables)
    if known is None or known[0] is not relations:
        kept = (relation for relation in relations if not graph.tables.is_noise(relation))
        names = (relation_words(relation, graph.schema, graph.tables.relation_labels) for relation in kept)
        known = (relations, frozenset(term for name in names for term in terms(name)))
        _VOCABULARIES[graph.tables] = known
    return known[1]
