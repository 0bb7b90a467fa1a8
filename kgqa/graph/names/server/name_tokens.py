"""The tokens that represent names in a server's full-text index.

A token contains only a-z and 0-9, so the server's rules for splitting words, accents, stop words and wildcards have no
effect on it. A normalised name is indexed as a line of tokens: one token per word, one for the initials of the name,
and one for its number of words. Every token begins with the mark of one graph of names, because a server has a single
full-text index for all graphs, and searches this index first only if the query does not specify a graph. Other
spellings of a name are only compared as whole texts, so the index stores only a 60-bit hash of each spelling, to save
space.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kgqa.errors import InvalidTerm
from kgqa.graph.names.spellings import initials_of
from kgqa.model import Literal

PLAIN = frozenset("abcdefghijklmnoprstuvwxyz0123456789")
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
MAX_CODE_LENGTH = 55
"""A word's code is shortened if it is longer: Virtuoso neither indexes nor finds words of more than 65 letters."""
SHORTENED_LENGTH = 39
MAX_LENGTH = 9
"""Names with this many words or more have the same length token."""
MAX_TOKENS = 100
MARK_LETTERS = 6
_TOKEN = re.compile(r"k[a-z0-9]{7,64}\*?\Z")


@dataclass(frozen=True, slots=True)
class NameTokens:
    """Creates the tokens of one graph of names. Each token begins with `mark`, which has seven letters or digits."""

    mark: str

    @classmethod
    def of(cls, graph: str) -> NameTokens:
        """Create the tokens of the graph of names with this IRI."""
        number = int.from_bytes(hashlib.blake2b(graph.encode(), digest_size=8).digest(), "big")
        return cls("k" + _in_digits(number % 36**MARK_LETTERS, MARK_LETTERS))

    def word(self, word: str) -> str:
        """Return the token that stands for a word."""
        return f"{self.mark}w{_shortened(encode(word))}"

    def word_prefix(self, prefix: str) -> str:
        """Return the wildcard for words with this prefix. The prefix's code is cut to SHORTENED_LENGTH letters."""
        return f"{self.mark}w{encode(prefix)[:SHORTENED_LENGTH]}*"

    def initials(self, initials: str) -> str:
        """Return the token that stands for initials."""
        return f"{self.mark}i{len(initials)}{encode(initials)}"

    def initials_prefix(self, prefix: str, length: int) -> str:
        """Return the wildcard for initials of `length` letters with this prefix."""
        return f"{self.mark}i{length}{encode(prefix)}*"

    def initials_length(self, text: str) -> int:
        """Return the number of initials in a string that the method `text` returned; 0 if it has no initials."""
        start = f"{self.mark}i"
        return next((int(token[len(start)]) for token in text.split() if token.startswith(start)), 0)

    def length(self, words: int) -> str:
        """Return the token that stands for the number of words in a name."""
        return f"{self.mark}l{min(words, MAX_LENGTH)}"

    def text(self, norm: str) -> str:
        """Return the tokens of a normalised name, separated by spaces; different names give different strings."""
        words = norm.split()
        tokens = [self.word(word) for word in words]
        if initials := initials_of(norm):
            tokens.append(self.initials(initials))
        return " ".join([*tokens, self.length(len(words))])

    def words_of(self, text: str) -> list[str]:
        """Return the tokens that stand for words from a string that the method `text` returned."""
        return [token for token in text.split() if token.startswith(f"{self.mark}w")]


def encode(text: str) -> str:
    """Encode a text letter by letter in a-z and 0-9, so that the code of a prefix is a prefix of the text's code."""
    return "".join(char if char in PLAIN else _code(char) for char in text)


def _code(char: str) -> str:
    # most alphabets: q and two digits; Chinese and Japanese: qy and three digits; other letters: qz and four digits
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
    if len(code) <= MAX_CODE_LENGTH:
        return code
    return code[:SHORTENED_LENGTH] + hashlib.blake2b(code.encode(), digest_size=8).hexdigest()


def key_number(key: str) -> int:
    """Hash a word or spelling to 60 bits. Hashes may collide, so entities found by hash are checked by name."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") >> 4


def pattern(*groups: Sequence[str]) -> Literal:
    """Build a search pattern for texts with at least one token from each group.

    Raises:
        InvalidTerm: a token is malformed, a group is empty, or there are more than MAX_TOKENS.
    """
    tokens = [token for group in groups for token in group]
    if not (groups and all(groups)) or len(tokens) > MAX_TOKENS or not all(map(_TOKEN.match, tokens)):
        raise InvalidTerm("A full-text pattern may contain only tokens of normalised words.")
    return Literal(" AND ".join("(" + " OR ".join(f'"{token}"' for token in group) + ")" for group in groups))
