"""Where the tokens of a text stand, exactly with a model's tokenizer or by estimate without one."""

from __future__ import annotations

import re
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


def exact_spans(tokenizer: Any, texts: Sequence[str]) -> list[Spans]:
    """Return where the tokens of texts stand for a tokenizer (tokenizers library) that neither truncates nor pads."""
    return [list(each.offsets) for each in tokenizer.encode_batch(list(texts), add_special_tokens=False)]


def without_limit(tokenizer: Any) -> Any:
    """Return a copy of a tokenizer (tokenizers library) that neither truncates nor pads."""
    copy = type(tokenizer).from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy
