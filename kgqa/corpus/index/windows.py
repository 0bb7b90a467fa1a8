"""Windows: a long text is embedded in overlapping parts, of which the one closest to a question counts.

An encoder reads only the first tokens of a text, and the longer a text, the less a single fact in it weighs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from kgqa.corpus.index.entries import IndexEntry
from kgqa.corpus.items import digest

WINDOW = 128
"""Most tokens of a window, if the encoder reads as many. In windows of 254 tokens less is found; shorter windows need
more vectors and find hardly more."""
OVERLAP = 0.25
"""The share of a window that it has in common with the one before it."""
MAX_HEAD = 0.25
"""The share of a window that the title may take."""
_RULES = "2"
"""Changes with the rules of this module, because these change the vectors."""


class TextEncoder(Protocol):
    """What the index needs of an embedding model; `kgqa.rank.embedding.encoder.CachedEncoder` is one. Thread-safe.

    Attributes:
        name: Different for different vectors.
        max_tokens: How many tokens of a text the model reads.
    """

    name: str

    @property
    def max_tokens(self) -> int: ...

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Return the begin and end of each token of each text."""
        ...

    def encode_once(self, texts: Sequence[str]) -> np.ndarray:
        """Return the unit vectors of texts, float32 of shape (len(texts), size)."""
        ...

    def encode_questions(self, texts: Sequence[str]) -> np.ndarray:
        """Return the unit vectors of questions."""
        ...


def text_digest(encoder: TextEncoder, entry: IndexEntry) -> str:
    """Return a hash that is equal for entries with equal vectors."""
    return digest(_RULES, encoder.name, str(_limit(encoder)), entry.head, entry.text, length=32)


def window_texts(encoder: TextEncoder, entries: Sequence[IndexEntry]) -> list[list[str]]:
    """Return the texts that are embedded for each entry: the entry's text, or windows of it, each after its head.

    Together the windows of a text contain all of its tokens.
    """
    heads = _heads(encoder, entries)
    limit = _limit(encoder)
    # a token has at least one character, with few exceptions; these exceptions are only cut off a little earlier
    long = [number for number, entry in enumerate(entries) if len(heads[number]) + len(entry.text) > limit]
    spans = encoder.token_spans([entries[number].text for number in long])
    head_sizes = [len(each) for each in encoder.token_spans([heads[number] for number in long])]
    found = [[heads[number] + entry.text] for number, entry in enumerate(entries)]
    for number, tokens, head_size in zip(long, spans, head_sizes):
        text = entries[number].text
        parts = _parts(tokens, max(1, limit - head_size))
        if len(parts) > 1:
            found[number] = [heads[number] + text[begin:end] for begin, end in parts]
    return found


def _limit(encoder: TextEncoder) -> int:
    return min(WINDOW, encoder.max_tokens)


def _heads(encoder: TextEncoder, entries: Sequence[IndexEntry]) -> list[str]:
    """Return the head of each entry with a line break after it; a long head is cut."""
    most = max(1, int(_limit(encoder) * MAX_HEAD))
    heads = [entry.head for entry in entries]
    long = [number for number, head in enumerate(heads) if len(head) > most]
    for number, tokens in zip(long, encoder.token_spans([heads[number] for number in long])):
        heads[number] = heads[number][: tokens[min(most, len(tokens)) - 1][1]] if tokens else ""
    return [f"{head}\n" if head else "" for head in heads]


def _parts(tokens: Sequence[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Split tokens into overlapping windows of at most `size`; return where each window begins and ends in the text."""
    if len(tokens) <= size:
        return [(0, tokens[-1][1])] if tokens else []
    step = max(1, int(size * (1 - OVERLAP)))
    starts = [*range(0, len(tokens) - size, step), len(tokens) - size]
    return [(tokens[start][0], tokens[start + size - 1][1]) for start in starts]
