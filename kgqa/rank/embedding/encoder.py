"""Encoders that turn strings into sentence embeddings (SBERT; thesis, section 2.6), with a cache of the vectors.

The default model is all-MiniLM-L6-v2, from a Python package (`pip install kgqa[minilm]`). Any other model is selected
by its name, its folder, or the URL of a server.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from kgqa.errors import SettingsError
from kgqa.rank.embedding.onnx_encoder import OnnxEncoder, open_minilm
from kgqa.rank.embedding.remote import RemoteEncoder
from kgqa.rank.embedding.tokens import Spans
from kgqa.rank.embedding.torch_encoder import TorchEncoder
from kgqa.rank.embedding.vector_cache import VectorCache
from kgqa.settings.table import RankSettings
from kgqa.storage.cache import Cache
from kgqa.text.hints import Install

NO_MODEL = "No embedding model is installed, so paths are compared by the words they share with the question (BM25)."
_MAX_CACHED = 200_000


class CachedEncoder:
    """An encoder that looks for vectors in a cache before it computes them. Thread-safe.

    The vectors of questions stay in memory only, because the same question is rarely asked twice.

    Attributes:
        name: The encoder's name, different for each model, server and query prompt, because these change the
            vectors.
    """

    def __init__(
        self,
        encoder: OnnxEncoder | TorchEncoder | RemoteEncoder,
        vectors: VectorCache | None,
        *,
        query_prompt: str = "",
        name: str = "",
    ) -> None:
        self.name = name or encoder.name
        self._encoder = encoder
        self._disk = vectors
        self._query_prompt = query_prompt
        self._memories: dict[str, dict[str, np.ndarray]] = {"paths": {}, "questions": {}}

    @property
    def max_tokens(self) -> int:
        """How many tokens of a text the model reads."""
        return self._encoder.max_tokens

    def token_spans(self, texts: Sequence[str]) -> list[Spans]:
        """Return where the tokens of texts stand; by estimate if the model is on a server."""
        return self._encoder.token_spans(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has; by estimate if the model is on a server."""
        return list(map(len, self.token_spans(texts)))

    def encode_once(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of strings that are kept by the caller, such as chunks of documents; none are cached."""
        return self._encoder.encode(texts)

    def responds(self, seconds: float) -> bool:
        """Return whether the encoder's server replies within `seconds`; True for an encoder without a server."""
        return not isinstance(self._encoder, RemoteEncoder) or self._encoder.responds(seconds)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of strings that occur repeatedly, such as relations and paths."""
        return self._remembered("paths", texts, self._load)

    def encode_questions(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of questions or parts of questions; these vectors are not written to disk.

        The model's query prompt is put before each string.
        """
        prompt = self._query_prompt
        return self._remembered(
            "questions", texts, lambda missing: self._encoder.encode([prompt + text for text in missing])
        )

    def _remembered(
        self, kind: str, texts: Sequence[str], compute: Callable[[list[str]], Iterable[np.ndarray]]
    ) -> np.ndarray:
        memory = self._memories[kind]  # other threads may be reading this dictionary, so no entry is removed from it
        missing = [text for text in dict.fromkeys(texts) if text not in memory]
        if missing:
            memory.update(zip(missing, compute(missing)))
        if len(memory) > _MAX_CACHED:
            self._memories[kind] = {}
        return np.stack([memory[text] for text in texts]) if texts else np.empty((0, 0), dtype=np.float32)

    def _load(self, texts: list[str]) -> list[np.ndarray]:
        """Return vectors from the disk; compute and store those that are missing."""
        found = self._disk.get(texts, self._encoder.size or 0) if self._disk else {}
        missing = [text for text in texts if text not in found]
        if missing:
            # the cache on disk rounds to half precision; round new vectors too, so that all runs use equal vectors
            new = dict(zip(missing, self._encoder.encode(missing).astype(np.float16).astype(np.float32)))
            found |= new
            if self._disk:
                self._disk.put(new)
        return [found[text] for text in texts]


def cosines(encoder: CachedEncoder | None, question: str, texts: Sequence[str]) -> np.ndarray:
    """Return the cosine of a question and each of n texts, float64 of shape (n,); zeros without an encoder."""
    if encoder is None or not texts:
        return np.zeros(len(texts))
    found: np.ndarray = encoder.encode(list(texts)) @ encoder.encode_questions([question])[0]
    return found.astype(np.float64)


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
        say: Called with a message for the user before the packaged model is built or another one is loaded by its
            name, and when there is no model. Each message is sent once.

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
    if url and not model:
        raise SettingsError("rank.model_url needs the name of a model on that server: set rank.model too.")
    if url:
        encoder = RemoteEncoder(url, str(model))
    elif model:
        encoder = TorchEncoder(model, say=say)
    else:
        encoder = open_minilm(cache, say)
    if encoder is None:
        return None
    vectors = VectorCache(cache.entry("embeddings", f"{encoder.name}.sqlite"))
    if isinstance(encoder, RemoteEncoder):
        encoder.size = vectors.size or encoder.encode(["?"]).shape[1]  # reports an unreachable server
    prompt = encoder.query_prompt if query_prompt is None else query_prompt
    name = encoder.name
    if prompt != encoder.query_prompt:
        name += f"-prompt-{hashlib.sha256(prompt.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return CachedEncoder(encoder, vectors, query_prompt=prompt, name=name)
