"""The models, the settings and the cache that a build uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa.cache import Cache
from kgqa.cluster import Cluster, PlainLoop
from kgqa.corpus.documents.chunks import ChunkSize, CountTokens
from kgqa.errors import ModelUnavailable
from kgqa.llm.client import CORPUS_STAGES
from kgqa.llm.models import Models, open_models
from kgqa.llm.prompts import Prompts
from kgqa.rank.embedding.encoder import CachedEncoder, Precision, open_encoder
from kgqa.settings import Settings, resolve


@dataclass(frozen=True)
class TokenCounter:
    """Opens the embedding model that counts tokens; on another machine, that of this machine.

    `cache`: the cache folder. The others are arguments of `open_encoder`.
    """

    cache: str
    model: str | None
    url: str | None
    query_prompt: str | None
    precision: Precision

    def __call__(self) -> CountTokens:
        """Return a function that counts the tokens of texts. A process opens the model once."""
        encoder = open_encoder(
            Cache(Path(self.cache)),
            model=self.model,
            url=self.url,
            query_prompt=self.query_prompt,
            precision=self.precision,
        )
        if encoder is None:
            raise ModelUnavailable("The embedding model that counts tokens is not installed on this machine.")
        return encoder.count_tokens


@dataclass(frozen=True)
class Tools:
    """What a build uses: `encoder` and `models` are None if there are none; `cluster` runs work on other machines."""

    settings: Settings
    encoder: CachedEncoder | None
    models: Models | None
    prompts: Prompts
    cache: Cache
    cluster: Cluster = PlainLoop()  # noqa: RUF009  without state

    def counter(self, size: ChunkSize) -> TokenCounter | None:
        """Return what opens the counter of tokens; None if chunks of this size need none, or there is none."""
        if size.unit == "characters" or self.encoder is None:
            return None
        names = ("model", "model_url", "query_prompt", "precision")
        return TokenCounter(str(self.cache.folder), *(self.settings[f"rank.{name}"] for name in names))


@contextmanager
def open_tools(
    settings: Settings | None = None,
    *,
    models: bool = True,
    cluster: Cluster | None = None,
    say: Callable[[str], None] = lambda text: None,
    **given: Any,
) -> Iterator[Tools]:
    """Open the embedding model and the language models that the settings name.

    Args:
        settings: The settings; None to read them from files and environment variables.
        models: Whether to open the language models.
        cluster: An open cluster; None for this process alone.
        say: Called with a message for the user before the first run of a slow operation.
        given: Settings by keyword, such as `llm="openai:NAME"`, if `settings` is None.

    Raises:
        SettingsError: A setting is wrong.
        ModelUnavailable: A model cannot be used.
    """
    settings = settings or resolve(given)
    folder = settings["cache.folder"]
    limit = int(settings["cache.limit_gb"] * (1 << 30))
    cache = Cache(Path(folder) if folder else Cache.default().folder, limit_bytes=limit)
    encoder = None
    if settings["rank.embeddings"] == "auto":
        encoder = open_encoder(
            cache,
            model=settings["rank.model"],
            url=settings["rank.model_url"],
            query_prompt=settings["rank.query_prompt"],
            precision=settings["rank.precision"],
            say=say,
        )
    prompts = Prompts(Path(settings["llm.prompts"]) if settings["llm.prompts"] else None)
    opened = open_models(settings, stages=CORPUS_STAGES) if models else None
    try:
        yield Tools(settings, encoder, opened, prompts, cache, cluster or PlainLoop())
    finally:
        if opened is not None:
            opened.close()
