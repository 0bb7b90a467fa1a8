"""Linking: finds the topic entities of a question in the index of names and aliases.

An entity is a candidate if the question contains its name, a similar spelling, or a distinctive part of the name.
Candidates are ranked by four values: the share of the name that occurs in the question, the share of the question that
belongs to the name, the entity's degree and, if there is an embedding model, how well the entity's relations fit the
question.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import NameMatch
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Candidate, Entity, RelationPath
from kgqa.rank.lexical import STOPWORDS, terms
from kgqa.rank.tournaments.chooser import TextScorer
from kgqa.search.masking import drop_mentions
from kgqa.search.name_lookup import NameLookup, names_in_capitals, within_names
from kgqa.search.name_matching import NameHit, NameText
from kgqa.search.words import word_list
from kgqa.text.words import relation_words

MAX_CANDIDATES = 100
MAX_FITTED = 8
MAX_MATCHES = 20
# weights of the score, fitted to the first half of the question sets in benchmarks/linking.py and rounded
WEIGHTS = {
    "quality": 7.0, "covered": 5.0, "words": 0.6, "like a relation": -2.2, "lower case": -2.6, "within a name": -1.2,
    "functional": -8.0,
}  # fmt: skip
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
    whole = {hit.span for hit in ranked if hit.how == "exact" and hit.is_whole and hit.end - hit.start > 1}
    ranked = [hit for hit in ranked if hit.is_whole or hit.span not in whole]
    best_of_places: dict[tuple[int, int], NameHit] = {}
    for hit in ranked:
        best_of_places.setdefault(hit.span, hit)
    chosen: list[NameHit] = []
    for hit in best_of_places.values():
        overlaps = any(hit.start < other.end and other.start < hit.end for other in chosen)
        large = hit.quality >= MIN_PART or (not chosen and hit.capitals)
        if not overlaps and (hit.is_whole or large) and not (chosen and hit.doubtful):
            chosen.append(hit)
    mentions = [
        _mention(graph, lookup.written_name(hit), hit, ranked) for hit in sorted(chosen, key=lambda hit: hit.start)
    ]
    # a mention of an entity without relations counts only if no mention has an entity with relations
    return [mention for mention in mentions if not mention.dead_end] or mentions


def _mention(graph: KnowledgeGraph, text: str, chosen: NameHit, ranked: Iterable[NameHit]) -> Mention:
    """Return a mention with the entities that it may mean: if it is a whole name, only those with that name."""
    unique: dict[Entity, NameMatch] = {}
    for hit in ranked:
        if hit.span == chosen.span and hit.is_whole == chosen.is_whole:
            unique.setdefault(hit.match.entity, hit.match)
    matches = list(unique.values())[:MAX_MATCHES]
    alive = next((match for match in matches[:3] if any(_relations_of(graph, [match.entity]))), None)
    first = alive or matches[0]
    return Mention(text, (first, *(match for match in matches if match is not first)), alive is None)


def unknown_names(question: str, mentions: Iterable[str]) -> list[str]:
    """Return the names in capitals within a question that no mention covers, such as Johann Sebastian Bach."""
    text = NameText(question)
    covered = [(question.find(mention), question.find(mention) + len(mention)) for mention in mentions]
    names = [(text.extent(*run, ""), text.keys[slice(*run)]) for run in names_in_capitals(text)]
    return [
        question[start:end]
        for (start, end), keys in names
        if not set(keys).issubset(word_list("months"))
        and not any(start < right and left < end for left, right in covered)
    ]


def rank_hits(
    graph: KnowledgeGraph, lookup: NameLookup, fit: TextScorer | None = None, *, whole_only: bool = False
) -> list[NameHit]:
    """Return the hits of topics in a question with their scores, best first; see `find_mentions`.

    Looking up the degrees of the entities takes two queries per 50 entities, and comparing the relations of the best
    with the question one query.
    """
    whole = lookup.whole()
    every = (*whole, *(() if whole_only else lookup.in_part(whole)))
    # a relation may have a name in the index, but is never a topic
    hits = [hit for hit in every if hit.match.entity.iri not in graph.tables.relations]
    classes, longer = graph.tables.classes, within_names(lookup.text)
    hits = [hit for hit in hits if not (hit.match.entity.iri in classes and longer(*hit.span))]
    vocabulary = graph.tables.values.get("relation vocabulary", lambda: relation_vocabulary(graph.tables))
    names = {hit.span for hit in hits if hit.how != "part"}
    ranked = sorted((_scored(hit, lookup, names, vocabulary) for hit in hits), key=_order)[:MAX_CANDIDATES]
    degrees = graph.paths.degrees({hit.match.entity for hit in ranked})
    with_degrees = (replace(hit, score=hit.score + DEGREE * math.log1p(degrees[hit.match.entity])) for hit in ranked)
    ranked = sorted(with_degrees, key=_order)
    if fit:
        ranked[:MAX_FITTED] = sorted(_fitted(graph, lookup, ranked[:MAX_FITTED], fit), key=_order)
    return ranked


def _scored(hit: NameHit, lookup: NameLookup, names: Iterable[tuple[int, int]], vocabulary: frozenset[str]) -> NameHit:
    """Return a hit with the score of its words; `names` are the places of all names that are not parts."""
    text = lookup.text
    content = [key for key in text.keys[slice(*hit.span)] if key not in STOPWORDS]
    upper = any(text.text[word.start].isupper() or word.key[0].isdigit() for word in text.words[slice(*hit.span)])
    mixed = any(text.text[word.start].isupper() for word in text.words[1:])
    like_a_relation = bool(content) and set(terms(" ".join(content))) <= vocabulary
    functional = hit.end - hit.start == 1 and text.is_functional(*hit.span)
    within = any(start <= hit.start and hit.end <= end and (start, end) != hit.span for start, end in names)
    features = {
        "quality": hit.quality,
        "covered": hit.covered / (lookup.weight(0, len(text.words)) or 1.0),
        "words": math.log(hit.end - hit.start),
        "like a relation": like_a_relation,
        "lower case": mixed and not upper,
        "within a name": within,
        "functional": functional,
    }
    doubtful = like_a_relation or functional or (not upper and (mixed or not hit.is_whole))
    score = sum(WEIGHTS[name] * value for name, value in features.items())
    return replace(hit, score=score, capitals=mixed and upper, doubtful=doubtful)


def _fitted(graph: KnowledgeGraph, lookup: NameLookup, best: Sequence[NameHit], fit: TextScorer) -> list[NameHit]:
    """Add to the scores how well the relations of the entities fit the rest of the question."""
    fitted = []
    for hit, relations in zip(best, _relations_of(graph, [hit.match.entity for hit in best])):
        asked = drop_mentions(lookup.text.text, [lookup.text.written(*hit.span)])
        gain = FIT * max(0.0, *map(float, fit(asked, relations))) if relations else DEAD_END
        fitted.append(replace(hit, score=hit.score + gain))
    return fitted


def _relations_of(graph: KnowledgeGraph, entities: Sequence[Entity]) -> list[list[str]]:
    """Return the relations that lead on from each entity, in words."""
    expansions = graph.paths.steps([Candidate(RelationPath(entity)) for entity in entities])
    labels = graph.tables.relation_labels
    return [
        sorted({relation_words(step.relation, graph.schema, labels) for step in expansion.steps})
        for expansion in expansions
    ]


def _order(hit: NameHit) -> tuple[float, bool, str]:
    return (-hit.score, hit.match.kind == "alias", hit.match.entity.iri)


def relation_vocabulary(tables: GraphTables) -> frozenset[str]:
    """Return the stems of all words in the names of a graph's relations; noise relations are left out."""
    kept = (relation for relation in tables.relations if not tables.is_noise(relation))
    names = (relation_words(relation, tables.schema, tables.relation_labels) for relation in kept)
    return frozenset(term for name in names for term in terms(name))
