"""Linking: finds the topic entities of a question in the index of names and aliases.

An entity is a candidate if the question contains its name, a similar spelling, or a distinctive part of the name.
Candidates are ranked by four values: the share of the name that occurs in the question, the share of the question that
belongs to the name, the entity's degree and, if there is an embedding model, how well the entity's relations fit the
question.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names.index import NameIndex, NameMatch
from kgqa.graph.tables.graph_tables import GraphTables
from kgqa.model import Candidate, Entity, RelationPath
from kgqa.rank.lexical import STOPWORDS, terms
from kgqa.rank.tournaments.chooser import TextScorer
from kgqa.search.masking import drop_mentions
from kgqa.search.name_matching import (
    LOOSE,
    UNSPACED,
    NameHit,
    NameText,
    generic_words,
    question_words,
    spelling_similarity,
    word_certainty,
    word_keys,
)
from kgqa.search.tolerance import TOLERATED
from kgqa.search.words import word_list
from kgqa.text.words import relation_words

MAX_WORDS = 400
MAX_MENTION_WORDS = 12
MAX_DISTINCTIVE_WORDS = 24
MAX_HOLDING = 300
MAX_FREQUENCY = 3000
MIN_COVERAGE = 0.25
MAX_PART = 0.95
_PUNCTUATION = " ?.,;:!¿¡\"'“”‘’()[]…？。，；：！「」『』（）"
MAX_CANDIDATES = 100
MAX_FITTED = 8
MAX_MATCHES = 20
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
        (mentions if first else dead_ends).append(
            Mention(lookup.written(*hit.span, hit.match.name.strip(_PUNCTUATION)), tuple(matches))
        )
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
    ranked = _ranked(replace(hit, score=hit.score + 0.4 * math.log1p(degrees[hit.match.entity])) for hit in ranked)
    if fit:
        ranked[:MAX_FITTED] = _ranked(_fitted(graph, lookup, ranked[:MAX_FITTED], fit))
    return ranked


def _ranked(hits: Iterable[NameHit]) -> list[NameHit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.match.kind == "alias", hit.match.entity.iri))


def _scored(hit: NameHit, lookup: NameLookup, names: Iterable[tuple[int, int]], vocabulary: frozenset[str]) -> NameHit:
    """Return a hit with the score of its words; `names` are the places of all names that are not parts.

    All numbers in scores were fitted to the first half of the question sets in benchmarks/linking.py and rounded.
    """
    keys = lookup.keys[slice(*hit.span)]
    content = set(terms(" ".join(keys)))
    like_a_relation = bool(content) and content <= vocabulary
    functional = len(keys) == 1 and lookup.is_functional(*hit.span)
    upper = any(lookup.upper[slice(*hit.span)]) or any(key[0].isdigit() for key in keys)
    mixed = any(lookup.upper[1:])
    within = any(start <= hit.start and hit.end <= end and (start, end) != hit.span for start, end in names)
    score = (
        7.0 * hit.quality
        + 5.0 * (hit.covered or lookup.weight(*hit.span)) / (lookup.weight(0, len(lookup.keys)) or 1.0)
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
        gain = 8.0 * max(0.0, *map(float, fit(asked, relations))) if relations else -1.4
        yield replace(hit, score=hit.score + gain)


def relation_vocabulary(tables: GraphTables) -> frozenset[str]:
    """Return the stems of all words in the names of a graph's relations; noise relations are left out."""

    def read() -> frozenset[str]:
        kept = (relation for relation in tables.relations if not tables.is_noise(relation))
        names = (relation_words(relation, tables.schema, tables.relation_labels) for relation in kept)
        return frozenset(term for name in names for term in terms(name))

    vocabulary: frozenset[str] = tables.values.get("relation vocabulary", read)
    return vocabulary


