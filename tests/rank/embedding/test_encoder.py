"""The encoder: unit vectors equal to those of sentence-transformers, batching and caching."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from kgqa.rank.embedding.encoder import CachedEncoder, open_encoder
from kgqa.rank.embedding.onnx_encoder import OnnxEncoder, packaged_minilm
from kgqa.rank.embedding.tokens import estimated_spans
from kgqa.rank.embedding.vector_cache import VectorCache
from kgqa.storage.cache import Cache

TEXTS = [
    "which city is the capital?",
    "sports team mascot",
    "country national anthem, country capital",
    "person place of birth",
    "place of birth",
    "a",
    "",
    "???",
    "1868-09-03",
    "film directed by Bong Joon-ho",
    "PARASITE",
    "parasite",
    "é ü ß – “quoted” €5",
    "東京は日本の首都です",
    "Москва — столица России",
    "عاصمة مصر",
    "🙂🙃",
    "one two three " * 20,
    "a very long text beyond the limit of tokens " * 60,
    "Wer hat den Film gedreht, in dem die Schauspielerin die Hauptrolle spielt?",
]


def cosines(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    one, two = (array / np.linalg.norm(array, axis=1, keepdims=True) for array in (one, two))
    return (one * two).sum(axis=1)


@pytest.fixture(scope="module")
def onnx(encoder) -> OnnxEncoder:
    assert isinstance(encoder._encoder, OnnxEncoder)
    return encoder._encoder


@pytest.fixture(scope="module")
def vectors(onnx) -> np.ndarray:
    return onnx.encode(TEXTS)


def test_onnx_vectors_equal_sentence_transformers(onnx, vectors):
    from sentence_transformers import SentenceTransformer

    more = [
        "[MASK] [CLS] [UNK]",
        "e\u0301 \u200b\ufeff\x00\t x",
        "İstanbul ß ﬁ ①",
        "a" * 150,
        *("word " * n for n in range(250, 259)),
    ]
    model = SentenceTransformer(str(packaged_minilm()), device="cpu")
    reference = model.encode(TEXTS + more, show_progress_bar=False)
    assert np.abs(np.concatenate([vectors, onnx.encode(more)]) - reference).max() < 1e-5


def test_vectors_are_in_the_order_of_the_texts(onnx, vectors):
    few = TEXTS[:17]  # without the long ones
    again = onnx.encode((few * 4)[::-1])[::-1]  # more than one batch, each sorted by length
    assert cosines(again, np.concatenate([vectors[:17]] * 4)).min() > 0.9999


# ---- the cache of vectors ----


class CountingEncoder:
    """An encoder that counts the texts it computes."""

    def __init__(self, encoder: OnnxEncoder) -> None:
        self.name, self.size = encoder.name, encoder.size
        self.texts: list[str] = []
        self._encoder = encoder

    def encode(self, texts):
        self.texts += texts
        return self._encoder.encode(texts)


def test_cached_vectors_equal_computed_ones(onnx, tmp_path):
    counting = CountingEncoder(onnx)
    first = CachedEncoder(counting, VectorCache(tmp_path / "m.sqlite"))
    computed = first.encode(TEXTS)
    assert sorted(counting.texts) == sorted(TEXTS)

    nothing_new = CountingEncoder(onnx)
    second = CachedEncoder(nothing_new, VectorCache(tmp_path / "m.sqlite"))
    assert np.array_equal(second.encode(TEXTS[::-1])[::-1], computed)
    assert nothing_new.texts == []


# ---- the packaged model ----

WITHOUT_TORCH = """
import json, sys
from pathlib import Path
sys.modules.update(dict.fromkeys(sys.argv[2:]))  # as if these were not installed
from kgqa.rank.embedding.vector_cache import VectorCache
from kgqa.storage.cache import Cache
from kgqa.rank.embedding.encoder import open_encoder
told = []
vectors = open_encoder(Cache(Path(sys.argv[1])), say=told.append).encode(["sports team mascot"])
heavy = [name for name in ("torch", "transformers", "sentence_transformers", "onnx") if sys.modules.get(name)]
print(json.dumps({"heavy": heavy, "told": told, "shape": vectors.shape}))
"""


def test_prepared_model_runs_without_torch_and_onnx(encoder, encoder_cache):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(encoder_cache.folder)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"heavy": [], "told": [], "shape": [1, 384]}


def test_packaged_model_is_prepared_without_torch(encoder, tmp_path):
    absent = ("torch", "transformers", "sentence_transformers", "huggingface_hub")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path), *absent], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["heavy"] == ["onnx"] and len(seen["told"]) == 1
    assert [each.name for each in (tmp_path / "models").iterdir()] == [encoder.name]


def test_damaged_model_in_the_cache_is_built_again(encoder, tmp_path):
    file = tmp_path / "models" / encoder.name / "model.onnx"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"this is no model" * 1000)
    notes: list[str] = []
    again = open_encoder(Cache(tmp_path), say=notes.append)
    assert len(notes) == 1 and np.array_equal(again.encode(["a"]), encoder.encode(["a"]))
    assert file.stat().st_size > 80_000_000


# ---- questions, and many threads ----


def test_encoder_is_opened_once_per_process(encoder, encoder_cache):
    assert open_encoder(encoder_cache) is encoder
    assert open_encoder(encoder_cache, query_prompt="") is not encoder


def test_tokens_are_counted_beyond_the_models_limit(encoder, onnx):
    text = TEXTS[18]
    (spans,) = encoder.token_spans([text])
    assert onnx.max_tokens == 254 == encoder.max_tokens and len(spans) == 600 == encoder.count_tokens([text])[0]
    assert text[spans[-2][0] : spans[-1][1]] == "tokens" and encoder.count_tokens(["", "東京"]) == [0, 2]
    assert (encoder.encode_once(TEXTS[:2]) == onnx.encode(TEXTS[:2])).all()


def test_tokens_are_estimated_without_a_tokenizer():
    (spans,) = estimated_spans(["Müller's 東京"])
    assert spans == [(0, 4), (4, 6), (6, 7), (7, 8), (9, 10), (10, 11)]
