"""Vectors in LanceDB: the same results as those in files, versions, what is written again, crashes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from kgqa.corpus.index import lance_vectors
from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.index.lance_vectors import LanceVectors
from kgqa.corpus.index.vector_files import VectorFiles
from kgqa.corpus.retrieve.opening import open_retriever
from kgqa.errors import SettingsError, StoreUnavailable
from tests.corpus.index.test_vectors import PASSAGES, digest, unit
from tests.corpus.memory_corpus import corpus_of
from tests.corpus.word_encoder import WordEncoder


@pytest.fixture
def stores(tmp_path):
    return VectorFiles(tmp_path / "files", 8), LanceVectors(str(tmp_path / "lance"), 8, prefix="c1")


@pytest.mark.parametrize("scan_from", [0, 5_000])
def test_results_are_those_of_files(stores, monkeypatch, scan_from):
    monkeypatch.setattr(lance_vectors, "_SCAN_FROM", scan_from)
    rng = np.random.default_rng(1)
    vectors = [unit(rng, count) for count in rng.integers(1, 6, 300)]
    vectors[7] = vectors[31] = vectors[200]  # ties
    rows = {
        "chunk": [(f"urn:'{number:03}", digest(number)) for number in range(300)],
        "entity": [("urn:e", digest(5)), ("urn:f", digest(5))],  # the text of a chunk is the name of two entities
        "statement": [],
    }
    queries = np.concatenate((unit(rng, 20), vectors[7][:1], vectors[9]))
    found, in_order = [], []
    for store in stores:
        store.put([(digest(number), each) for number, each in enumerate(vectors[:150])])
        store.put([(digest(number), each) for number, each in enumerate(vectors[150:], 150)])
        assert store.known([digest(1), digest(299), digest(300)]) == {digest(1), digest(299)}
        snapshot = store.snapshot(store.publish(rows))
        iris, array = snapshot.vectors("chunk")
        found.append([snapshot.search(kind, queries, k) for kind in rows for k in (1, 5, 40, 400)])
        in_order.append(list(iris))
        assert array.shape == (sum(map(len, vectors)), 8) and array.dtype == np.float32
    for one, other in zip(*([best for searches in each for best in searches] for each in found)):
        assert [iri for iri, _ in one] == [iri for iri, _ in other]
        assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=2e-6)
    assert in_order[0] == in_order[1]
    assert [iri for iri, _ in found[1][1][20][:3]] == ["urn:'007", "urn:'031", "urn:'200"]


def test_versions_stay_as_they_were_published(tmp_path):
    rng = np.random.default_rng(2)
    store = LanceVectors(str(tmp_path), 8)
    store.put([(digest(number), unit(rng, 2)) for number in range(4)])
    first = store.publish({"chunk": [("a", digest(0)), ("b", digest(1)), ("c", digest(2))]})
    before = store.snapshot(first)
    written = sum(file.stat().st_size for file in tmp_path.rglob("data/*"))
    second = store.publish({"chunk": [("b", digest(1)), ("c", digest(3)), ("d", digest(1))]})
    store.discard(second)
    assert sum(file.stat().st_size for file in tmp_path.rglob("data/*")) < 3 * written
    assert before.vectors("chunk")[0] == ["a", "a", "b", "b", "c", "c"] == store.snapshot(first).vectors("chunk")[0]
    again = LanceVectors(str(tmp_path), 8)
    iris, array = again.snapshot(second).vectors("chunk")
    assert iris == ["b", "b", "c", "c", "d", "d"] and (array[:2] == array[4:]).all()
    assert again.known([digest(number) for number in range(4)]) == {digest(1), digest(3)}
    with pytest.raises(ValueError, match="not put"):
        again.publish({"chunk": [("a", digest(0))]})
    for version in ("chunk:99", "nothing:1", "chunk", "v1"):
        with pytest.raises(ValueError):
            again.snapshot(version)


def test_killed_writer(tmp_path, monkeypatch):
    """What was put is kept; a version that was not finished does not show."""
    rng = np.random.default_rng(3)
    store = LanceVectors(str(tmp_path), 8)
    store.put([(digest(number), unit(rng, 1)) for number in range(3)])
    version = store.publish({"chunk": [("a", digest(0))], "entity": [("e", digest(2))]})
    monkeypatch.setattr(LanceVectors, "_arrange", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        store.publish({"chunk": [("a", digest(1)), ("b", digest(0))], "entity": []})
    monkeypatch.undo()
    again = LanceVectors(str(tmp_path), 8)
    assert again.snapshot(version).vectors("chunk")[0] == ["a"]
    assert again.known([digest(0), digest(1), digest(2)]) == {digest(0), digest(1), digest(2)}
    snapshot = again.snapshot(again.publish({"chunk": [("a", digest(1)), ("b", digest(0))], "entity": []}))
    assert snapshot.vectors("chunk")[0] == ["a", "b"] and snapshot.vectors("entity")[0] == []


def test_index_of_many_vectors(tmp_path, monkeypatch):
    """It finds nearly all that is closest, with exact cosines, also among vectors that were added later."""
    monkeypatch.setattr(lance_vectors, "INDEXED_FROM", 2_000)
    rng = np.random.default_rng(4)
    vectors = unit(rng, 2_100, 32)
    files, store = VectorFiles(tmp_path / "f", 32), LanceVectors(str(tmp_path / "l"), 32)
    queries = vectors[::50] + unit(rng, 1, 32) / 8
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    found = []
    for each in (files, store):
        each.put([(digest(number), vector[None]) for number, vector in enumerate(vectors)])
        rows = [(f"urn:{number}", digest(number)) for number in range(2_100)]
        each.publish({"chunk": rows[:2_050]})
        snapshot = each.snapshot(each.publish({"chunk": rows}))
        found.append(snapshot.search("chunk", queries, 10))
    assert snapshot._is_indexed["chunk"]
    common = [len(dict(exact).keys() & dict(fast).keys()) / 10 for exact, fast in zip(*found)]
    assert np.mean(common) > 0.95
    assert found[1][0][0][1] == pytest.approx(found[0][0][0][1], abs=2e-6)


def test_index_of_a_corpus(tmp_path):
    """Retrievers give the same pieces; only new texts are embedded."""
    expected = open_retriever(CorpusIndex.open(tmp_path / "files", corpus_of(PASSAGES), WordEncoder()))
    encoder = WordEncoder()
    size = encoder.encode_questions(["?"]).shape[1]
    store = LanceVectors(str(tmp_path / "lance"), size)
    with CorpusIndex.open(tmp_path / "index", corpus_of(PASSAGES), encoder, store=store) as index:
        questions = ["Where is the treasure?", "other"]
        assert open_retriever(index).search(questions, 3) == expected.search(questions, 3)
    encoder.encoded.clear()
    changed = [*PASSAGES[:2], ("New", "A new text.", [("New text", "is", "new")])]
    store = LanceVectors(str(tmp_path / "lance"), size)
    CorpusIndex.open(tmp_path / "index", corpus_of(changed, seq=2), encoder, store=store)
    assert sorted(encoder.encoded) == ["New\nA new text.", "New text", "New text is new", "new"]
    assert not (tmp_path / "index" / "vectors").exists()


def test_addresses(tmp_path):
    for uri in ("db://cloud", "http://x", "postgres://x"):
        with pytest.raises(SettingsError, match="not the URI"):
            LanceVectors(uri, 8)
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreUnavailable):
        LanceVectors(str(tmp_path / "file"), 8).put([(digest(1), np.ones((1, 8), np.float32))])


def test_import_is_lazy():
    code = "import sys, kgqa.corpus.index.lance_vectors; sys.exit('lancedb' in sys.modules or 'pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
