"""Models of the sentence-transformers library, run on torch."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kgqa.errors import ModelUnavailable
from kgqa.rank.embedding.tokens import UNKNOWN_LIMIT, Spans, estimated_spans, exact_spans, without_limit
from kgqa.text.hints import Install
from kgqa.text.words import clean

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BATCH_SIZE = 64
_SAMPLE = 4096


class TorchEncoder:
    """Any sentence-transformers model, run on torch. Code inside a model's folder is never run. Thread-safe.

    Attributes:
        name: Name in the cache; a model with other weights or another tokenizer has another name.
        size: The length of the vectors.
        query_prompt: The text that the model expects before a question.
        max_tokens: How many tokens of a text the model reads, without the special ones.
    """

    def __init__(self, model: str, *, say: Callable[[str], None] = lambda text: None) -> None:
        """Load the model.

        Args:
            model: Its folder, or its name on the Hugging Face Hub. If it is not on this machine, it is downloaded,
                unless HF_HUB_OFFLINE is set.
            say: Called with a message for the user before a model is loaded by its name.

        Raises:
            ModelUnavailable: The library is missing or cannot load the model.
        """
        if importlib.util.find_spec("sentence_transformers") is None:
            raise ModelUnavailable(f"The embedding model {model} needs sentence-transformers: {Install('sbert')}")
        from transformers.utils import logging

        folder = Path(model).expanduser()
        if not folder.is_dir():
            say(f"Loading the embedding model {model}; it is downloaded once...")
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        self._lock = threading.Lock()
        try:
            self.model = _loaded(str(folder) if folder.is_dir() else model)
            self.size = self.encode(["?"]).shape[1]
        except Exception as error:  # several libraries raise exceptions of their own
            raise ModelUnavailable(
                f"The embedding model {model} cannot be loaded: {clean(str(error))[:300]}",
                "Set rank.model to the folder of a model, or to the name of another one on the Hugging Face Hub.",
            ) from error
        self.query_prompt = self.model.prompts.get("query") or ""
        tokenizer = getattr(self.model.tokenizer, "backend_tokenizer", None)
        self._unlimited = without_limit(tokenizer) if tokenizer else None
        special = tokenizer.num_special_tokens_to_add(False) if tokenizer else 2
        self.max_tokens = max(1, int(self.model.max_seq_length or UNKNOWN_LIMIT) - int(special))
        digest = hashlib.sha256(f"{self.model}\0{tokenizer and tokenizer.to_str()}\0{self.query_prompt}".encode())
        for weights in self.model.state_dict().values():  # training changes the beginning of each tensor, too
            digest.update(weights.reshape(-1)[:_SAMPLE].float().cpu().numpy().tobytes())
        self.name = f"{file_slug(folder.resolve().name if folder.is_dir() else model)}-{digest.hexdigest()[:12]}"

    def token_spans(self, texts: Sequence[str]) -> list[Spans]:
        """Return where the tokens of texts stand, by estimate if the model's tokenizer does not tell."""
        return exact_spans(self._unlimited, texts) if self._unlimited else estimated_spans(texts)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 of shape (len(texts), size)."""
        with self._lock:
            # without prompt="", the library would put the model's default prompt before every string
            vectors = self.model.encode(
                list(texts), batch_size=BATCH_SIZE, normalize_embeddings=True, show_progress_bar=False, prompt=""
            )
        return np.asarray(vectors, dtype=np.float32)


def _loaded(model: str) -> SentenceTransformer:
    """Load a model from this machine; download it only if it is not there."""
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(model, trust_remote_code=False, local_files_only=True)
    except Exception:  # several libraries raise exceptions of their own
        if Path(model).is_dir():
            raise
        return SentenceTransformer(model, trust_remote_code=False)


def file_slug(name: str) -> str:
    """Turn a model's name into a file name."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:60] or "model"
