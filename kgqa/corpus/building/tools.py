"""The models, the settings and the cache that a build uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from kgqa.cluster import Cluster, PlainLoop
from kgqa.corpus.documents.chunks import ChunkSize, CountTokens
from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.graph.store import Store
from kgqa.llm.client import CORPUS_STAGES
from kgqa.llm.models import ADD_MODEL, Models, open_models
from kgqa.llm.prompts import Prompts
from kgqa.rank.embedding.encoder import CachedEncoder, encoder_of, open_encoder
from kgqa.settings.values import Settings, resolve
from kgqa.storage.cache import Cache

TEXTS_AT_ONCE = 64
"""How many texts are embedded in one task of a cluster."""


@dataclass(frozen=True)
class LocalEncoder:
    """Opens the embedding model of the machine that it is sent to. A process opens the model once.

    `cache`: the cache folder. The others are arguments of `open_encoder`.
    """

    cache: str
    model: str | None
    url: str | None
    query_prompt: str | None

    def open(self) -> CachedEncoder:
        """Return the model. Raises ModelUnavailable if it is not installed."""
        encoder = open_encoder(
            Cache(Path(self.cache)),
            model=self.model,
            url=self.url,
            query_prompt=self.query_prompt,
        )
        if encoder is None:
            raise ModelUnavailable("The embedding model is not installed on a machine of the cluster.")
        return encoder

    def counter(self) -> CountTokens:
        """Return a function that counts the tokens of texts."""
        return self.open().count_tokens

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts."""
        return self.open().encode_once(texts)


class SpreadEncoder:
    """The embedding model for the index, which a cluster helps to run; see `kgqa.corpus.index.windows.TextEncoder`."""

    def __init__(self, encoder: CachedEncoder, everywhere: LocalEncoder, cluster: Cluster) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._everywhere = everywhere
        self._cluster = cluster

    @property
    def max_tokens(self) -> int:
        return self._encoder.max_tokens

    @property
    def at_once(self) -> int:
        """How many texts keep all machines busy."""
        return 4 * TEXTS_AT_ONCE * max(4, self._cluster.workers)

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return self._encoder.token_spans(texts)

    def encode_questions(self, texts: Sequence[str]) -> np.ndarray:
        return self._encoder.encode_questions(texts)

    def encode_once(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of texts; some dozens of them are a task for a machine."""
        parts = [texts[start : start + TEXTS_AT_ONCE] for start in range(0, len(texts), TEXTS_AT_ONCE)]
        if len(parts) < 2:
            return self._encoder.encode_once(texts)
        return np.concatenate(list(self._cluster.map(self._everywhere.vectors, parts)))


class ManagedServer(Protocol):
    """A SPARQL server that this user runs on this machine (`kgqa.virtuoso.corpus_server`)."""

    def login(self) -> tuple[str, str]:
        """Return the name and the password of a user who may edit graphs."""
        ...

    def load(self, store: Store, quads: Path) -> None:
        """Load a file of N-Quads in bulk into the server of a store."""
        ...

    def index_names(self, store: Store, graphs: Sequence[str]) -> None:
        """Let the names in some graphs be found by full-text search."""
        ...


def _no_server(url: str) -> ManagedServer | None:
    return None


@dataclass(frozen=True)
class Tools:
    """What a build uses: `encoder` and `models` are None if there are none; `cluster` runs work on other machines.

    `max_cost`: the most that model calls of the build may cost, in USD; None for no limit. `server_at`: returns the
    server that this user runs at a URL; None if the user runs none there.
    """

    settings: Settings
    encoder: CachedEncoder | None
    models: Models | None
    prompts: Prompts
    cache: Cache
    cluster: Cluster = PlainLoop()  # noqa: RUF009  without state
    max_cost: float | None = None
    server_at: Callable[[str], ManagedServer | None] = _no_server

    def counter(self, size: ChunkSize) -> Callable[[], CountTokens] | None:
        """Return what opens the counter of tokens; None if chunks of this size need none, or there is none."""
        return None if size.unit == "characters" or self.encoder is None else self._everywhere.counter

    @property
    def index_encoder(self) -> CachedEncoder | SpreadEncoder | None:
        """The embedding model for the index. Only this machine has the key of a model on a server."""
        alone = isinstance(self.cluster, PlainLoop) or self.settings.rank.model_url
        return (
            self.encoder
            if self.encoder is None or alone
            else SpreadEncoder(self.encoder, self._everywhere, self.cluster)
        )

    @property
    def _everywhere(self) -> LocalEncoder:
        rank = self.settings.rank
        return LocalEncoder(str(self.cache.folder), rank.model, rank.model_url, rank.query_prompt)


@contextmanager
def open_tools(
    settings: Settings | None = None,
    *,
    models: bool = True,
    cluster: Cluster | None = None,
    server_at: Callable[[str], ManagedServer | None] = _no_server,
    say: Callable[[str], None] = lambda text: None,
    **given: Any,
) -> Iterator[Tools]:
    """Open the embedding model and the language models that the settings name.

    Args:
        settings: The settings; None to read them from files and environment variables.
        models: Whether to open the language models.
        cluster: An open cluster; None for this process alone.
        server_at: See `Tools`.
        say: Called with a message for the user before the first run of a slow operation.
        given: Settings by keyword, such as `llm="openai:NAME"`, if `settings` is None.

    Raises:
        SettingsError: A setting is wrong.
        ModelUnavailable: A model cannot be used.
    """
    settings = settings or resolve(given)
    cache = Cache(Path(settings.cache.folder)) if settings.cache.folder else Cache.default()
    encoder = encoder_of(settings.rank, cache, say=say)
    prompts = Prompts(Path(settings.llm.prompts) if settings.llm.prompts else None)
    opened = open_models(settings, stages=CORPUS_STAGES) if models else None
    if models and opened is None:
        for key in ("corpus.resolve", "corpus.summaries"):
            if settings.values[key] == "model":
                raise SettingsError(
                    f"The setting {key} model needs a language model.",
                    ADD_MODEL,
                )
    try:
        yield Tools(settings, encoder, opened, prompts, cache, cluster or PlainLoop(), server_at=server_at)
    finally:
        if opened is not None:
            opened.close()
