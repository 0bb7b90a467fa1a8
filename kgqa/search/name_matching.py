"""Search for names in a text: written in full, in another spelling, or in part.

Masking searches for the names of the question's topics, linking for those that an index of names holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

from kgqa.graph.names.index import NameMatch
from kgqa.graph.names.spellings import initials_of, spellings
from kgqa.rank.lexical import STOPWORDS
from kgqa.search.word_matching import derived_words, word_certainty, word_keys, words_of
from kgqa.search.words import word_list
from kgqa.text.words import normalise

# quality of a hit for each kind of difference between text and name
LOOSE = {
    "exact": 1.0, "article": 0.97, "plural": 0.93, "bracket": 0.92, "squeezed": 0.9, "comma": 0.88, "derived": 0.8,
    "initials": 0.6,
}  # fmt: skip


@cache
def question_words() -> frozenset[str]:
    """Return the words that name nothing by themselves in a sentence, even if something is called Now or It."""
    return STOPWORDS | frozenset(word_list("question_words", "names"))


@cache
def generic_words() -> frozenset[str]:
    """Return the words for kinds of things: "college" is not masked as a part of the name "Boston College"."""
    return frozenset(word_list("generic", "names"))


@dataclass(frozen=True, slots=True)
class NameHit:
    """An entity that some words of a text may mean.

    Attributes:
        start: Index of the first word.
        end: Index after the last word.
        match: The entity and its name.
        quality: How well the words match the name, from 0 to 1; 1 for an exact match.
        how: Kind of the match: a key of `LOOSE`, or `part`.
        covered: Sum of the weights of the words that belong to the name.
        score: The score by which linking ranks the hit.
        doubtful: Whether the words are a topic only if no others are.
    """

    start: int
    end: int
    match: NameMatch
    quality: float
    how: str
    covered: float = 0.0
    score: float = 0.0
    doubtful: bool = False

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def is_whole(self) -> bool:
        return self.how not in ("part", "initials")


class NameText:
    """A text in which names are searched; places in it are (start, end) indices of words."""

    def __init__(self, text: str, *, max_words: int | None = None) -> None:
        self.text = text
        self.words = words_of(text)[:max_words]
        self.keys = [word.key for word in self.words]

    def windows(self, longest: int) -> Iterator[tuple[int, int]]:
        """Yield the places of up to `longest` consecutive words."""
        for start in range(len(self.words)):
            for end in range(start + 1, min(start + longest, len(self.words)) + 1):
                yield start, end

    def variants(self, windows: Iterable[tuple[int, int]]) -> dict[str, list[tuple[int, int, str]]]:
        """Return the normalised texts by which names are looked up, with their places and kinds (see `LOOSE`)."""
        found: dict[str, list[tuple[int, int, str]]] = {}
        for start, end in windows:
            bare = normalise(self.text[self.words[start].start : self.words[end - 1].end])
            full = normalise(self.text[self.words[start].start : self.words[end - 1].tail])
            texts = {full: "exact", bare: "exact"}
            if len(bare) > 3 and bare.endswith("s") and not bare.endswith("ss"):
                texts[bare[:-1]] = "plural"
            texts = {bare.replace(" ", ""): "squeezed", **texts}
            for text, how in texts.items():
                found.setdefault(text, []).append((start, end, how))
        return found

    def extent(self, start: int, end: int, name: str) -> tuple[int, int]:
        """Return the first character of some words and the one after them, with the signs of a name, such as C++."""
        before, after = re.match(r"[\W_]*", name).group(), re.search(r"[\W_]*$", name).group()  # type: ignore[union-attr]
        first, last = self.words[start].start, self.words[end - 1].end
        first -= len(before) * self.text.endswith(before, 0, first)
        return first, last + len(after) * self.text.startswith(after, last)

    def written(self, start: int, end: int, name: str = "") -> str:
        """Return some words as they are written, with the signs of a name, such as C++."""
        first, last = self.extent(start, end, name)
        return self.text[first:last]

    def is_functional(self, start: int, end: int) -> bool:
        """Return whether some words name nothing by themselves."""
        return question_words().issuperset(self.keys[start:end])

    def align(self, match: NameMatch, weight: Callable[[str], float], *, gaps: bool = True) -> NameHit | None:
        """Return the best hit of a part of a name; with `gaps`, one word in it may not belong to the name.

        Args:
            match: The name.
            weight: Maps a normalised word to its weight in the share of the name that is found.
            gaps: Whether stopwords and one other word may stand between the words of the name, else only an initial.
        """
        name = word_keys(match.name)
        total = sum(0.3 if part in STOPWORDS else weight(part) for part in name)
        best: NameHit | None = None
        for start, key in enumerate(self.keys):
            if key in STOPWORDS or not any(word_certainty(key, part) for part in name):
                continue
            left, gained, covered, foreign, since = list(name), 0.0, 0.0, 0, 0
            for index in range(start, len(self.keys)):
                word = self.keys[index]
                part = max(left, key=lambda part: word_certainty(word, part), default="")
                certainty = word_certainty(word, part)
                if not certainty:
                    since += word not in STOPWORDS
                    if not (left and (gaps or len(word) == 1)) or since + foreign > 1:
                        break
                    continue
                left.remove(part)
                foreign, since = foreign + since, 0
                gained += certainty * (0.3 if part in STOPWORDS else weight(part))
                if word not in STOPWORDS:
                    covered += certainty * weight(word)
                    share = gained / total * 0.9**foreign
                    if best is None or share > best.quality:
                        best = NameHit(start, index + 1, match, share, "part", covered)
        return best


@lru_cache(maxsize=50_000)
def forms(name: str) -> dict[str, str]:
    """Return the normalised texts that mean a name written in full, each with its kind (see `LOOSE`)."""
    norm = normalise(name)
    before, _, last = norm.rpartition(" ")
    derived = (f"{before} {word}".strip() for word in derived_words(last))
    initials = initials_of(norm)
    shorter = (initials[:count] for count in range(2, len(initials)))  # US for United States of America
    return {
        **dict.fromkeys(shorter, "initials"),
        **dict.fromkeys(derived, "derived"),
        **spellings(name),
        norm: "exact",
    }
