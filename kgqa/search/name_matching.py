"""Search for names in a text: written in full, in another spelling, or in part; and comparison of their words.

Masking searches for the names of the question's topics, linking for those that an index of names holds.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import takewhile

from kgqa.graph.names.index import NameMatch
from kgqa.graph.names.reading import initials_of, spellings
from kgqa.rank.lexical import STOPWORDS, stem
from kgqa.search.words import word_list, word_table
from kgqa.text.words import normalise

_UNSPACED = "\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = re.compile(f"[{_UNSPACED}]")
"""A character of Chinese, Japanese or Korean: names in these scripts stand in a text without spaces beside them."""
_LETTER = rf"[^\W_{_UNSPACED}]"
_WORD = re.compile(
    rf"(?P<bare>[{_UNSPACED}]|{_LETTER}+(?:['’](?!s(?!{_LETTER})){_LETTER}+)*)"
    rf"(?:['’]s(?!{_LETTER})|(?<=[sS])['’](?=\s))?"  # a possessive ending: Japan's, the Beatles' first album
)
_JOINING = re.compile(r"[\s.&'’\u2010-\u2013-]*")
# endings that turn a name into an adjective or a plural: Japanese, Egyptian, Iraqi, Australians
ENDINGS = ("s", "es", "n", "an", "ian", "ese", "ish", "i", "ns", "ans", "ians", "nian", "nians", "ic")
MIN_LETTERS = 4
"""Shorter words are not derived from others, nor misspelled."""
# quality of a hit for each kind of difference between text and name
LOOSE = {
    "exact": 1.0, "article": 0.97, "plural": 0.93, "bracket": 0.92, "squeezed": 0.9, "comma": 0.88, "derived": 0.8,
    "initials": 0.6,
}  # fmt: skip


@cache
def question_words() -> frozenset[str]:
    """Return the words that name nothing by themselves in a sentence, even if something is called Now or It."""
    asking = (word for table in word_table("languages").values() for word in table.get("asking", "").split())
    return STOPWORDS | frozenset(word_list("question_words", "names")) | frozenset(asking)


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
        capitals: Whether the words have capitals or digits, in a text that has capitals after its first word.
        doubtful: Whether the words are a topic only if no others are.
    """

    start: int
    end: int
    match: NameMatch
    quality: float
    how: str
    covered: float = 0.0
    score: float = 0.0
    capitals: bool = False
    doubtful: bool = False

    @property
    def span(self) -> tuple[int, int]:
        return self.start, self.end

    @property
    def is_whole(self) -> bool:
        return self.how not in ("part", "initials")