class NameLookup(NameText):
    """The text of one question, whose words are looked up in an index of names."""

    def __init__(self, question: str, names: NameIndex) -> None:
        super().__init__(question, max_words=MAX_WORDS)
        self.names = names.for_text(question)
        self._frequencies = self.names.frequencies(self.keys)
        self._count = max(self.names.count, 1)

    def rarity(self, word: str) -> float:
        """Return how rare a word is among all names: 0 for a word that every name contains."""
        return math.log1p(self._count / (1 + self._frequencies.get(word, 0)))

    def weight(self, start: int, end: int) -> float:
        """Return the sum of the rarities of the words from `start` to before `end`, without function words."""
        return sum(self.rarity(key) for key in self.keys[start:end] if key not in STOPWORDS)

    # --- whole names

    def whole(self) -> Iterator[NameHit]:
        """Return the entities with a name that is equal or similar to consecutive words of the question.

        If words are spelled exactly like some names, other names that equal them only in another case, or without
        accents and punctuation, are left out: C++ is neither C nor C#.
        """
        variants = self.variants(filter(self._may_be_a_name, self.windows(MAX_MENTION_WORDS)))
        exact, loose = self.names.exact(sorted(variants)), self.names.loose(sorted(variants))
        for text, places in variants.items():
            for start, end, how in places:
                for match in self._spelled(start, end, exact.get(text, ())):
                    yield NameHit(start, end, replace(match, exact=how == "exact"), LOOSE[how], how)
                # a common word such as "who" may happen to be the initials of a name
                common = end - start > 1 or len(self.keys[start]) < 2 or self.is_functional(start, end)
                for item in loose.get(text, ()):
                    if item.how != "initials" or not common:
                        yield NameHit(start, end, item.match, LOOSE[item.how] * LOOSE[how], item.how)
        for index, key in enumerate(self.keys):
            if 2 <= len(key) <= 4 and self.written(index, index + 1).isupper():
                for match in self.names.initials_with_prefix(key):
                    yield NameHit(index, index + 1, match, LOOSE["initials"], "initials")

    def _may_be_a_name(self, place: tuple[int, int]) -> bool:
        """Return whether words may be a name: those that name nothing must have a capital within the sentence."""
        start, end = place
        is_character = end - start == 1 < len(self.words) and UNSPACED.match(self.keys[start])
        has_capital = start > 0 and any(map(str.isupper, self.written(start, end)))
        return not is_character and (has_capital or not self.is_functional(start, end))

    def _spelled(self, start: int, end: int, matches: Sequence[NameMatch]) -> Sequence[NameMatch]:
        """Return the matches that are spelled as in the question, with most signs; all if there are none."""
        # in lower case, a text equals names with capitals, too
        for case in (str.casefold,) if self.written(start, end).islower() else (str, str.casefold):
            signs = [
                max(
                    (
                        len(name)
                        for name in (spelling.strip(_PUNCTUATION) for spelling in match.spellings)
                        if case(self.written(start, end, name)) == case(name)
                    ),
                    default=0,
                )
                for match in matches
            ]
            if any(signs):
                return [match for match, count in zip(matches, signs) if count == max(signs)]
        return matches

    # --- parts of names

    def in_part(self, whole: Iterable[NameHit]) -> Iterator[NameHit]:
        """Return the entities whose names have distinctive words in the question, even if inflected or misspelled.

        Of a name in capitals that is not in the graph, such as Johann Sebastian Bach, half of the words or the last one
        must be those of a name; words in the hits `whole` belong to other names.
        """
        others = {index for hit in whole for index in range(*hit.span)}
        names = (set(range(*run)) - others for run in self.names_in_capitals())
        capitals = [name for name in names if len(name) > 1]
        spaced = (key for key in dict.fromkeys(self.keys) if len(key) > 1 and not UNSPACED.match(key))
        distinctive = [key for key in spaced if key not in question_words()][:MAX_DISTINCTIVE_WORDS]
        similar = self.names.similar_words([key for key in distinctive if len(key) >= 4 and not key.isdigit()])
        alike = [word for key in distinctive for word in self._alike(key, similar.get(key, {}))]
        self._frequencies |= self.names.frequencies(alike)
        rare = {word for word in alike if 0 < self._frequencies.get(word, 0) <= MAX_FREQUENCY}
        for match in self.names.containing(sorted(rare), limit=MAX_HOLDING):
            hit = self.align(match, self.rarity)
            if hit and hit.quality >= MIN_COVERAGE and self._may_mean(hit, capitals):
                yield replace(hit, quality=min(hit.quality, MAX_PART))

    def _may_mean(self, hit: NameHit, capitals: Iterable[set[int]]) -> bool:
        parts = word_keys(hit.match.name)
        for run in capitals:
            words = [self.keys[index] for index in run if self.keys[index] not in generic_words()]
            known = sum(any(word == part[:1] or word_certainty(word, part) for part in parts) for word in words)
            # any title may stand before a name: Nobel Laureate Einstein
            is_last = any(word_certainty(self.keys[max(run)], part) > LOOSE["derived"] for part in parts)
            if run.intersection(range(*hit.span)) and 2 * known < len(words) and not is_last:
                return False
        return True

    def _alike(self, key: str, similar: Mapping[str, int]) -> list[str]:
        """Return the words of names that a word may mean: the word itself, other forms, or similar spellings.

        Args:
            similar: words of names that may be similar, each with the number of names that contain it.
        """
        likely = {word: word_certainty(key, word) for word in similar}
        near = [word for word in likely if key not in self._frequencies and 0 < likely[word] < LOOSE["derived"]]
        near.sort(key=lambda word: (-spelling_similarity(word, key), -similar[word], word))
        return [key, *(word for word in likely if likely[word] >= LOOSE["derived"]), *near[:5]]
