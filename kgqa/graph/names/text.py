"""How names are written into the full-text index of a server, so that its own rules of splitting words, of accents, stop
words and wildcards make no difference.

A normalised name becomes a line of tokens of a-z and 0-9: one a word, one for its initials, one for its length. Each begins
with a mark of its graph of names: a server has one index for all graphs, and looks a pattern up there before it looks at
graphs only if the query leaves the graph open. Keys that are compared as a whole become numbers, which a server keeps in
fewer bytes than texts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.errors import InvalidTerm
from kgqa.graph.names.index import initials_of
from kgqa.model import Literal

PLAIN = frozenset("abcdefghijklmnoprstuvwxyz0123456789")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
LONGEST_CODE = 55
"""Virtuoso leaves words of more than 65 letters out of its index and refuses to look for them."""
KEPT_OF_LONG = 39
LONGEST_TOLD = 9
"""Names of so many words or more are all of one length to the index."""
MAX_TOKENS = 100
MARK_LETTERS = 6
_TOKEN = re.compile(r"k[a-z0-9]{7,64}\*?\Z")


@dataclass(frozen=True, slots=True)
class NameTokens:
    """Writes tokens that begin with a mark of seven letters or digits. Wildcards need four."""

    mark: str

    @classmethod
    def of(cls, graph: str) -> NameTokens:
        """The tokens of the graph of names with this IRI."""
        number = int.from_bytes(hashlib.blake2b(graph.encode(), digest_size=8).digest(), "big")
        return cls("k" + _in_digits(number % 36**MARK_LETTERS, MARK_LETTERS))

    def word(self, word: str) -> str:
        return f"{self.mark}w{_shortened(coded(word))}"

    def words_from(self, beginning: str) -> str:
        """All words that begin so. Of a beginning of more than KEPT_OF_LONG coded letters only those count."""
        return f"{self.mark}w{coded(beginning)[:KEPT_OF_LONG]}*"

    def initials(self, initials: str) -> str:
        return f"{self.mark}i{len(initials)}{coded(initials)}"

    def initials_from(self, beginning: str, length: int) -> str:
        """All initials of `length` names that begin so."""
        return f"{self.mark}i{length}{coded(beginning)}*"

    def initials_length(self, text: str) -> int:
        """Of how many initials a text made by `text` says so; 0 for none."""
        start = f"{self.mark}i"
        return next((int(token[len(start)]) for token in text.split() if token.startswith(start)), 0)

    def length(self, words: int) -> str:
        return f"{self.mark}l{min(words, LONGEST_TOLD)}"

    def text(self, norm: str) -> str:
        """A whole normalised name. Equal names have equal texts, and different ones different texts."""
        words = norm.split()
        tokens = [self.word(word) for word in words]
        if initials := initials_of(norm):
            tokens.append(self.initials(initials))
        return " ".join([*tokens, self.length(len(words))])

    def words_of(self, text: str) -> list[str]:
        """The tokens of words in a text made by `text`."""
        return [token for token in text.split() if token.startswith(f"{self.mark}w")]


def coded(text: str) -> str:
    """A text in a-z and 0-9, letter by letter: the code of a beginning is the beginning of the code."""
    return "".join(char if char in PLAIN else _code(char) for char in text)


def _code(char: str) -> str:
    # one q and two digits for most alphabets, qy and three for Chinese and Japanese, qz and four for the rest
    number = ord(char)
    if number < 34 * 36:
        return "q" + _in_digits(number, 2)
    return "qy" + _in_digits(number, 3) if number < 36**3 else "qz" + _in_digits(number, 4)


def _in_digits(number: int, count: int) -> str:
    digits = ""
    for _ in range(count):
        number, digit = divmod(number, 36)
        digits = DIGITS[digit] + digits
    return digits


def _shortened(code: str) -> str:
    if len(code) <= LONGEST_CODE:
        return code
    return code[:KEPT_OF_LONG] + hashlib.blake2b(code.encode(), digest_size=8).hexdigest()


def key_number(key: str) -> int:
    """A key as a number of 60 bits. Two keys with one number are so rare that whoever finds one looks again."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") >> 4


def pattern(*groups: Sequence[str]) -> Literal:
    """A search pattern for texts that have of each group of tokens one at least.

    Raises:
        InvalidTerm: something is no token, or there is none, or there are more than MAX_TOKENS.
    """
    tokens = [token for group in groups for token in group]
    if not (groups and all(groups)) or len(tokens) > MAX_TOKENS or not all(map(_TOKEN.match, tokens)):
        raise InvalidTerm("Only tokens made of normalised words may stand in a full-text pattern.")
    return Literal(" AND ".join("(" + " OR ".join(f'"{token}"' for token in group) + ")" for group in groups))
