"""Vectors in files: exact search, windows, what is embedded again, crashes and damage."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kgqa.corpus.index import vector_files, windows
from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.index.entries import IndexEntry
from kgqa.corpus.index.vector_files import VectorFiles
from kgqa.corpus.retrieve.opening import open_retriever
from kgqa.model import Piece
from tests.corpus.memory_corpus import corpus_of
from tests.corpus.word_encoder import WordEncoder

FILLER = " ".join(f"word{number}" for number in range(70))
PASSAGES = [
    ("Long", f"{FILLER}. The treasure lies in Samarkand."),
    ("Short", "Nothing of interest."),
    ("Other", FILLER.upper()),
]


def unit(rng, rows, size=8):
    array = rng.standard_normal((rows, size)).astype(np.float32)
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def digest(number):
    return f"{number:032x}"


@pytest.mark.parametrize("block", [1 << 16, 7])
def test_search_equals_all_comparisons_sorted(tmp_path, monkeypatch, block):
    monkeypatch.setattr(vector_files, "BLOCK", block)
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 4, 40)
    vectors = [unit(rng, count) for count in counts]
    vectors[7] = vectors[31]  # a tie
    store = VectorFiles(tmp_path, 8)
    store.put([(digest(number), each) for number, each in enumerate(vectors)])
    rows = {"chunk": [(f"urn:{number:02}", digest(number)) for number in range(40)], "entity": []}
    snapshot = store.snapshot(store.publish(rows))
    queries = np.concatenate((unit(rng, 4), vectors[7][:1]))
    for query, found in zip(queries, snapshot.search("chunk", queries, 10)):
        best = sorted((-round(float((each @ query).max()), 6), f"urn:{n:02}") for n, each in enumerate(vectors))
        assert [iri for iri, _ in found] == [iri for _, iri in best[:10]]
        assert [score for _, score in found] == pytest.approx([-score for score, _ in best[:10]], abs=2e-6)
    assert [iri for iri, _ in snapshot.search("chunk", queries[-1:], 2)[0]] == ["urn:07", "urn:31"]
    assert snapshot.search("entity", queries[:1], 3) == [[]] == snapshot.search("statement", queries[:1], 3)
    iris, array = snapshot.vectors("chunk")
    assert len(iris) == len(array) == sum(map(len, vectors))


def test_put_vectors_survive_a_crash(tmp_path):
    rng = np.random.default_rng(2)
    first, second = unit(rng, 2), unit(rng, 1)
    store = VectorFiles(tmp_path, 8)
    store.put([(digest(1), first)])
    store.put([(digest(2), second)])
    for name, kept in (("pending.vectors", {1}), ("pending.keys", {1})):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        for file in tmp_path.glob("pending.*"):
            (folder / file.name).write_bytes(file.read_bytes())
        (folder / name).write_bytes((tmp_path / name).read_bytes()[:-3])
        again = VectorFiles(folder, 8)
        assert again.known([digest(1), digest(2)]) == {digest(each) for each in kept}
        again.put([(digest(2), second)])
        snapshot = VectorFiles(folder, 8)
        snapshot = snapshot.snapshot(snapshot.publish({"chunk": [("a", digest(1)), ("b", digest(2))]}))
        assert (snapshot.vectors("chunk")[1] == np.concatenate((first, second))).all()


def test_version_without_some_vectors_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not put"):
        VectorFiles(tmp_path, 8).publish({"chunk": [("a", digest(1))]})


def test_windows_overlap_and_contain_the_whole_text():
    encoder = WordEncoder()
    text = " ".join(f"w{number}" for number in range(50))
    entry = IndexEntry(Piece("a", "chunk", text), text, "A title")
    found = windows.window_texts(encoder, [entry, IndexEntry(Piece("b", "chunk", "short"), "short")])
    assert found[1] == ["short"] and all(each.startswith("A title\n") for each in found[0])
    bodies = [each.removeprefix("A title\n").split() for each in found[0]]
    assert all(len(body) == 14 for body in bodies) and set(text.split()) == {word for body in bodies for word in body}
    assert all(one[-1] in other and one[-3] in other for one, other in pairwise(bodies))


def test_head_takes_at_most_a_quarter_of_a_window():
    title = " ".join(f"t{number}" for number in range(40))
    (found,) = windows.window_texts(WordEncoder(), [IndexEntry(Piece("a", "chunk", "x"), "body " * 20, title)])
    assert found[0].split("\n")[0] == "t0 t1 t2 t3" and len(found) > 1


def test_fact_in_the_last_sentence_is_found(tmp_path, monkeypatch):
    corpus, query = corpus_of(PASSAGES), "Where is the treasure?"
    found = open_retriever(CorpusIndex.open(tmp_path / "a", corpus, WordEncoder()), channels=["dense"])
    assert found.search([query], 1)[0][0].text.startswith("Long")
    monkeypatch.setattr(windows, "_parts", lambda tokens, size: [])
    found = open_retriever(CorpusIndex.open(tmp_path / "b", corpus, WordEncoder()), channels=["dense"])
    assert not found.search([query], 1)[0][0].text.startswith("Long"), "windows make no difference"


def test_only_new_texts_are_embedded(tmp_path):
    encoder, progress = WordEncoder(), []
    CorpusIndex.open(tmp_path, corpus_of(PASSAGES), encoder)
    encoder.encoded.clear()
    CorpusIndex.open(tmp_path, corpus_of(PASSAGES), encoder)
    assert encoder.encoded == []
    changed = [*PASSAGES[:2], ("New", "A new text.", [("New text", "is", "new")])]
    index = CorpusIndex.open(tmp_path, corpus_of(changed, seq=2), encoder, progress=lambda *each: progress.append(each))
    assert sorted(encoder.encoded) == ["New\nA new text.", "New text", "New text is new", "new"]
    assert progress == [(1, 4), (3, 4), (4, 4)]
    texts = [each.text.split("\n")[0] for each in open_retriever(index).search(["other"], 9)[0]]
    assert sorted(texts) == ["Long", "New", "Short"]
    encoder.encoded.clear()
    CorpusIndex.open(tmp_path, corpus_of(changed, seq=2), WordEncoder("another model"))
    assert CorpusIndex.open(tmp_path, corpus_of(changed, seq=2)).vectors is None


def test_interrupted_embedding_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr("kgqa.corpus.index.generation.EMBEDDED_AT_A_TIME", 1)
    encoder = WordEncoder()
    stopped = []

    def stop(done, total):
        stopped.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CorpusIndex.open(tmp_path, corpus_of(PASSAGES), encoder, progress=stop)
    assert len(encoder.encoded) > 1
    before = set(encoder.encoded)
    encoder.encoded.clear()
    index = CorpusIndex.open(tmp_path, corpus_of(PASSAGES), encoder)
    assert encoder.encoded and not before & set(encoder.encoded) and index.vectors is not None
    assert len(list(tmp_path.glob("g*"))) == 1 and not list((tmp_path / "vectors").glob("pending*"))


@pytest.mark.parametrize("name", ["v1/chunk.vectors", "v1/chunk.starts", "v1/manifest.json"])
def test_damaged_vectors_are_computed_again(tmp_path, name):
    CorpusIndex.open(tmp_path, corpus_of(PASSAGES), WordEncoder())
    file = tmp_path / "vectors" / name
    file.write_bytes(file.read_bytes()[:-8])
    encoder = WordEncoder()
    index = CorpusIndex.open(tmp_path, corpus_of(PASSAGES), encoder)
    assert encoder.encoded and len(index.vectors.search("chunk", encoder.encode_questions(["other"]), 5)[0]) == 3


def test_minilm_finds_the_last_sentence_of_a_long_chunk(tmp_path, minilm):
    filler = "The committee met in the town hall and discussed the budget of the coming year at length. "
    count = 1000 // minilm.count_tokens([filler])[0]
    text = filler * count + "Marie Curie discovered radium in Paris."
    assert 900 < minilm.count_tokens([text])[0] <= 1024
    corpus = corpus_of([("Minutes", text), ("Budget", filler * 9), ("Physics", "Pierre Dupont studied light.")])
    retriever = open_retriever(CorpusIndex.open(tmp_path, corpus, minilm), channels=["dense"])
    assert retriever.search(["Who discovered radium?"], 1)[0][0].text.startswith("Minutes")
