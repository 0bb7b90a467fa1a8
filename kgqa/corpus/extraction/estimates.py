"""What extraction will cost, before a model is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from kgqa.corpus.extraction.modes import MODES
from kgqa.corpus.extraction.requests import ExtractionRequest, has_text
from kgqa.llm.client import Message
from kgqa.llm.prompts import Prompts

CountTokens = Callable[[Sequence[str]], list[int]]
CHARS_PER_TOKEN = 4
IMAGE_TOKENS = 1_000
"""Tokens of an image of medium size."""
CHARS_PER_FACT = 60
"""Characters of text per fact, if a text states many."""
REASKED = 1.03
"""Prompts per chunk and step, with those that are sent again."""
_MILLION = 1_000_000
_BATCH = 512


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimate: calls of the model, tokens of prompts and replies, and USD; None if the price is unknown."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None


def estimate(
    requests: Iterable[ExtractionRequest],
    *,
    mode: str,
    prompts: Prompts,
    limit: int,
    price: tuple[float, float] | None = None,
    images: bool = True,
    count_tokens: CountTokens | None = None,
) -> Estimate:
    """Estimate what extraction costs. No model is asked.

    Args:
        requests: The chunks that would be read.
        mode: a key of `MODES`.
        prompts: The prompt files.
        limit: The maximum number of facts per chunk.
        price: USD per million tokens of prompts and of replies.
        images: Whether figures are sent.
        count_tokens: Counts the tokens of texts; without it, a token has four characters.
    """
    sizes = PromptSizes(mode, prompts, limit, count_tokens)
    calls = prompt_tokens = completion_tokens = 0
    batch: list[ExtractionRequest] = []

    def add() -> None:
        nonlocal calls, prompt_tokens, completion_tokens
        for request, tokens in zip(batch, sizes.count([request.chunk.text for request in batch])):
            figures = request.images if images else ()
            if has_text(request.chunk.text, figures):
                calls += len(MODES[mode].prompts)
                prompt_tokens += sizes.prompt_tokens(tokens)
                completion_tokens += sizes.completion_tokens(len(request.chunk.text))
            calls += len(figures)
            prompt_tokens += len(figures) * (sizes.image_prompt + tokens)
            completion_tokens += len(figures) * sizes.image_reply
        batch.clear()

    for request in requests:
        batch.append(request)
        if len(batch) >= _BATCH:
            add()
    add()
    calls, prompt_tokens, completion_tokens = (
        round(each * REASKED) for each in (calls, prompt_tokens, completion_tokens)
    )
    cost = None if price is None else (prompt_tokens * price[0] + completion_tokens * price[1]) / _MILLION
    return Estimate(calls, prompt_tokens, completion_tokens, cost)


class PromptSizes:
    """The tokens of prompts and replies for chunks of a given size."""

    def __init__(self, mode: str, prompts: Prompts, limit: int, count_tokens: CountTokens | None = None) -> None:
        self._mode = MODES[mode]
        self._limit = limit
        self.count = count_tokens or _quarter
        self._fixed = sum(self._size(prompts, name, limit) for name in self._mode.prompts)
        self.image_prompt = self._size(prompts, self._mode.image, limit) + IMAGE_TOKENS
        self.image_reply = 5 * MODES["hyperedges"].tokens_per_fact

    def prompt_tokens(self, chunk_tokens: int) -> int:
        """Return the tokens of all prompts about a chunk."""
        return self._fixed + len(self._mode.prompts) * chunk_tokens

    def completion_tokens(self, chunk_chars: int) -> int:
        """Return the tokens of all replies about a chunk."""
        facts = min(self._limit, 1 + chunk_chars // CHARS_PER_FACT)
        return 20 + facts * self._mode.tokens_per_fact

    def _size(self, prompts: Prompts, name: str, limit: int) -> int:
        empty: dict[str, Any] = {"limit": limit, "entities": []}
        values = {key: empty.get(key, "") for key in prompts.get(name).values}
        messages: Sequence[Message] = prompts.render(name, **values)
        return sum(self.count([message.text for message in messages])) + 10 * len(messages)


def _quarter(texts: Sequence[str]) -> list[int]:
    return [-(-len(text) // CHARS_PER_TOKEN) for text in texts]
