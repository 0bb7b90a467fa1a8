"""Linking: finds the topic entities of a question in the index of names and aliases.

An entity is a candidate if the question contains its name, a similar spelling, or a distinctive part of the name.
Candidates are ranked by four values: the share of the name that occurs in the question, the share of the question that
belongs to the name, the entity's degree and, if there is an embedding model, how well the entity's relations fit the
question.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import NameMatch
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Candidate, Entity, RelationPath
from kgqa.rank.lexical import terms
from kgqa.rank.tournaments.chooser import TextScorer
from kgqa.search.masking import drop_mentions
from kgqa.search.name_lookup import NameLookup
from kgqa.search.name_matching import NameHit, NameText
from kgqa.search.tolerance import TOLERATED
from kgqa.search.words import word_list
from kgqa.text.words import relation_words

MAX_CANDIDATES = 100
MAX_FITTED = 8
MAX_MATCHES = 20
# with the numbers in `_scored`, fitted to the first half of the question sets in benchmarks/linking.py and rounded
DEGREE = 0.4
FIT = 8.0
DEAD_END = -1.4
MIN_PART = 0.4


@dataclass(frozen=True, slots=True)
class Mention:
    """A part of the question that names an entity.

    Attributes:
        text: The part of the question.
        matches: The entities that the text may mean, most likely first; the first entity is used as topic.
    """

    text: str
    matches: tuple[NameMatch, ...]

    @property
    def certain(self) -> bool:
        """Whether the text is the exact name of only one entity."""
        return len(self.matches) == 1 and self.matches[0].exact


def find_mentions(
    graph: KnowledgeGraph, question: str, *, fit: TextScorer | None = None, whole_only: bool = False
) -> list[Mention]:
    """Return the mentions of topics in a question, in the order of the question; mentions do not overlap.

    The first mention is the best match among whole names, large parts of names, and parts of names in capitals.
    Further mentions must be whole names, or large parts of names in capitals. They must not consist only of words from
    names of relations (a film may be called "Capital"), or of words that name nothing by themselves (now, it). They
    must not be in lower case if the question has capitals elsewhere.

    Args:
        graph: The graph.
        question: The question.
        fit: Maps the question without the topic's name, and the relations of an entity of this name in words, to their
            similarities, at most 1.
        whole_only: Whether only whole names count; this takes less than half of the time.
    """
    lookup = NameLookup(question, graph.names)
    ranked = rank_hits(graph, lookup, fit, whole_only=whole_only)
    # what has several words and is a whole name is not a part of a longer one
    whole = {hit.span for hit in ranked if hit.how == "exact" and hit.end - hit.start > 1}
    ranked = [hit for hit in ranked if hit.is_whole or hit.span not in whole]
    chosen: list[NameHit] = []
    for hit in _ranked({hit.span: hit for hit in reversed(ranked)}.values()):
        overlaps = any(hit.start < other.end and other.start < hit.end for other in chosen)
        is_large = hit.quality >= MIN_PART or (not chosen and hit.capitals)
        if not overlaps and (hit.is_whole or is_large) and not (chosen and hit.doubtful):
            chosen.append(hit)
    mentions: list[Mention] = []
    dead_ends: list[Mention] = []
    for hit in sorted(chosen, key=lambda hit: hit.start):
        matches = [other.match for other in ranked if other.span == hit.span and other.is_whole == hit.is_whole]
        first = next((match for match in matches[:3] if has_relations(graph, match.entity)), None)
        matches = list(dict.fromkeys((first or matches[0], *matches[:MAX_MATCHES])))
        (mentions if first else dead_ends).append(Mention(lookup.written_name(hit), tuple(matches)))
    # a mention of an entity without relations counts only if no mention has an entity with relations
    return mentions or dead_ends


def has_relations(graph: KnowledgeGraph, node: Entity) -> bool:
    """Return whether paths can start at a node; True if that takes too long to find out."""
    (found,) = graph.paths.steps([Candidate(RelationPath(node))], tolerated=TOLERATED)
    return isinstance(found, Exception) or bool(found.steps)


def unknown_names(question: str, mentions: Iterable[str]) -> list[str]:
    """Return the names in capitals within a question that no mention covers, such as Johann Sebastian Bach."""
    text = NameText(question)
    covered = [(question.find(mention), question.find(mention) + len(mention)) for mention in mentions]
    runs = (run for run in text.names_in_capitals() if not set(text.keys[slice(*run)]).issubset(word_list("months")))
    return [
        question[start:end]
        for start, end in (text.extent(*run, "") for run in runs)
        if not any(start < right and left < end for left, right in covered)
    ]


def rank_hits(
    graph: KnowledgeGraph, lookup: NameLookup, fit: TextScorer | None = None, *, whole_only: bool = False
) -> list[NameHit]:
    """Return the hits of topics in a question with their scores, best first; see `find_mentions`.

    Looking up the degrees of the entities takes two queries per 50 entities, and comparing the relations of the best
    with the question one query.
    """
    whole = list(lookup.whole())
    relations, classes = graph.tables.relations, graph.tables.classes
    hits = [
        hit
        for hit in (*whole, *(() if whole_only else lookup.in_part(whole)))
        # a relation may have a name in the index, but is never a topic
        if not (hit.match.entity.iri in relations or (hit.match.entity.iri in classes and lookup.is_part(*hit.span)))
    ]
    vocabulary = relation_vocabulary(graph.tables)
    names = {hit.span for hit in hits if hit.how != "part"}
    ranked = _ranked(_scored(hit, lookup, names, vocabulary) for hit in hits)
    best = {(hit.span, hit.match.entity, hit.is_whole): hit for hit in reversed(ranked)}
    ranked = _ranked(best.values())[:MAX_CANDIDATES]
    degrees = graph.paths.degrees({hit.match.entity for hit in ranked})
    ranked = _ranked(replace(hit, score=hit.score + DEGREE * math.log1p(degrees[hit.match.entity])) for hit in ranked)
    if fit:
        ranked[:MAX_FITTED] = _ranked(_fitted(graph, lookup, ranked[:MAX_FITTED], fit))
    return ranked


def _ranked(hits: Iterable[NameHit]) -> list[NameHit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.match.kind == "alias", hit.match.entity.iri))


def _scored(hit: NameHit, lookup: NameLookup, names: Iterable[tuple[int, int]], vocabulary: frozenset[str]) -> NameHit:
    """Return a hit with the score of its words; `names` are the places of all names that are not parts."""
    keys = lookup.keys[slice(*hit.span)]
    content = set(terms(" ".join(keys)))
    like_a_relation = bool(content) and content <= vocabulary
    functional = len(keys) == 1 and lookup.is_functional(*hit.span)
    upper = any(lookup.upper[slice(*hit.span)]) or any(key[0].isdigit() for key in keys)
    mixed = any(lookup.upper[1:])
    within = any(start <= hit.start and hit.end <= end and (start, end) != hit.span for start, end in names)
    score = (
        7.0 * hit.quality
        + 5.0 * hit.covered / (lookup.weight(0, len(lookup.keys)) or 1.0)
        + 0.6 * math.log(len(keys))
        - 2.2 * like_a_relation
        - 2.6 * (mixed and not upper)
        - 1.2 * within
        - 8.0 * functional
    )
    doubtful = like_a_relation or functional or (not upper and (mixed or not hit.is_whole))
    return replace(hit, score=score, capitals=mixed and upper, doubtful=doubtful)


def _fitted(graph: KnowledgeGraph, lookup: NameLookup, best: Sequence[NameHit], fit: TextScorer) -> Iterator[NameHit]:
    """Add to the scores how well the relations of the entities fit the rest of the question."""
    expansions = graph.paths.steps([Candidate(RelationPath(hit.match.entity)) for hit in best])
    labels = graph.tables.relation_labels
    for hit, expansion in zip(best, expansions):
        relations = sorted({relation_words(step.relation, graph.schema, labels) for step in expansion.steps})
        asked = drop_mentions(lookup.text, [lookup.written(*hit.span)])
        gain = FIT * max(0.0, *map(float, fit(asked, relations))) if relations else DEAD_END
        yield replace(hit, score=hit.score + gain)


def relation_vocabulary(tables: GraphTables) -> frozenset[str]:
    """Return the stems of all words in the names of a graph's relations; noise relations are left out."""

    def read() -> frozenset[str]:
        kept = (relation for relation in tables.relations if not tables.is_noise(relation))
        names = (relation_words(relation, tables.schema, tables.relation_labels) for relation in kept)
        return frozenset(term for name in names for term in terms(name))

    vocabulary: frozenset[str] = tables.values.get("relation vocabulary", read)
    return vocabulary
