"""Lookup of a question's words in the index of names: whole names, near-identical names, and parts of names."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kgqa.graph.names.index import NameIndex, NameMatch
from kgqa.model import Entity
from kgqa.rank.lexical import STOPWORDS
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

MAX_WORDS = 400
MAX_MENTION_WORDS = 12
MAX_DISTINCTIVE_WORDS = 24
MAX_HOLDING = 300
MAX_FREQUENCY = 3000
MIN_COVERAGE = 0.25
MAX_PART = 0.95
_JOINING = re.compile(r"[\s.&'’\u2010-\u2013-]*")
_PUNCTUATION = " ?.,;:!¿¡\"'“”‘’()[]…？。，；：！「」『』（）"


class NameLookup:
    """Lookup of the names in the index that match words of one question."""

    def __init__(self, question: str, names: NameIndex) -> None:
        self.text = NameText(question, max_words=MAX_WORDS)
        self.names = names.for_text(question)
        self._unspaced = [bool(UNSPACED.match(question[word.start])) for word in self.text.words]
        self._frequencies = self.names.frequencies(self.text.keys)
        self._count = max(self.names.count, 1)

    def rarity(self, word: str) -> float:
        """Return how rare a word is among all names: 0 for a word that every name contains."""
        return math.log1p(self._count / (1 + self._frequencies.get(word, 0)))

    def weight(self, start: int, end: int) -> float:
        """Return the sum of the rarities of the words from `start` to before `end`, without function words."""
        return sum(self.rarity(key) for key in self.text.keys[start:end] if key not in STOPWORDS)

    def written_name(self, hit: NameHit) -> str:
        """Return the words of a hit as written in the question, with its signs if the name has them, such as C++."""
        return self.text.written(*hit.span, _bare(hit.match.name))

    # --- whole names

    def whole(self) -> list[NameHit]:
        """Return the entities with a name that is equal or similar to consecutive words of the question.

        If words are spelled exactly like some names, other names that equal them only in another case, or without
        accents and punctuation, are left out: C++ is neither C nor C#.
        """
        return _best(self._whole())

    def _whole(self) -> Iterator[NameHit]:
        variants = self.text.variants(filter(self._may_be_a_name, self.text.windows(MAX_MENTION_WORDS)))
        exact, loose = self.names.exact(sorted(variants)), self.names.loose(sorted(variants))
        for text, places in variants.items():
            for start, end, how in places:
                for match in self._spelled(start, end, exact.get(text, ())):
                    yield self._hit(start, end, replace(match, exact=how == "exact"), how)
                # a common word such as "who" may happen to be the initials of a name
                common = end - start > 1 or len(self.text.keys[start]) < 2 or self.text.is_functional(start, end)
                for item in loose.get(text, ()):
                    if item.how != "initials" or not common:
                        yield self._hit(start, end, item.match, item.how, LOOSE[how])
        for index, word in enumerate(self.text.words):
            if word.capitals and 2 <= len(word.key) <= 4:
                for match in self.names.initials_with_prefix(word.key):
                    yield self._hit(index, index + 1, match, "initials")

    def _hit(self, start: int, end: int, match: NameMatch, how: str, likely: float = 1.0) -> NameHit:
        return NameHit(start, end, match, likely * LOOSE[how], how, self.weight(start, end))

    def _may_be_a_name(self, place: tuple[int, int]) -> bool:
        """Return whether words may be a name: those that name nothing must have a capital within the sentence."""
        start, end = place
        if end - start == 1 < len(self.text.words) and self._unspaced[start]:
            return False
        return not self.text.is_functional(start, end) or (
            start > 0 and any(map(str.isupper, self.text.written(start, end)))
        )

    def _spelled(self, start: int, end: int, matches: Sequence[NameMatch]) -> Sequence[NameMatch]:
        """Return the matches that are spelled as in the question, with most signs; all if there are none."""
        # in lower case, a text equals names with capitals, too
        for case in (str.casefold,) if self.text.written(start, end).islower() else (str, str.casefold):
            signs = [
                max(
                    (
                        len(name)
                        for name in map(_bare, match.spellings)
                        if case(self.text.written(start, end, name)) == case(name)
                    ),
                    default=0,
                )
                for match in matches
            ]
            if any(signs):
                return [match for match, count in zip(matches, signs) if count == max(signs)]
        return matches

    # --- parts of names

    def in_part(self, whole: Iterable[NameHit]) -> list[NameHit]:
        """Return the entities whose names have distinctive words in the question, even if inflected or misspelled.

        Of a name in capitals that is not in the graph, such as Johann Sebastian Bach, half of the words or the last one
        must be those of a name; words in the hits `whole` belong to other names.
        """
        others = {index for hit in whole for index in range(*hit.span)}
        capitals = [set(range(*run)) - others for run in names_in_capitals(self.text)]
        keys = [key for key, unspaced in zip(self.text.keys, self._unspaced) if not unspaced and len(key) > 1]
        distinctive = [key for key in dict.fromkeys(keys) if key not in question_words()][:MAX_DISTINCTIVE_WORDS]
        similar = self.names.similar_words([key for key in distinctive if len(key) >= 4 and not key.isdigit()])
        alike = [self._alike(key, similar.get(key, {})) for key in distinctive]
        self._frequencies |= self.names.frequencies([word for words in alike for word in words])
        rare = {word for words in alike for word in words if 0 < self._frequencies.get(word, 0) <= MAX_FREQUENCY}
        matches = {
            (match.entity, match.name): match for match in self.names.containing(sorted(rare), limit=MAX_HOLDING)
        }
        aligned = (self.text.align(match, self.rarity) for match in matches.values())
        return _best(
            replace(hit, quality=min(hit.quality, MAX_PART))
            for hit in aligned
            if hit and hit.quality >= MIN_COVERAGE and self._may_mean(hit, capitals)
        )

    def _may_mean(self, hit: NameHit, capitals: Iterable[set[int]]) -> bool:
        parts = word_keys(hit.match.name)
        for run in capitals:
            if len(run) > 1 and run.intersection(range(*hit.span)):
                distinctive = [key for key in map(self.text.keys.__getitem__, run) if key not in generic_words()]
                known = sum(
                    any(word == part[:1] or word_certainty(word, part) for part in parts) for word in distinctive
                )
                # any title may stand before a name: Nobel Laureate Einstein
                is_last = any(word_certainty(self.text.keys[max(run)], part) > LOOSE["derived"] for part in parts)
                if 2 * known < len(distinctive) and not is_last:
                    return False
        return True

    def _alike(self, key: str, similar: Mapping[str, int]) -> list[str]:
        """Return the words of names that a word may mean: the word itself, other forms, or similar spellings.

        Args:
            similar: words of names that may be similar, each with the number of names that contain it.
        """
        likely = {word: word_certainty(key, word) for word in similar if word != key}
        found = [word for word in likely if likely[word] >= LOOSE["derived"]]
        if key in self._frequencies:
            return [key, *found]
        near = [word for word in likely if 0 < likely[word] < LOOSE["derived"]]
        return found + sorted(near, key=lambda word: (-spelling_similarity(word, key), -similar[word], word))[:5]


def within_names(text: NameText) -> Callable[[int, int], bool]:
    """Return a function that says whether words, as (start, end) indices, are a part of a longer name in capitals."""
    runs = names_in_capitals(text)
    return lambda start, end: any(first <= start and end <= last and end - start < last - first for first, last in runs)


def names_in_capitals(text: NameText) -> list[tuple[int, int]]:
    """Return where consecutive words of a question have capitals, as (start, end) word indices.

    A comma and the like end a name. The first word of the question counts only if it may be a part of a name. In a
    question in capitals, in title case, or without any capital, there are none.
    """
    question, words = text.text, text.words
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


def _bare(name: str) -> str:
    return name.strip(_PUNCTUATION)


def _best(hits: Iterable[NameHit]) -> list[NameHit]:
    """Return the best hit of each entity at each place."""
    best: dict[tuple[int, int, Entity], NameHit] = {}
    for hit in hits:
        best[(*hit.span, hit.match.entity)] = max(
            best.get((*hit.span, hit.match.entity), hit), hit, key=lambda hit: hit.quality
        )
    return list(best.values())
