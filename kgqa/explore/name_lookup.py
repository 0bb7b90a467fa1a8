"""Lookup of a question's words in the index of names: whole names, near-identical names, and parts of names."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kgqa.explore.word_matching import (
    Word,
    is_derived,
    is_misspelling,
    same_word,
    spelling_similarity,
    windows_of,
    word_keys,
    words_of,
)
from kgqa.graph.names.interface import NameMatch, Names
from kgqa.model import Entity
from kgqa.rank.lexical import STOPWORDS
from kgqa.words import normalise

MAX_WORDS = 400
MAX_MENTION_WORDS = 12
MAX_DISTINCTIVE_WORDS = 24
MAX_HOLDING = 60
MAX_FREQUENCY = 3000
MIN_COVERAGE = 0.25
MAX_PART = 0.95
# the quality of names that are nearly whole; 1 is an exact name
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
    """An entity that words `start` to `end` of a question may mean.

    Attributes:
        start: First word.
        end: Word after the last one.
        match: The entity and its name.
        quality: Share of the name that the words are, 1 for all.
        how: `exact`, one of `LOOSE`, or `part`.
        covered: Weight of the words that belong to the name.
    """

    start: int
    end: int
    match: NameMatch
    quality: float
    how: str
    covered: float


@dataclass(frozen=True, slots=True)
class Alignment:
    """Words `start` to `end` contain a `share` of a name, by rarity; `covered` is the weight of those words."""

    start: int
    end: int
    share: float
    covered: float


class NameLookup:
    """The words of one question, and the names in the index that match them."""

    def __init__(self, question: str, names: Names) -> None:
        self.question = question
        self.names = names
        self.words: list[Word] = words_of(question)[:MAX_WORDS]
        self.keys = [word.key for word in self.words]
        self._frequencies = names.frequencies(self.keys)

    def _hit(self, start: int, end: int, match: NameMatch, quality: float, how: str) -> NameHit:
        return NameHit(start, end, match, quality, how, self.weight(start, end))

    def text(self, start: int, end: int) -> str:
        """Return words `start` to `end` as written."""
        return self.question[self.words[start].start : self.words[end - 1].end]

    def rarity(self, word: str) -> float:
        """Return how distinctive a word is: 0 for one that all names have."""
        return math.log1p(max(self.names.count, 1) / (1 + self._frequencies.get(word, 0)))

    def weight(self, start: int, end: int) -> float:
        """Return how distinctive words `start` to `end` are together; function words do not count."""
        return sum(self.rarity(key) for key in self.keys[start:end] if key not in STOPWORDS)

    # --- whole names

    def whole(self) -> list[NameHit]:
        """Return windows of words that are a name or nearly one."""
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
        for text, places in variants.items():
            for start, end, how in places:
                for named in exact.get(text, ()):
                    match = named if how == "exact" else replace(named, exact=False)
                    _keep(found, self._hit(start, end, match, LOOSE.get(how, 1.0), how))
                for item in loose.get(text, ()):
                    if self._acceptable(start, end, item.how):
                        quality = LOOSE[item.how] * LOOSE.get(how, 1.0)
                        _keep(found, self._hit(start, end, item.match, quality, item.how))
        for place, word in enumerate(self.words):
            if word.capitals and 2 <= len(word.key) <= 4:
                for match in self.names.initials_with_prefix(word.key):
                    _keep(found, self._hit(place, place + 1, match, LOOSE["initials"], "initials"))
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
        if how != "initials":
            return True
        # a common word may be somebody's initials, such as "who"
        word = self.words[start]
        return end - start == 1 and len(word.key) > 1 and word.key not in QUESTION_WORDS

    def _capital(self, start: int, end: int) -> bool:
        """Return whether function words are capitalised within a sentence, as in `It` and `What's in a Name?`."""
        return start > 0 and any(self.question[word.start].isupper() for word in self.words[start:end])

    # --- parts of names

    def in_part(self) -> list[NameHit]:
        """Return names of which the question has some distinctive words, perhaps in another form or misspelt."""
        distinctive = [key for key in dict.fromkeys(self.keys) if key not in QUESTION_WORDS and len(key) > 1]
        alike = {key: self._word_variants(key) for key in distinctive[:MAX_DISTINCTIVE_WORDS]}
        candidates: dict[tuple[Entity, str], NameMatch] = {}
        known = [word for words in alike.values() for word in words]
        frequencies = self.names.frequencies(known)
        self._frequencies |= frequencies
        for words in alike.values():
            usual = [word for word in words if frequencies.get(word, 0) <= MAX_FREQUENCY]
            for match in self.names.containing(usual, limit=MAX_HOLDING):
                candidates.setdefault((match.entity, match.name), match)
        rare = [word for word in known if 0 < frequencies.get(word, 0) <= MAX_FREQUENCY]
        for match in self.names.containing(rare, limit=4 * MAX_HOLDING):
            candidates.setdefault((match.entity, match.name), match)
        found: dict[tuple[int, int, Entity], NameHit] = {}
        for match in candidates.values():
            aligned = self.align(word_keys(match.name))
            if aligned and aligned.share >= MIN_COVERAGE:
                share = min(aligned.share, MAX_PART)
                _keep(found, NameHit(aligned.start, aligned.end, match, share, "part", aligned.covered))
        return list(found.values())

    def _word_variants(self, key: str) -> list[str]:
        """Return the words of names that a word may mean: itself, other forms, and, if no name has it, misspellings."""
        found = [key] if key in self._frequencies else []
        if len(key) < 4 or key.isdigit():
            return found
        for word in self.names.words_with_prefix(key[: 4 if len(key) > 5 else 3]):
            if word == key:
                continue
            derived = is_derived(key, word) or is_derived(word, key)
            if derived or same_word(word, key) or _same_beginning(key, word):
                found.append(word)
        if key not in self._frequencies:
            near = [word for word in self.names.words_with_prefix(key[:1], limit=20_000) if is_misspelling(word, key)]
            found += sorted(near, key=lambda word: -spelling_similarity(word, key))[:5]
        return list(dict.fromkeys(found))

    def align(self, name: Sequence[str]) -> Alignment | None:
        """Return where a name fits best, its words weighted by their rarity among all names."""
        return align(self.keys, name, self.rarity)


def align(keys: Sequence[str], name: Sequence[str], rarity: Callable[[str], float]) -> Alignment | None:
    """Return where a name fits best: from its first word to its last, with at most one foreign word between."""

    def weight(word: str) -> float:
        return 0.3 if word in STOPWORDS else rarity(word)

    total = sum(weight(part) for part in name)
    best: Alignment | None = None
    for start, key in enumerate(keys):
        if key in STOPWORDS or not any(_word_certainty(key, part) for part in name):
            continue
        left, gained, covered, foreign, since = list(name), 0.0, 0.0, 0, 0
        for place in range(start, len(keys)):
            word = keys[place]
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
                best = Alignment(start, place + 1, share, covered)
    return best


def mention_of(question: str, names: Iterable[str], *, least: float = 0.4) -> str | None:
    """Return the stretch of a question that stands for an entity with these names if none of them occurs whole.

    The stretch has at least the share `least` of one of the names, all words weighing the same; None if there is none
    or a whole name occurs. No graph is asked.
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
    place = (new.start, new.end, new.match.entity)
    if place not in found or found[place].quality < new.quality:
        found[place] = new


def _same_beginning(left: str, right: str) -> bool:
    """Return whether two words share most of their beginning: Panamanian and Panama, Hungarian and Hungary."""
    common = 0
    for one, other in zip(left, right):
        if one != other:
            break
        common += 1
    return common >= 5 and common >= 0.75 * min(len(left), len(right)) and spelling_similarity(left, right) >= 0.7


@lru_cache(maxsize=200_000)
def _word_certainty(word: str, part: str) -> float:
    """Return how certain it is that a word of a question is a word of a name."""
    if word == part:
        return 1.0
    if word[:1] != part[:1]:
        return 0.0
    if same_word(word, part):
        return 0.97
    if is_derived(word, part) or is_derived(part, word) or _same_beginning(word, part):
        return 0.8
    if is_misspelling(word, part):
        return 0.7
    return 0.0
