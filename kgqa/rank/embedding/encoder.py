"""Encoders that turn strings into sentence embeddings (SBERT; thesis, section 2.6), with a cache of the vectors.

The default model is all-MiniLM-L6-v2, from a Python package (`pip install kgqa[minilm]`). Any other model is selected
by its name, its folder, or the URL of a server.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.rank.embedding.onnx_encoder import OnnxEncoder, open_local_encoder
from kgqa.rank.embedding.remote import RemoteEncoder
from kgqa.rank.embedding.sentence_models import TorchEncoder, find_model, packaged_minilm
from kgqa.rank.embedding.tokens import UNKNOWN_LIMIT, Spans, estimated_spans
from kgqa.rank.embedding.vector_cache import VectorCache
from kgqa.settings.table import RankSettings
from kgqa.storage.cache import Cache
from kgqa.text.hints import Install

NO_MODEL = "No embedding model is installed, so paths are compared by the words they share with the question (BM25)."
_MAX_CACHED = 200_000


class Encoder(Protocol):
    """A model that turns strings into unit vectors, float32 of shape (len(texts), size). Thread-safe."""

    name: str

    def encode(self, texts: Sequence[str]) -> np.ndarray: ...


class CachedEncoder:
    """An encoder that looks for vectors in a cache before it computes them. Thread-safe.

    The vectors of questions stay in memory only, because the same question is rarely asked twice.

    Attributes:
        name: The encoder's name, different for each model, server and query prompt, because these change the
            vectors.
    """

    def __init__(
        self, encoder: Encoder, vectors: VectorCache | None, *, query_prompt: str = "", name: str = ""
    ) -> None:
        self.name = name or encoder.name
        self._encoder = encoder
        self._disk = vectors
        self._query_prompt = query_prompt
        self._memory: dict[str, np.ndarray] = {}
        self._questions: dict[str, np.ndarray] = {}

    @property
    def max_tokens(self) -> int:
        """How many tokens of a text the model reads."""
        return int(getattr(self._encoder, "max_tokens", UNKNOWN_LIMIT))

    def token_spans(self, texts: Sequence[str]) -> list[Spans]:
        """Return where the tokens of texts stand; by estimate if the model is on a server."""
        spans: Callable[[Sequence[str]], list[Spans]] = getattr(self._encoder, "token_spans", estimated_spans)
        return spans(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has; by estimate if the model is on a server."""
        return list(map(len, self.token_spans(texts)))

    def encode_once(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of strings that are kept by the caller, such as chunks of documents; none are cached."""
        return self._encoder.encode(texts)

    def responds(self, seconds: float) -> bool:
        """Return whether the encoder's server replies within `seconds`; True for an encoder without a server."""
        responds = getattr(self._encoder, "responds", None)
        return responds is None or responds(seconds)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of strings that occur repeatedly, such as relations and paths."""
        memory = self._memory  # other threads may be reading this dictionary, so no entry is ever removed from it
        missing = [text for text in dict.fromkeys(texts) if text not in memory]
        if missing and self._disk is not None:
            memory.update(self._disk.get(missing))
            missing = [text for text in missing if text not in memory]
        if missing:
            # the cache on disk rounds to half precision; round new vectors too, so that all runs use equal vectors
            new = self._encoder.encode(missing).astype(np.float16).astype(np.float32)
            found = dict(zip(missing, new))
            memory.update(found)
            if self._disk is not None:
                self._disk.put(found)
        if len(memory) > _MAX_CACHED:
            self._memory = {text: memory[text] for text in texts}
        return np.stack([memory[text] for text in texts]) if texts else np.empty((0, 0), dtype=np.float32)

    def encode_questions(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of questions or parts of questions; these vectors are not written to disk.

        The model's query prompt is put before each string.
        """
        memory = self._questions
        missing = [text for text in dict.fromkeys(texts) if text not in memory]
        if missing:
            memory.update(zip(missing, self._encoder.encode([self._query_prompt + text for text in missing])))
        found = np.stack([memory[text] for text in texts]) if texts else np.empty((0, 0), dtype=np.float32)
        if len(memory) > _MAX_CACHED:
            self._questions = {}
        return found


def open_encoder(
    cache: Cache,
    *,
    model: str | None = None,
    url: str | None = None,
    query_prompt: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> CachedEncoder | None:
    """Open an embedding model; return None if no model is named and the packaged MiniLM is not installed.

    Args:
        cache: The cache for vectors and exported models.
        model: The folder of a sentence-transformers model, or the model's name on the Hugging Face Hub. With `url`, the
            model's name on the server. None for the packaged MiniLM.
        url: Base URL of an OpenAI-compatible server. The server's API key is read from the environment variable
            KGQA_EMBEDDINGS_KEY.
        query_prompt: Text put before questions, never before paths; None for the prompt defined by the model, "" for
            no prompt.
        say: Called with a message for the user before an export or a download, and when there is no model. Each
            message is sent once.

    Raises:
        ModelUnavailable: The model is installed or named, but cannot be used.
        SettingsError: The arguments contradict each other.
    """
    key = (cache.folder, model, url, query_prompt)
    with _OPEN_LOCK:
        if key not in _OPEN_ENCODERS:
            _OPEN_ENCODERS[key] = _open(cache, model, url, query_prompt, say)
            if _OPEN_ENCODERS[key] is None:
                say(f"{NO_MODEL} To install a small model: {Install('minilm')}")
        return _OPEN_ENCODERS[key]


def encoder_of(
    settings: RankSettings, cache: Cache, *, say: Callable[[str], None] = lambda text: None
) -> CachedEncoder | None:
    """Open the embedding model that the settings name; None if they turn it off. For the rest, see `open_encoder`."""
    if settings.embeddings == "off":
        return None
    return open_encoder(
        cache, model=settings.model, url=settings.model_url, query_prompt=settings.query_prompt, say=say
    )


# each model is opened once per process and shared by all graphs, because opening takes 0.3 seconds and 100 MB
_OPEN_ENCODERS: dict[tuple[Path, str | None, str | None, str | None], CachedEncoder | None] = {}
_OPEN_LOCK = threading.Lock()


def _open(
    cache: Cache,
    model: str | None,
    url: str | None,
    query_prompt: str | None,
    say: Callable[[str], None],
) -> CachedEncoder | None:
    encoder: OnnxEncoder | TorchEncoder | RemoteEncoder | None
    encoder = _open_remote(cache, model, url) if url else _open_local(cache, model, say)
    if encoder is None:
        return None
    prompt = encoder.query_prompt if query_prompt is None else query_prompt
    name = encoder.name
    if prompt != encoder.query_prompt:
        name += f"-prompt-{hashlib.sha256(prompt.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    vectors = VectorCache(cache.entry("embeddings", f"{encoder.name}.sqlite"), encoder.size or 0)
    return CachedEncoder(encoder, vectors, query_prompt=prompt, name=name)


def _open_local(cache: Cache, model: str | None, say: Callable[[str], None]) -> OnnxEncoder | TorchEncoder | None:
    files = packaged_minilm() if model is None else find_model(model, say=say)
    if files is None:
        return None
    encoder = open_local_encoder(cache, files, say)
    if encoder is None and model is not None:
        raise ModelUnavailable(f"The embedding model {model} needs sentence-transformers: {Install('sbert')}")
    return encoder


def _open_remote(cache: Cache, model: str | None, url: str) -> RemoteEncoder:
    if not model:
        raise SettingsError("rank.model_url needs the name of a model on that server: set rank.model too.")
    encoder = RemoteEncoder(url, model)
    size_file = cache.entry("models", encoder.name) / "size"
    try:
        encoder.size = int(size_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        encoder.encode(["?"])  # the first reply gives the length of the vectors
        cache.write_text(size_file, str(encoder.size))
    return encoder
