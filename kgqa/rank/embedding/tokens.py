"""Where the tokens of a text stand, exactly with a model's tokenizer or by estimate without one."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

Spans = list[tuple[int, int]]
"""The tokens of a text: begin and end of each, in code points, without the special tokens that a model adds."""

UNKNOWN_LIMIT = 512
"""Tokens of a text that a model on a server is taken to read."""
# a token of English has four to five characters; one of Chinese or Japanese has one
_ESTIMATED = re.compile(r"[^\W_\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]{1,4}|[^\s]")


def estimated_spans(texts: Sequence[str]) -> list[Spans]:
    """Estimate where the tokens of texts stand; the estimate has more tokens than most tokenizers."""
    return [[found.span() for found in _ESTIMATED.finditer(text)] for text in texts]


class TokenSpans:
    """Finds all tokens of texts with a copy of a tokenizer (tokenizers library) that does not truncate. Thread-safe."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._copy: Any = None
        self._lock = threading.Lock()

    def of(self, texts: Sequence[str]) -> list[Spans]:
        """Return where the tokens of texts stand."""
        with self._lock:
            if self._copy is None:
                self._copy = type(self._tokenizer).from_str(self._tokenizer.to_str())
                self._copy.no_truncation()
                self._copy.no_padding()
            return [list(each.offsets) for each in self._copy.encode_batch(list(texts), add_special_tokens=False)]
