"""Small embedding models in ONNX. They run without torch; the import of torch alone takes seconds.

The packaged MiniLM is built from its weights. Of other models, those of one structure are exported by torch: a
BERT-like transformer whose token vectors are averaged and scaled to length one. The vectors of an export are compared
with those of sentence-transformers; if they differ, the model runs on torch.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kgqa.errors import ModelUnavailable
from kgqa.rank.embedding.bert_graph import write_bert
from kgqa.rank.embedding.sentence_models import BATCH_SIZE, ModelFiles, TorchEncoder
from kgqa.rank.embedding.tokens import Spans, TokenSpans
from kgqa.storage.cache import Cache
from kgqa.text.hints import Install, Option

MINIMUM_COSINE = 0.9999
MAX_PARAMETERS = 200_000_000
MODEL_TYPES = frozenset(["bert", "distilbert", "roberta", "xlm-roberta", "camembert", "mpnet", "electra", "albert"])
_CHECKED = (
    "which city is the capital?", "sports team mascot", "people born here, place of birth", "é ü 東京", "a", "",
    "PARASITE", "a text of too many words, " * 150,
)  # fmt: skip
# values for the packaged MiniLM, which has no encoder.json
_DEFAULTS = {"max_tokens": 256, "pad_id": 0, "pad_token": "[PAD]", "size": 384, "query_prompt": ""}


class OnnxEncoder:
    """A BERT-like encoder with mean pooling, run by onnxruntime.

    Attributes:
        size: The length of the vectors.
        query_prompt: The text that the model expects before a question.
        max_tokens: How many tokens of a text the model reads, without the special ones.
    """

    def __init__(self, folder: Path, name: str) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        about: dict[str, Any] = dict(_DEFAULTS)
        if (folder / "encoder.json").is_file():
            about |= json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
        self.name = name
        self.size = int(about["size"])
        self.query_prompt = str(about["query_prompt"])
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(4, os.cpu_count() or 1)
        # threads that wait for work would use the processors that other questions need
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(about["max_tokens"])
        self._tokenizer.enable_padding(pad_id=about["pad_id"], pad_token=about["pad_token"])
        self._lock = threading.Lock()
        self._whole = TokenSpans(self._tokenizer)
        self.max_tokens = int(about["max_tokens"]) - int(self._tokenizer.num_special_tokens_to_add(False))

    def token_spans(self, texts: Sequence[str]) -> list[Spans]:
        """Return where the tokens of texts stand, also of those beyond `max_tokens`."""
        return self._whole.of(texts)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 of shape (len(texts), size)."""
        if not texts:
            return np.empty((0, 0), dtype=np.float32)
        # strings of similar length share a batch; this saves padding
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        vectors = np.empty((len(texts), self.size), dtype=np.float32)
        for start in range(0, len(order), BATCH_SIZE):
            indices = order[start : start + BATCH_SIZE]
            vectors[indices] = self._batch([texts[i] for i in indices])
        return vectors

    def _batch(self, texts: list[str]) -> np.ndarray:
        with self._lock:
            encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([item.ids for item in encoded], dtype=np.int64)
        mask = np.array([item.attention_mask for item in encoded], dtype=np.int64)
        hidden = self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
        weights = mask[:, :, None].astype(np.float32)
        pooled = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        vectors: np.ndarray = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
        return vectors


def open_local_encoder(
    cache: Cache, files: ModelFiles, say: Callable[[str], None]
) -> OnnxEncoder | TorchEncoder | None:
    """Open a model with ONNX, or with torch if it cannot be exported; return None if neither library is installed.

    Args:
        cache: The cache that holds the exported model.
        files: The model.
        say: Called with a message for the user before the model is built or exported.

    Raises:
        ModelUnavailable: The model cannot be loaded; or its export is damaged, and torch is missing for a new export.
    """
    runtime = _installed("onnxruntime", "tokenizers")
    builds = runtime and files.is_packaged and _installed("onnx", "safetensors")
    torch = _installed("sentence_transformers")
    folder = cache.entry("models", files.key)
    if runtime and (folder / "model.onnx").is_file():
        try:
            return OnnxEncoder(folder, files.key)
        except Exception as error:  # onnxruntime has its own exceptions for a damaged file
            shutil.rmtree(folder, ignore_errors=True)
            if not torch and not builds:
                raise ModelUnavailable(
                    f"The embedding model in the cache was damaged ({error}) and has been removed.",
                    f"To prepare the model again, first install: {Install('minilm')}",
                ) from error
    if builds:
        say("Preparing the embedding model (once, about 2 seconds)...")
        try:
            return _build(files, folder)
        except (OSError, ValueError) as error:
            if not torch:
                raise ModelUnavailable(
                    f"The embedding model cannot be prepared ({error}).",
                    "To rank paths by words: ",
                    Option("embeddings", "off"),
                ) from error
    if not torch:
        return None
    encoder = TorchEncoder(files)
    exports = runtime and _installed("onnx") and not (folder / "torch-only").is_file()
    if not exports or not _can_be_exported(encoder.model):
        return encoder
    say("Preparing the embedding model for fast use with torch (once, about 15 seconds)...")
    try:
        return _export(encoder, folder)
    except OSError:
        return encoder  # the cache cannot be written
    except Exception:  # noqa: BLE001  # torch cannot export the model, or onnxruntime cannot run it
        cache.write_text(folder / "torch-only", "")
        return encoder


