"""Lookup of a question's words in the index of names: whole names, near-identical names, and parts of names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kgqa.graph.names.index import NameIndex, NameMatch
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
_PUNCTUATION = " ?.,;:!¿¡\"'“”‘’()[]…？。，；：！「」『』（）"


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

    def written_name(self, hit: NameHit) -> str:
        """Return the words of a hit as written in the question, with its signs if the name has them, such as C++."""
        return self.written(*hit.span, _bare(hit.match.name))

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
                    yield self._hit(start, end, replace(match, exact=how == "exact"), how)
                # a common word such as "who" may happen to be the initials of a name
                common = end - start > 1 or len(self.keys[start]) < 2 or self.is_functional(start, end)
                for item in loose.get(text, ()):
                    if item.how != "initials" or not common:
                        yield self._hit(start, end, item.match, item.how, LOOSE[how])
        for index, key in enumerate(self.keys):
            if 2 <= len(key) <= 4 and self.written(index, index + 1).isupper():
                for match in self.names.initials_with_prefix(key):
                    yield self._hit(index, index + 1, match, "initials")

    def _hit(self, start: int, end: int, match: NameMatch, how: str, likely: float = 1.0) -> NameHit:
        return NameHit(start, end, match, likely * LOOSE[how], how, self.weight(start, end))

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
                        for name in map(_bare, match.spellings)
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
        capitals = [set(range(*run)) - others for run in self.names_in_capitals()]
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
            if len(run) > 1 and run.intersection(range(*hit.span)):
                distinctive = [self.keys[index] for index in run if self.keys[index] not in generic_words()]
                known = sum(
                    any(word == part[:1] or word_certainty(word, part) for part in parts) for word in distinctive
                )
                # any title may stand before a name: Nobel Laureate Einstein
                is_last = any(word_certainty(self.keys[max(run)], part) > LOOSE["derived"] for part in parts)
                if 2 * known < len(distinctive) and not is_last:
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


def _bare(name: str) -> str:
    return name.strip(_PUNCTUATION)
