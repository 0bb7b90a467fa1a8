"""The cache of embeddings on disk: precision, several users at the same time, and files that cannot be read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.rank.embedding.vector_cache import VectorCache

ONES = np.ones(3, dtype=np.float32)


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(blacklist_categories=("Cs",))),
        st.lists(st.floats(-1, 1, width=32), min_size=4, max_size=4),
        max_size=5,
    )
)
def test_vectors_have_half_precision(tmp_path_factory, vectors):
    given_vectors = {text: np.array(vector, dtype=np.float32) for text, vector in vectors.items()}
    file = tmp_path_factory.mktemp("vectors") / "model.sqlite"
    first = VectorCache(file)
    first.put(given_vectors)
    second = VectorCache(file)
    found = second.get([*given_vectors, "never put\x00"], 4)
    assert found.keys() == given_vectors.keys()
    for text, vector in found.items():
        assert vector.dtype == np.float32 and np.abs(vector - given_vectors[text]).max() < 1e-3


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "two objects"])
def test_many_vectors_and_concurrent_writes(tmp_path, shared):
    first = VectorCache(tmp_path / "model.sqlite")
    second = first if shared else VectorCache(tmp_path / "model.sqlite")

    def write(vectors: VectorCache, name: str) -> None:
        for i in range(50):
            vectors.put({f"{name} {i} {j}": np.array([i, j], dtype=np.float32) for j in range(12)})
            assert vectors.get([f"{name} {i} 7"], 2)[f"{name} {i} 7"].tolist() == [i, 7]

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, (first, second), ("one", "two")))
    texts = [f"{name} {i} {j}" for name in ("one", "two") for i in range(50) for j in range(12)]
    assert len(first.get(texts, 2)) == 1200


def fill(file) -> None:
    vectors = VectorCache(file)
    vectors.put({f"{number}" * 100: ONES for number in range(100)})
    vectors._connection.close()


def cut(file) -> None:
    fill(file)
    file.write_bytes(file.read_bytes()[:6000])


def overwrite(file) -> None:
    fill(file)
    file.write_bytes(file.read_bytes()[:4096] + b"\xff" * 20_000)


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda file: file.mkdir(), "unable to open"),
        (lambda file: file.write_bytes(b"this is no database" * 100), "not a database"),
        (lambda file: file.write_bytes(b"SQLite format 3\0"), "not a database"),
        (cut, "malformed"),
        (overwrite, "malformed"),
    ],
)
def test_unreadable_file_is_named_once_and_not_used(tmp_path, caplog, damage, why):
    file = tmp_path / "model.sqlite"
    damage(file)
    for _ in range(2):
        vectors = VectorCache(file)
        vectors.put({"a": ONES})
        assert vectors.get(["a"], 3) == {}
    (message,) = caplog.messages
    assert message.startswith(f"{file} cannot be read: ") and why in message and "remove it" in message


def test_folder_that_cannot_be_created_is_no_error(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    vectors = VectorCache(tmp_path / "file" / "model.sqlite")
    vectors.put({"a": ONES})
    assert vectors.get(["a"], 3) == {} and not caplog.records


def test_damaged_vectors_are_left_out(tmp_path):
    vectors = VectorCache(tmp_path / "model.sqlite")
    vectors.put(dict.fromkeys(("whole", "odd", "short"), ONES))
    for text, blob in (("odd", b"12345"), ("short", b"12")):
        vectors._connection.execute("UPDATE vectors SET vector = ? WHERE text = ?", (blob, text))
    assert list(vectors.get(["whole", "odd", "short"], 3)) == ["whole"]