def _installed(*names: str) -> bool:
    return all(importlib.util.find_spec(name) for name in names)


def _can_be_exported(model: Any) -> bool:
    """Return whether the model is a small BERT-like transformer with mean pooling and no other layer."""
    kinds = [type(module).__name__ for module in model]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        return False
    transformer, pooling = model[0], model[1]
    return (
        pooling.get_config_dict().get("pooling_mode", _old_pooling_mode(pooling)) == "mean"
        and pooling.get_config_dict().get("include_prompt", True)
        and not getattr(transformer, "do_lower_case", False)
        and _bert(model).config.model_type in MODEL_TYPES
        and getattr(model.tokenizer, "is_fast", False)
        and model.tokenizer.padding_side == "right"
        and sum(each.numel() for each in model.parameters()) <= MAX_PARAMETERS
    )


def _old_pooling_mode(pooling: Any) -> str | None:
    """Return the pooling mode in sentence-transformers 5; that version has one switch per mode."""
    switches = {name: on for name, on in pooling.get_config_dict().items() if name.startswith("pooling_mode_")}
    return "mean" if [name for name, on in switches.items() if on] == ["pooling_mode_mean_tokens"] else None


def _bert(model: Any) -> Any:
    return getattr(model[0], "auto_model", None) or model[0].model


def _build(files: ModelFiles, folder: Path) -> OnnxEncoder:
    """Build the packaged MiniLM, and keep it in the cache if the cache can be written.

    Raises:
        OSError: The disk is full.
        ValueError: The package contains another model.
    """
    with contextlib.suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True)
    place = folder.parent if os.access(folder.parent, os.W_OK) else None  # None: the folder for temporary files
    with tempfile.TemporaryDirectory(prefix=".export-", dir=place) as scratch:
        temporary = Path(scratch) / "model"
        temporary.mkdir()
        write_bert(Path(files.source), temporary / "model.onnx")
        shutil.copyfile(Path(files.source, "tokenizer.json"), temporary / "tokenizer.json")
        encoder = OnnxEncoder(temporary, files.key)
        if place is not None and not (folder / "model.onnx").is_file():  # another process may have been faster
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.replace(temporary, folder)
    return encoder


def _export(reference: TorchEncoder, folder: Path) -> OnnxEncoder | TorchEncoder:
    """Export the model to ONNX in the cache; return `reference` if the vectors of the export differ."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder.parent) as scratch:
        temporary = Path(scratch) / "model"
        temporary.mkdir()
        model = reference.model
        _write_onnx(_bert(model), temporary / "model.onnx")
        # the library's configured tokenizer may differ from the tokenizer file in the model's folder
        model.tokenizer.backend_tokenizer.save(str(temporary / "tokenizer.json"))
        about = {
            "max_tokens": model.max_seq_length or model.tokenizer.model_max_length,
            "pad_id": model.tokenizer.pad_token_id,
            "pad_token": model.tokenizer.pad_token,
            "size": reference.size,
            "query_prompt": reference.query_prompt,
        }
        (temporary / "encoder.json").write_text(json.dumps(about), encoding="utf-8")
        encoder = OnnxEncoder(temporary, reference.name)
        cosines = (encoder.encode(_CHECKED) * reference.encode(_CHECKED)).sum(axis=1)
        shutil.rmtree(folder, ignore_errors=True)
        if not cosines.min() >= MINIMUM_COSINE:
            folder.mkdir()
            (folder / "torch-only").touch()
            return reference
        os.replace(temporary, folder)
        return encoder


def _write_onnx(bert: Any, file: Path) -> None:
    import warnings

    import torch

    class Encode(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert.eval().requires_grad_(False)

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    example = torch.ones((2, 8), dtype=torch.int64, device=bert.device)
    axes = {0: "batch", 1: "tokens"}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Encode(),
            (example, example),
            str(file),
            input_names=["input_ids", "attention_mask"],
            output_names=["hidden"],
            dynamic_axes={"input_ids": axes, "attention_mask": axes, "hidden": axes},
            opset_version=17,
            dynamo=False,
        )
