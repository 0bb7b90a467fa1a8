"""The BM25 formula of FTS5, by hand and against SQLite."""

from __future__ import annotations

import math
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.graph.names.server.bm25 import MIN_WEIGHT, NameBM25

WORDS = st.sampled_from(["a", "b", "c", "d"])
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=7), min_size=1, max_size=20)


def test_scores_computed_by_hand():
    scores = NameBM25(names=4, tokens=8)
    assert scores.weight(1) == math.log(3.5 / 1.5)
    assert scores.weight(2) == MIN_WEIGHT and scores.weight(4) == MIN_WEIGHT
    # a name of average length with the word once: the weight itself
    assert scores.score([0.5], [1], 2) == pytest.approx(-0.5)
    # twice the average length: 2.2 / (1 + 1.2 * (0.25 + 1.5))
    assert scores.score([1.0], [1], 4) == pytest.approx(-2.2 / 3.1)
    assert scores.score([], [], 3) == 0.0


@given(TEXTS, st.lists(WORDS, min_size=1, max_size=4))
def test_scores_equal_sqlite(texts, words):
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE search USING fts5(norm, tokenize='ascii')")
    connection.executemany("INSERT INTO search(norm) VALUES (?)", [(" ".join(text),) for text in texts])
    query = " OR ".join(f'"{word}"' for word in words)
    expected = connection.execute("SELECT rowid, bm25(search) FROM search WHERE search MATCH ?", (query,)).fetchall()
    scores = NameBM25(len(texts), sum(map(len, texts)))
    weights = [scores.weight(sum(word in text for text in texts)) for word in words]
    assert dict(expected) == {
        number: scores.score(weights, [text.count(word) for word in words], len(text))
        for number, text in enumerate(texts, start=1)
        if set(words) & set(text)
    }
