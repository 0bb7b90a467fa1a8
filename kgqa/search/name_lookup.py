"""Lookup of a question's words in the index of names: whole names, near-identical names, and parts of names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import takewhile

from kgqa.graph.names.index import NameIndex, NameMatch
from kgqa.model import Entity
from kgqa.rank.lexical import STOPWORDS
from kgqa.search.masking import generic_words
from kgqa.search.word_matching import (
    UNSPACED,
    Word,
    is_derived,
    is_misspelling,
    same_word,
    spelling_similarity,
    windows_of,
    word_keys,
    words_of,
)
from kgqa.search.words import word_list
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
_JOINING = re.compile(r"[\s.&'’\u2010-\u2013-]*")
_PUNCTUATION = "?.,;:!¿¡\"'“”‘’()[]…？。，；：！「」『』（）"


@cache
def question_words() -> frozenset[str]:
    """Return the words that name nothing by themselves in a sentence, even if something is called Now or It."""
    return STOPWORDS | frozenset(word_list("question_words", "names"))


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
        self._unspaced = [bool(UNSPACED.match(question[word.start])) for word in self.words]
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
        """Return the entities with a name that is equal or similar to consecutive words of the question.

        If words are spelled exactly like some names, other names that equal them only in another case, or without
        accents and punctuation, are left out: C++ is neither C nor C#.
        """
        variants: dict[str, list[tuple[int, int, str]]] = {}
        for start, end in self._windows():
            for text, how in self._variants(start, end):
                variants.setdefault(text, []).append((start, end, how))
        found: dict[tuple[int, int, Entity], NameHit] = {}
        exact = self.names.exact(sorted(variants))
        loose = self.names.loose(sorted(variants))
        for text, windows in variants.items():
            for start, end, how in windows:
                for match in self._spelled(start, end, exact.get(text, ())):
                    hit = match if how == "exact" else replace(match, exact=False)
                    _keep(found, self._hit(start, end, hit, LOOSE.get(how, 1.0), how))
                for item in loose.get(text, ()):
                    # a common word such as "who" may happen to be the initials of a name
                    common = end - start > 1 or len(self.keys[start]) < 2 or self.keys[start] in question_words()
                    if item.how != "initials" or not common:
                        quality = LOOSE[item.how] * LOOSE.get(how, 1.0)
                        _keep(found, self._hit(start, end, item.match, quality, item.how))
        for index, word in enumerate(self.words):
            if word.capitals and 2 <= len(word.key) <= 4:
                for match in self.names.initials_with_prefix(word.key):
                    _keep(found, self._hit(index, index + 1, match, LOOSE["initials"], "initials"))
        return list(found.values())

    def _windows(self) -> Iterator[tuple[int, int]]:
        """Return the consecutive words that may be a name; words that name nothing must have a capital."""
        longest = min(MAX_MENTION_WORDS, max(self.names.longest, 1))
        for start in range(len(self.words)):
            for end in range(start + 1, min(start + MAX_MENTION_WORDS, len(self.words)) + 1):
                unspaced = self._unspaced[start] and self._unspaced[end - 1]
                possible = end - start > 1 or len(self.words) == 1 if unspaced else end - start <= longest
                if possible and (not self.is_functional(start, end) or self.has_capital(start, end)):
                    yield start, end

    def _variants(self, start: int, end: int) -> Iterable[tuple[str, str]]:
        written = self.question[self.words[start].start : self.words[end - 1].tail]
        bare = normalise(self.text(start, end))
        yield bare, "exact"
        yield normalise(written), "exact"
        if len(bare) > 3 and bare.endswith("s") and not bare.endswith("ss"):
            yield bare[:-1], "plural"
        if end - start > 1:
            yield bare.replace(" ", ""), "squeezed"

    def _spelled(self, start: int, end: int, matches: Sequence[NameMatch]) -> Sequence[NameMatch]:
        written = self.written(start, end)
        # in lower case, a text equals names with capitals, too
        for case in (str.casefold,) if written.islower() else (str, str.casefold):
            equal = [each for each in matches if any(case(_bare(name)) == case(written) for name in each.spellings)]
            if equal:
                return equal
        return matches

    def written(self, start: int, end: int) -> str:
        """Return the words from `start` to before `end` with the signs that belong to them, such as C++."""
        first, last = self.words[start], self.words[end - 1]
        before = re.search(r"\S*\Z", self.question[: first.start]).group()  # type: ignore[union-attr]
        after = re.match(r"\S*", self.question[last.end :]).group()  # type: ignore[union-attr]
        signs = re.match(r"[^\w\s]*", after).group()  # type: ignore[union-attr]
        before = before if not re.search(r"\w", before) else ""
        return (before.lstrip(_PUNCTUATION) + self.text(start, end) + signs.rstrip(_PUNCTUATION)).strip()

    def written_name(self, found: NameHit) -> str:
        """Return the words of a hit as written in the question, with its signs if the name has them, such as C++."""
        written = self.written(found.start, found.end)
        return (
            written if _bare(found.match.name).casefold() == written.casefold() else self.text(found.start, found.end)
        )

    def is_functional(self, start: int, end: int) -> bool:
        """Return whether the words from `start` to before `end` name nothing by themselves."""
        return question_words().issuperset(self.keys[start:end])

    def has_capital(self, start: int, end: int) -> bool:
        """Return whether one of the words has a capital letter within the sentence, such as the title `It`."""
        return start > 0 and any(self.question[word.start].isupper() for word in self.words[start:end])

    # --- parts of names

    def in_part(self, whole: Iterable[NameHit] = ()) -> list[NameHit]:
        """Return the entities whose names have distinctive words in the question, even if inflected or misspelled.

        Of a name in capitals that is not in the graph, such as Johann Sebastian Bach, half of the words or the last one
        must be those of a name; words in the hits `whole` belong to other names.
        """
        others = {index for hit in whole for index in range(hit.start, hit.end)}
        capitals = [set(range(*run)) - others for run in names_in_capitals(self.question, self.words)]
        keys = [key for key, unspaced in zip(self.keys, self._unspaced) if not unspaced and len(key) > 1]
        distinctive = [key for key in dict.fromkeys(keys) if key not in question_words()][:MAX_DISTINCTIVE_WORDS]
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
            if aligned and aligned.share >= MIN_COVERAGE and self._may_mean(aligned, match.name, capitals):
                share = min(aligned.share, MAX_PART)
                _keep(found, NameHit(aligned.start, aligned.end, match, share, "part", aligned.covered))
        return list(found.values())

    def _may_mean(self, aligned: Alignment, name: str, capitals: Sequence[set[int]]) -> bool:
        parts = word_keys(name)
        for run in capitals:
            if len(run) > 1 and run.intersection(range(aligned.start, aligned.end)):
                distinctive = [self.keys[at] for at in run if self.keys[at] not in generic_words()]
                known = sum(any(_is_spelling(word, part) for part in parts) for word in distinctive)
                # any title may stand before a name: Nobel Laureate Einstein
                if 2 * known < len(distinctive) and not any(same_word(self.keys[max(run)], part) for part in parts):
                    return False
        return True

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


def names_in_capitals(question: str, words: Sequence[Word]) -> list[tuple[int, int]]:
    """Return where consecutive words of a question have capitals, as (start, end) word indices.

    A comma and the like end a name. The first word of the question counts only if it may be a part of a name. In a
    question in capitals, in title case, or without any capital, there are none.
    """
    titled = [question[word.start].isupper() for word in words[1:] if word.key in question_words()]
    if question == question.upper() or sum(titled) > max(1, len(titled) / 2):
        return []
    upper = [question[word.start].isupper() and word.key not in question_words() for word in words]
    runs: list[tuple[int, int]] = []
    for index, capital in enumerate(upper):
        is_joined = (
            runs and runs[-1][1] == index and _JOINING.fullmatch(question, words[index - 1].tail, words[index].start)
        )
        if capital and is_joined:
            runs[-1] = (runs[-1][0], index + 1)
        elif capital:
            runs.append((index, index + 1))
    return [run for run in runs if run != (0, 1)]


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


def _bare(name: str) -> str:
    return name.strip().strip(_PUNCTUATION)


def _keep(found: dict[tuple[int, int, Entity], NameHit], new: NameHit) -> None:
    key = (new.start, new.end, new.match.entity)
    if key not in found or found[key].quality < new.quality:
        found[key] = new


def _is_spelling(word: str, part: str) -> bool:
    """Return whether a word may be a word of a name, derived from it, misspelled, or its initial."""
    return word == part[:1] or same_word(word, part) or is_derived(word, part) or is_misspelling(word, part)


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
