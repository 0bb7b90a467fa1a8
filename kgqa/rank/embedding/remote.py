"""Embeddings from a server with an OpenAI-compatible `/v1/embeddings`.

The API key is read from the environment variable KGQA_EMBEDDINGS_KEY or the file of keys, and sent only to that server.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from kgqa.errors import ModelRefused, ModelUnavailable
from kgqa.net.servers import base_url, redirect_target, usable_key
from kgqa.rank.embedding.tokens import UNKNOWN_LIMIT, estimated_spans
from kgqa.rank.embedding.torch_encoder import file_slug
from kgqa.settings.keys import find_key
from kgqa.storage.loading import convert
from kgqa.text.hints import Install
from kgqa.text.words import clean

EMBEDDINGS_KEY_VARIABLE = "KGQA_EMBEDDINGS_KEY"
BATCH_SIZE = 64
SECONDS = 120.0
RETRIES = 2
_REFUSED_TEXTS = (400, 413, 422)
"""HTTP statuses that report a problem with the strings sent, not with the server."""
LARGEST_REPLY = 32 << 20
"""Most bytes of a decompressed reply: 64 vectors of 16,000 numbers, 30 characters per number."""


class _Embedding(msgspec.Struct):
    index: int
    embedding: list[float]


class _Reply(msgspec.Struct):
    data: list[_Embedding]


class RemoteEncoder:
    """An embedding model on a server. Thread-safe.

    A batch that the server refuses is halved, because servers accept different numbers of texts in a request. The size
    that worked is kept for further calls.

    Attributes:
        size: The length of the vectors; None until the first reply.
    """

    query_prompt = ""
    max_tokens = UNKNOWN_LIMIT
    token_spans = staticmethod(estimated_spans)

    def __init__(self, url: str, model: str, *, size: int | None = None) -> None:
        """Prepare the client without sending anything.

        Raises:
            SettingsError: The URL cannot be used.
            ModelUnavailable: The client library is missing.
        """
        if importlib.util.find_spec("openai") is None:
            raise ModelUnavailable(f"rank.model_url needs the openai library: {Install('openai')}")
        self.url = base_url(url, of="embeddings", key=EMBEDDINGS_KEY_VARIABLE)
        self.model = model
        self.size = size
        self._batch_size = BATCH_SIZE
        self.name = f"{file_slug(model)}-{hashlib.sha256(f'{self.url} {model}'.encode()).hexdigest()[:12]}"
        self._key = usable_key(find_key(EMBEDDINGS_KEY_VARIABLE, self.url), EMBEDDINGS_KEY_VARIABLE)
        from kgqa.net.model_server import ModelServer

        self._server = ModelServer(
            self.url, self._key, timeout=SECONDS, is_openai=False, retries=RETRIES, largest=LARGEST_REPLY
        )

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 of shape (len(texts), size).

        Raises:
            ModelUnavailable: The server cannot be reached or its reply cannot be used.
            ModelRefused: The server refuses even a single text.
        """
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        parts: list[np.ndarray] = []
        start, size = 0, self._batch_size
        while start < len(texts):
            batch = texts[start : start + size]
            try:
                parts.append(self._batch(batch))
                start += len(batch)
            except ModelRefused:
                if len(batch) == 1:
                    raise
                size = len(batch) // 2
        self._batch_size = size
        return np.concatenate(parts)

    def responds(self, seconds: float) -> bool:
        """Return whether the server sends any reply within `seconds`."""
        return self._server.responds(seconds)

    def _batch(self, texts: Sequence[str]) -> np.ndarray:
        from openai import APIConnectionError, APIStatusError, OpenAIError

        # servers refuse an empty string
        sent = [text if text.strip() else "." for text in texts]
        create = self._server.api.embeddings.with_raw_response.create
        # errors are not chained, because a server's message may contain the key
        try:
            reply = create(model=self.model, input=sent, encoding_format="float")
            vectors = self._read(reply.http_response.json(), len(sent))
        except (OpenAIError, ValueError, RecursionError) as error:
            refused = error if isinstance(error, APIStatusError) else None
            if refused and (target := redirect_target(refused.response)):
                raise self._failure(
                    f"the server redirects to {target}, and redirects are not followed. If you trust that address, "
                    "set rank.model_url to it"
                ) from None
            cause = error.__cause__ if isinstance(error, APIConnectionError) else None
            failure = self._failure(str(cause) if cause else f"{type(error).__name__}: {error}")
            if refused and refused.status_code in _REFUSED_TEXTS:
                raise ModelRefused(str(failure)) from None
            raise failure from None
        if self.size is None:
            self.size = vectors.shape[1]
        if vectors.shape[1] != self.size:
            raise self._failure(
                f"the server's vectors have {vectors.shape[1]} numbers, but the vectors in the cache have {self.size}. "
                "Clear the cache: kgqa cache clear"
            )
        unit: np.ndarray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return unit

    def _read(self, reply: Any, count: int) -> np.ndarray:
        try:
            data = convert(reply, _Reply).data
        except ValueError as error:
            said = reply.get("error") if isinstance(reply, dict) else None
            raise self._failure(f"the server's reply contains no embeddings: {said or error}") from None
        if sorted(item.index for item in data) != list(range(count)):
            raise self._failure(
                f"the server sent {len(data)} embeddings for {count} texts, or did not number the embeddings"
            )
        lists = [item.embedding for item in sorted(data, key=lambda item: item.index)]
        vectors = np.array(lists) if len(set(map(len, lists))) == 1 else np.empty(0)
        norms = np.linalg.norm(vectors, axis=-1)
        if not vectors.size or not ((norms > 0) & (norms < np.inf)).all():
            raise self._failure("the server's embeddings are not vectors of equal length, or one is zero or infinite")
        return vectors

    def _failure(self, cause: str) -> ModelUnavailable:
        if self._key:
            cause = cause.replace(self._key, "***")
        return ModelUnavailable(
            f"The embedding model {self.model} at {self.url} cannot be used: {clean(cause)[:300]}.",
            "Check the URL, the model's name and, if the server needs one, the API key: "
            f"`kgqa keys set {self.url}` or the environment variable {EMBEDDINGS_KEY_VARIABLE}.",
        )
