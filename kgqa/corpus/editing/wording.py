"""What a text says, for comparison: its words, numbers, names, and whether it denies something."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kgqa.corpus.extraction.names import folded_name, words
from kgqa.rank.lexical import STOPWORDS, stem

_NUMBER = re.compile(r"(?<![\w.,])[-\u2212]?\d+(?:[.,]\d+)*|\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_END_OF_SENTENCE = re.compile(r"[.!?:;\n]\s*[\"'”’»)\]]*\s*$")
_ONLY_BLANKS = re.compile(r"[\s'’-]*")
_ORDINARY = ("ed", "ing", "ly")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")
_NEGATED = re.compile(r"n['’]t\b", re.IGNORECASE)
_WORDS = {
    "negations": "not no never none neither nor without cannot nobody nothing false wrong untrue incorrect",
    "small": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty",
    "tens": "thirty forty fifty sixty seventy eighty ninety",
    "ordinals": "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
}
_NEGATIONS = frozenset(_WORDS["negations"].split())
_NUMBER_WORDS = {
    **{word: str(value) for value, word in enumerate(_WORDS["small"].split())},
    **{word: str(value) for word, value in zip(_WORDS["tens"].split(), range(30, 100, 10), strict=True)},
    **{word: str(value) for value, word in enumerate(_WORDS["ordinals"].split(), 1)},
    "hundred": "100",
    "thousand": "1000",
    "million": "1000000",
    "billion": "1000000000",
    "dozen": "12",
}


@dataclass(frozen=True)
class Name:
    """Words with capitals beside each other. `initial`: whether the first one begins a sentence."""

    words: tuple[str, ...]
    initial: bool = False

    @property
    def is_doubtful(self) -> bool:
        """Whether it may be an ordinary word that begins a sentence: "Founded", "Recently"."""
        return self.initial and len(self.words) == 1 and self.words[0].endswith(_ORDINARY)


@dataclass(frozen=True)
class Wording:
    """The content of a text.

    Attributes:
        sequence: All its words in the form in which they are compared, in order.
        stems: Stems of its words, without stopwords.
        numbers: Its numbers, those in words included.
        names: Its names; in a script without capitals, each word is one.
        denies: Whether it contains a negation.
    """

    sequence: tuple[str, ...]
    stems: frozenset[str]
    numbers: frozenset[str]
    names: tuple[Name, ...]
    denies: bool

    @property
    def name_words(self) -> frozenset[str]:
        """The words of the names, without stopwords."""
        return frozenset(word for name in self.names for word in name.words if word not in STOPWORDS)

    @property
    def others(self) -> frozenset[str]:
        """The stems of the words that belong to no name and are no numbers: what is said about the names."""
        named = frozenset(stem(word) for name in self.names if not name.is_doubtful for word in name.words)
        numbers = self.numbers | _NUMBER_WORDS.keys() | {"not"}
        return frozenset(each for each in self.stems - named if each not in numbers and not each.isdecimal())

    def contains(self, phrase: Sequence[str]) -> bool:
        """Return whether words stand in the text beside each other."""
        wanted = f" {' '.join(phrase)} "
        return wanted in f" {' '.join(self.sequence)} "


@lru_cache(1 << 10)
def wording(text: str) -> Wording:
    """Return what a text says."""
    text = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", text))
    sequence = tuple(folded_name.__wrapped__(text).split())
    stems = frozenset(stem(word) for word in sequence if word not in STOPWORDS)
    numbers = {_number(found[0]) for found in _NUMBER.finditer(text)}
    numbers |= {_NUMBER_WORDS[word] for word in sequence if word in _NUMBER_WORDS}
    denies = bool(_NEGATIONS.intersection(sequence) or _NEGATED.search(text))
    return Wording(sequence, stems, frozenset(numbers), tuple(_names(text)), denies)


def _number(text: str) -> str:
    text = text.replace("\u2212", "-")
    if _THOUSANDS.fullmatch(text.lstrip("-")):
        text = text.replace(",", "")
    return text


def _names(text: str) -> list[Name]:
    found: list[Name] = []
    run: list[str] = []
    begins = False
    last = 0
    for word in words(text):
        between = text[last : word.start()]
        starts = not last or bool(_END_OF_SENTENCE.search(between)) or "\n" in between
        caseless = _is_caseless(word[0])
        if run and (starts or caseless or not _ONLY_BLANKS.fullmatch(between)):
            found.append(Name(tuple(run), begins))
            run = []
        folded = folded_name(word[0])
        if caseless:
            found.append(Name((folded,)))
        elif any(char.isupper() for char in word[0]):
            if starts and folded in STOPWORDS:
                pass  # "The", "In"
            else:
                begins = begins if run else starts
                run.append(folded)
        elif run:
            found.append(Name(tuple(run), begins))
            run = []
        last = word.end()
    if run:
        found.append(Name(tuple(run), begins))
    return found


def _is_caseless(word: str) -> bool:
    """Return whether a word consists of letters that have no capitals."""
    return any(map(str.isalpha, word)) and all(char.upper() == char.lower() for char in word if char.isalpha())
