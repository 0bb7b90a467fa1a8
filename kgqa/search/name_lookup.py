"""Lookup of a question's words in the index of names: whole names, near-identical names, and parts of names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import takewhile

from kgqa.graph.names.index import NameIndex, NameMatch
from kgqa.model import Entity
from kgqa.rank.lexical import STOPWORDS
from kgqa.search.word_matching import (
    Word,
    is_derived,
    is_misspelling,
    same_word,
    spelling_similarity,
    windows_of,
    word_keys,
    words_of,
)
from kgqa.text.words import normalise

MAX_WORDS = 400
MAX_MENTION_WORDS = 12
MAX_DISTINCTIVE_WORDS = 24
MAX_HOLDING = 60
MAX_FREQUENCY = 3000
MIN_COVERAGE = 0.25
MAX_PART = 0.95
# quality of a match for each kind of difference between text and name; an exact match has quality 1
LOOSE = {"article": 0.97, "plural": 0.93, "bracket": 0.92, "comma": 0.88, "squeezed": 0.9, "initials": 0.6}
QUESTION_WORDS = STOPWORDS | frozenset(
    [
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
        "all",
        "also",
        "any",
        "kind",
        "type",
        "some",
        "most",
        "no",
        "not",
        "yes",
        "if",
        "so",
        "can",
        "could",
        "should",
        "may",
        "might",
        "must",
        "than",
        "then",
        "very",
        "more",
    ]
)


@dataclass(frozen=True, slots=True)
class NameHit:
    """An entity that some words of a question may mean.

    Attributes:
        start: Index of the first word.
        end: Index after the last word.
        match: The entity and its name.
        quality: How well the words match the name, from 0 to 1; 1 for an exact match.
        how: Kind of the match: `exact`, a key of `LOOSE`, or `part`.
        covered: Sum of the rarities of the words that belong to the name.
    """

    start: int
    end: int
    match: NameMatch
    quality: float
    how: str
    covered: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """The best match of a name in a text.

    Attributes:
        start: Index of the first word in the text.
        end: Index after the last word.
        share: Share of the name found in the text, from 0 to 1; rare words of the name count more.
        covered: Sum of the rarities of those words of the text that belong to the name.
    """

    start: int
    end: int
    share: float
    covered: float


class NameLookup:
    """Lookup of the names in the index that match words of one question."""

    def __init__(self, question: str, names: NameIndex) -> None:
        self.question = question
        self.names = names.for_text(question)
        self.words: list[Word] = words_of(question)[:MAX_WORDS]
        self.keys = [word.key for word in self.words]
        self._frequencies = self.names.frequencies(self.keys)

    def _hit(self, start: int, end: int, match: NameMatch, quality: float, how: str) -> NameHit:
        return NameHit(start, end, match, quality, how, self.weight(start, end))

    def text(self, start: int, end: int) -> str:
        """Return the words from `start` to before `end` as written in the question."""
        return self.question[self.words[start].start : self.words[end - 1].end]

    def rarity(self, word: str) -> float:
        """Return how rare a word is among all names: 0 for a word that every name contains."""
        return math.log1p(max(self.names.count, 1) / (1 + self._frequencies.get(word, 0)))

    def weight(self, start: int, end: int) -> float:
        """Return the sum of the rarities of the words from `start` to before `end`, without function words."""
        return sum(self.rarity(key) for key in self.keys[start:end] if key not in STOPWORDS)

    # --- whole names

    def whole(self) -> list[NameHit]:
        """Return the entities with a name that is equal or similar to consecutive words of the question."""
        longest = min(MAX_MENTION_WORDS, max(self.names.longest, 1))
        variants: dict[str, list[tuple[int, int, str]]] = {}
        for start in range(len(self.words)):
            for end in range(start + 1, min(start + longest, len(self.words)) + 1):
                if all(key in QUESTION_WORDS for key in self.keys[start:end]) and not self._capital(start, end):
                    continue
                for text, how in self._variants(start, end):
                    variants.setdefault(text, []).append((start, end, how))
        found: dict[tuple[int, int, Entity], NameHit] = {}
        exact = self.names.exact(sorted(variants))
        loose = self.names.loose(sorted(variants))
        for text, windows in variants.items():
            for start, end, how in windows:
                for named in exact.get(text, ()):
                    match = named if how == "exact" else replace(named, exact=False)
                    _keep(found, self._hit(start, end, match, LOOSE.get(how, 1.0), how))
                for item in loose.get(text, ()):
                    if self._acceptable(start, end, item.how):
                        quality = LOOSE[item.how] * LOOSE.get(how, 1.0)
                        _keep(found, self._hit(start, end, item.match, quality, item.how))
        for index, word in enumerate(self.words):
            if word.capitals and 2 <= len(word.key) <= 4:
                for match in self.names.initials_with_prefix(word.key):
                    _keep(found, self._hit(index, index + 1, match, LOOSE["initials"], "initials"))
        return list(found.values())

    def _variants(self, start: int, end: int) -> Iterable[tuple[str, str]]:
        written = self.question[self.words[start].start : self.words[end - 1].tail]
        bare = normalise(self.text(start, end))
        yield bare, "exact"
        yield normalise(written), "exact"
        if len(bare) > 3 and bare.endswith("s") and not bare.endswith("ss"):
            yield bare[:-1], "plural"
        if end - start > 1:
            yield bare.replace(" ", ""), "squeezed"

    def _acceptable(self, start: int, end: int, how: str) -> bool:
        # a common word such as "who" may happen to be the initials of a name
        key = self.keys[start]
        return how != "initials" or (end - start == 1 and len(key) > 1 and key not in QUESTION_WORDS)

    def _capital(self, start: int, end: int) -> bool:
        """Return whether one of the words has a capital letter within the sentence, such as the title `It`."""
        return start > 0 and any(self.question[word.start].isupper() for word in self.words[start:end])

    # --- parts of names

    def in_part(self) -> list[NameHit]:
        """Return the entities whose names have distinctive words in the question, even if inflected or misspelled."""
        distinctive = [key for key in dict.fromkeys(self.keys) if key not in QUESTION_WORDS and len(key) > 1]
        distinctive = distinctive[:MAX_DISTINCTIVE_WORDS]
        similar = self.names.similar_words([key for key in distinctive if len(key) >= 4 and not key.isdigit()])
        alike = {key: self._word_variants(key, similar.get(key, {})) for key in distinctive}
        known = [word for words in alike.values() for word in words]
        frequencies = self.names.frequencies(known)
        self._frequencies |= frequencies
        usual = [[word for word in words if frequencies.get(word, 0) <= MAX_FREQUENCY] for words in alike.values()]
        rare = [word for word in known if 0 < frequencies.get(word, 0) <= MAX_FREQUENCY]
        candidates: dict[tuple[Entity, str], NameMatch] = {}
        for words, limit in [*((words, MAX_HOLDING) for words in usual), (rare, 4 * MAX_HOLDING)]:
            for match in self.names.containing(words, limit=limit):
                candidates.setdefault((match.entity, match.name), match)
        found: dict[tuple[int, int, Entity], NameHit] = {}
        for match in candidates.values():
            aligned = align(self.keys, word_keys(match.name), self.rarity)
            if aligned and aligned.share >= MIN_COVERAGE:
                share = min(aligned.share, MAX_PART)
                _keep(found, NameHit(aligned.start, aligned.end, match, share, "part", aligned.covered))
        return list(found.values())

    def _word_variants(self, key: str, similar: Mapping[str, int]) -> list[str]:
        """Return the words of names that a word may mean: the word itself, other forms, or similar spellings.

        Args:
            similar: words of names that may be similar, each with the number of names that contain it.
        """
        found = [key] if key in self._frequencies else []
        found += [each for each in similar if each != key and each[:3] == key[:3] and _is_other_form(key, each)]
        if key not in self._frequencies:
            near = [word for word in similar if is_misspelling(word, key)]
            found += sorted(near, key=lambda word: (-spelling_similarity(word, key), -similar[word], word))[:5]
        return list(dict.fromkeys(found))


def align(keys: Sequence[str], name: Sequence[str], rarity: Callable[[str], float]) -> Alignment | None:
    """Return the best match of a name in a text; at most one word in the match may not belong to the name."""

    def weight(word: str) -> float:
        return 0.3 if word in STOPWORDS else rarity(word)

    total = sum(weight(part) for part in name)
    best: Alignment | None = None
    for start, key in enumerate(keys):
        if key in STOPWORDS or not any(_word_certainty(key, part) for part in name):
            continue
        left, gained, covered, foreign, since = list(name), 0.0, 0.0, 0, 0
        for index in range(start, len(keys)):
            word = keys[index]
            part = max(left, key=lambda part: _word_certainty(word, part), default="")
            likely = _word_certainty(word, part)
            if not likely:
                since += word not in STOPWORDS
                if not left or since + foreign > 1:
                    break
                continue
            left.remove(part)
            foreign, since = foreign + since, 0
            gained += likely * weight(part)
            covered += likely * rarity(word) * (word not in STOPWORDS)
            share = gained / total * 0.9**foreign
            if word not in STOPWORDS and (best is None or share > best.share):
                best = Alignment(start, index + 1, share, covered)
    return best


def mention_of(question: str, names: Iterable[str], *, least: float = 0.4) -> str | None:
    """Return the part of a question that names an entity incompletely, for example only by its last name.

    The part contains at least the fraction `least` of the words of one name. Return None if there is no such part, or
    if one of the names occurs completely.
    """
    words = words_of(question)[:MAX_WORDS]
    keys = [word.key for word in words]
    known = {word_keys(name) for name in names} - {()}
    if any(windows_of(keys, name, same_word) for name in known):
        return None
    aligned = [found for name in known if (found := align(keys, name, lambda word: 1.0)) and found.share >= least]
    if not aligned:
        return None
    best = max(aligned, key=lambda found: (found.share, -found.start, found.end))
    return question[words[best.start].start : words[best.end - 1].end]


def _keep(found: dict[tuple[int, int, Entity], NameHit], new: NameHit) -> None:
    key = (new.start, new.end, new.match.entity)
    if key not in found or found[key].quality < new.quality:
        found[key] = new


def _is_other_form(left: str, right: str) -> bool:
    return is_derived(left, right) or is_derived(right, left) or same_word(left, right) or _same_beginning(left, right)


def _same_beginning(left: str, right: str) -> bool:
    """Return whether two words have a common beginning with most of their letters, such as Hungarian and Hungary."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right)))
    return common >= 5 and common >= 0.75 * min(len(left), len(right)) and spelling_similarity(left, right) >= 0.7


@lru_cache(maxsize=200_000)
def _word_certainty(word: str, part: str) -> float:
    """Return how likely a word of a question means a word of a name, from 0 to 1."""
    if word[:1] != part[:1]:
        return 0.0
    if same_word(word, part):
        return 1.0 if word == part else 0.97
    if _is_other_form(word, part):
        return 0.8
    return 0.7 if is_misspelling(word, part) else 0.0
