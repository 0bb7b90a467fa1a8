"""Models of the sentence-transformers library: how to find, name in the cache, and run them on torch."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgqa.errors import ModelUnavailable
from kgqa.rank.embedding.tokens import UNKNOWN_LIMIT, Spans, estimated_spans, exact_spans, without_limit
from kgqa.text.hints import Install
from kgqa.text.words import clean

BATCH_SIZE = 64
_SECONDS = 10
_SAMPLES = 64
_SAMPLE_BYTES = 1 << 16
_MARKS = ("modules.json", "config.json")
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
            self.model = SentenceTransformer(files.source, trust_remote_code=False, local_files_only=files.is_local)
            self.size = self.encode(["?"]).shape[1]
        except Exception as error:  # several libraries raise exceptions of their own
            raise ModelUnavailable(
                f"The embedding model {files.source} cannot be loaded: {clean(str(error))[:300]}"
            ) from error
        self.query_prompt = self.model.prompts.get("query") or ""
        tokenizer = getattr(self.model.tokenizer, "backend_tokenizer", None)
        self._unlimited = without_limit(tokenizer) if tokenizer else None
        special = tokenizer.num_special_tokens_to_add(False) if tokenizer else 2
        self.max_tokens = max(1, int(self.model.max_seq_length or UNKNOWN_LIMIT) - int(special))

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
    if any((folder / file).is_file() for file in _MARKS):
        return ModelFiles(str(folder.resolve()), f"{file_slug(folder.resolve().name)}-{_digest(folder)}")
    if folder.exists() or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise ModelUnavailable(
            f"{name} is not the folder of an embedding model: it contains neither modules.json nor config.json."
        )
    if importlib.util.find_spec("huggingface_hub") is None:
        raise ModelUnavailable(f"The embedding model {name} needs sentence-transformers: {Install('sbert')}")
    from huggingface_hub import HfApi, try_to_load_from_cache

    full_name = name if "/" in name else f"sentence-transformers/{name}"
    try:
        for found in (try_to_load_from_cache(full_name, file) for file in _MARKS):
            if isinstance(found, str) and any(each.suffix in _WEIGHTS for each in _files(Path(found).parent)):
                snapshot = Path(found).parent
                return ModelFiles(str(snapshot), f"{file_slug(full_name)}-{snapshot.name[:12]}")
        # an unknown name fails here after 10 seconds, in a download after 90
        revision = HfApi().model_info(full_name, timeout=_SECONDS).sha or "unknown"
    except Exception as error:  # huggingface_hub and its HTTP library raise exceptions of their own
        raise ModelUnavailable(
            f"The embedding model {full_name} is not on this machine and cannot be downloaded "
            f"({clean(str(error))[:200]}).",
            "Set rank.model to a folder, or to another model on the Hugging Face Hub.",
        ) from error
    say(f"Downloading the embedding model {full_name} (once)...")
    return ModelFiles(full_name, f"{file_slug(full_name)}-{revision[:12]}", is_local=False)


def _files(folder: Path) -> list[Path]:
    """List the files in a model's folder and in the folder's direct subfolders."""
    return sorted(file for depth in ("*", "*/*") for file in folder.glob(depth) if file.suffix in _CONTENT)


def _digest(folder: Path) -> str:
    """Return a hash of a folder's content, 12 hexadecimal digits, independent of the folder's path.

    Files over 4 MiB are read only in samples.
    """
    digest = hashlib.sha256()
    for path in _files(folder):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder)}\0{size}\0".encode())
        with path.open("rb") as file:
            for start in range(0, size, max(_SAMPLE_BYTES, size // _SAMPLES)):
                file.seek(start)
                digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:12]


def file_slug(name: str) -> str:
    """Turn a model's name into a file name."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")[:60] or "model"