class NameText:
    """A text in which names are searched; places in it are (start, end) indices of words.

    Attributes:
        words: The words, or characters of a script without spaces, as matches in the text: the group `bare` is the word
            without a possessive ending.
        keys: The normalised form of each word, for comparison.
        upper: Whether each word begins with a capital.
    """

    def __init__(self, text: str, *, max_words: int | None = None) -> None:
        found = ((match, normalise(match["bare"]).replace(" ", "")) for match in _WORD.finditer(text))
        words = [(match, key) for match, key in found if key][:max_words]
        self.text = text
        self.words = [match for match, _ in words]
        self.keys = [key for _, key in words]
        self.upper = [text[word.start()].isupper() for word in self.words]

    def windows(self, longest: int) -> Iterator[tuple[int, int]]:
        """Return the places of up to `longest` consecutive words."""
        ends = range(1, len(self.words) + 1)
        return ((start, end) for start in range(len(self.words)) for end in ends[start : start + longest])

    def windows_of(self, forms: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Return the places of words that may be any of the sorted normalised texts without spaces."""
        for start, key in enumerate(self.keys):
            end, letters = start, key.removesuffix("s")
            while end < len(self.keys) and _begins_any(forms, letters):
                end += 1
                yield start, end
                letters = normalise(self.written(start, end)).replace(" ", "")

    def variants(self, windows: Iterable[tuple[int, int]]) -> dict[str, list[tuple[int, int, str]]]:
        """Return the normalised texts by which names are looked up, with their places and kinds (see `LOOSE`)."""
        found: dict[str, list[tuple[int, int, str]]] = {}
        for start, end in windows:
            bare = normalise(self.written(start, end))
            texts = {bare.replace(" ", ""): "squeezed"}
            if len(bare) > 3 and bare.endswith("s") and not bare.endswith("ss"):
                texts |= dict.fromkeys((bare[:-1], stem(bare)), "plural")
            texts |= {
                normalise(self.text[self.words[start].start() : self.words[end - 1].end()]): "exact",
                bare: "exact",
            }
            for text, how in texts.items():
                found.setdefault(text, []).append((start, end, how))
        return found

    def extent(self, start: int, end: int, name: str) -> tuple[int, int]:
        """Return the first character of some words and the one after them, with the signs of a name, such as C++."""
        before, after = re.match(r"[\W_]*", name).group(), re.search(r"[\W_]*$", name).group()  # type: ignore[union-attr]
        first, last = self.words[start].start(), self.words[end - 1].end("bare")
        first -= len(before) * self.text.endswith(before, 0, first)
        return first, last + len(after) * self.text.startswith(after, last)

    def written(self, start: int, end: int, name: str = "") -> str:
        """Return some words as they are written, with the signs of a name, such as C++."""
        return self.text[slice(*self.extent(start, end, name))]

    def is_functional(self, start: int, end: int) -> bool:
        """Return whether some words name nothing by themselves."""
        return question_words().issuperset(self.keys[start:end])

    def names_in_capitals(self) -> list[tuple[int, int]]:
        """Return the places of consecutive words with capitals.

        A comma and the like end a name. The first word of the text counts only if it may be a part of a name. In a text
        in capitals, in title case, or without any capital, there are none.
        """
        asking = [key in question_words() for key in self.keys]
        titled = [upper for upper, functional in zip(self.upper[1:], asking[1:]) if functional]
        if self.text.isupper() or sum(titled) > max(1, len(titled) / 2):
            return []
        runs: list[tuple[int, int]] = []
        for index in (index for index, upper in enumerate(self.upper) if upper and not asking[index]):
            between = self.text[self.words[index - 1].end() : self.words[index].start()]
            is_joined = runs and runs[-1][1] == index and _JOINING.fullmatch(between)
            runs.append((runs.pop()[0] if is_joined else index, index + 1))
        return [run for run in runs if run != (0, 1)]

    def is_part(self, start: int, end: int) -> bool:
        """Return whether some words are a part of a longer name in capitals."""
        return any(
            first <= start and end <= last and end - start < last - first for first, last in self.names_in_capitals()
        )

    def align(self, match: NameMatch, weight: Callable[[str], float], *, gaps: bool = True) -> NameHit | None:
        """Return the best hit of a part of a name; with `gaps`, one word in it may not belong to the name.

        Args:
            match: The name.
            weight: Maps a normalised word to its weight in the share of the name that is found.
            gaps: Whether stopwords and one other word may stand between the words of the name, else only an initial.
        """
        name = word_keys(match.name)
        weights = {part: 0.3 if part in STOPWORDS else weight(part) for part in name}
        total = sum(weights[part] for part in name)

        def hits_from(start: int) -> Iterator[NameHit]:
            left, gained, covered, foreign, since = list(name), 0.0, 0.0, 0, 0
            for index, word in enumerate(self.keys[start:], start):
                part = max(left, key=lambda part: word_certainty(word, part), default="")
                certainty = word_certainty(word, part)
                if certainty:
                    left.remove(part)
                    foreign, since = foreign + since, 0
                    gained += certainty * weights[part]
                    if word not in STOPWORDS:
                        covered += certainty * weight(word)
                        yield NameHit(start, index + 1, match, gained / total * 0.9**foreign, "part", covered)
                else:
                    since += word not in STOPWORDS
                    if not (left and (gaps or len(word) == 1)) or since + foreign > 1:
                        return

        starts = (
            start
            for start, key in enumerate(self.keys)
            if key not in STOPWORDS and any(word_certainty(key, part) for part in name)
        )
        hits = (hit for start in starts for hit in hits_from(start))
        return max(hits, key=lambda hit: hit.quality, default=None)


def _begins_any(texts: Sequence[str], letters: str) -> bool:
    """Return whether any of the sorted texts begins with some letters."""
    at = bisect_left(texts, letters)
    return at < len(texts) and texts[at].startswith(letters)


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


@lru_cache(maxsize=100_000)
def word_keys(text: str) -> tuple[str, ...]:
    """Return the words of a name in their normalised form, for comparison."""
    return tuple(NameText(text).keys)


@lru_cache(maxsize=100_000)
def derived_words(name: str) -> frozenset[str]:
    """Return a name with each of the `ENDINGS`, such as Jamaican for Jamaica; none of a short name."""
    stems = {name, name[:-1] if name[-1:] in tuple("aeoy") else name}
    return frozenset(form + ending for form in stems for ending in ENDINGS) if len(name) >= MIN_LETTERS else frozenset()


@lru_cache(maxsize=200_000)
def word_certainty(word: str, part: str) -> float:
    """Return how likely a word of a text means a word of a name, from 0 to 1.

    It is 1 for the same word, and less for a plural, a derived word and a misspelling.
    """
    if word[:1] != part[:1]:
        return 0.0
    if word == part:
        return 1.0
    short, long = sorted((word, part), key=len)
    if len(short) >= 3 and long in (f"{short}s", f"{short}es"):
        return 0.97
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, part)))
    is_derived = common >= 3 and (word in derived_words(part) or part in derived_words(word))
    # most letters are the same beginning: Hungarian and Hungary
    if is_derived or (common >= max(5, 0.75 * len(short)) and spelling_similarity(word, part) >= 0.7):
        return 0.8
    may_be_slip = len(short) >= MIN_LETTERS and len(long) - len(short) <= 2 and not re.search(r"\d", word + part)
    return 0.7 if may_be_slip and spelling_similarity(word, part) >= 0.8 else 0.0


@lru_cache(maxsize=100_000)
def spelling_similarity(left: str, right: str) -> float:
    """Return the similarity of two words, 0 to 1: twice the number of common letters, in order, per letter of both."""
    return SequenceMatcher(None, left, right, autojunk=False).ratio()
