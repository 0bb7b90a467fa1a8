"""The index on disk: follows the corpus, survives crashes, distrusts its files."""

from __future__ import annotations

import json

import pytest

from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.retrieve.opening import open_retriever
from kgqa.errors import CorpusError, StoreUnavailable
from tests.corpus.memory_corpus import corpus_of

PASSAGES = [
    ("Ada Lovelace", "Ada wrote the first program. She was born in London.", [("Ada Lovelace", "born in", "London")]),
    ("Charles Babbage", "He designed the analytical engine.", [("Charles Babbage", "designed", "analytical engine")]),
    ("巴黎", "巴黎是法国的首都。"),
    ("Café Rouge", "The price was $1,363.00 in Beyoncé's café."),
]


def found(index, query, kind="chunk", k=3):
    return [piece.text.split("\n")[0] for piece in open_retriever(index, kind).search([query], k)[0]]


def test_every_kind_is_found_by_words(tmp_path):
    index = CorpusIndex.open(tmp_path, corpus_of(PASSAGES))
    assert found(index, "Who designed an engine?")[0] == "Charles Babbage"
    assert found(index, "法国首都")[:1] == ["巴黎"]
    assert found(index, "1,363.00") == ["Café Rouge"] == found(index, "beyonce")
    (piece,) = open_retriever(index, "statement").search(["born London"], 5)[0]
    assert piece.text == "Ada Lovelace born in London" and piece.triples[0].object.iri.startswith("urn:kgqa:entity:")
    (span,) = piece.spans
    chunk = index.pieces("chunk").get(span.chunk)
    assert chunk.text[span.begin : span.end] == "Ada Lovelace"
    assert found(index, "London", "entity") == ["London"] and found(index, "born London", "statement")


def test_index_follows_the_corpus(tmp_path):
    CorpusIndex.open(tmp_path, corpus_of(PASSAGES))
    index = CorpusIndex.open(tmp_path, corpus_of([*PASSAGES[:1], ("Engine", "An engine.")], seq=2))
    assert found(index, "engine") == ["Engine"] and len(index.pieces("chunk")) == 2
    assert len(list(tmp_path.glob("g*"))) == 1


def test_unchanged_corpus_is_not_read_again(tmp_path):
    corpus = corpus_of(PASSAGES)
    CorpusIndex.open(tmp_path, corpus)
    corpus.chunk_records = None
    assert found(CorpusIndex.open(tmp_path, corpus), "engine") == ["Charles Babbage"]


@pytest.mark.parametrize("name", ["", "lock", "vectors", "vectors/pending.keys"])
def test_nothing_is_written_or_removed_through_a_link(tmp_path, name):
    mine, link = tmp_path / "mine", tmp_path / "index" / name
    (mine / "git").mkdir(parents=True)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(mine)
    with pytest.raises(StoreUnavailable, match="is a link"):
        CorpusIndex.open(tmp_path / "index", corpus_of(PASSAGES))
    assert [each.name for each in mine.iterdir()] == ["git"]


def damaged(name):
    def damage(folder):
        (file,) = folder.glob(name)
        file.write_bytes(file.read_bytes()[:-4] + b"\xff\xff\xff\x7f")

    return damage


def truncated(name):
    def damage(folder):
        (file,) = folder.glob(name)
        file.write_bytes(file.read_bytes()[:-1])

    return damage


def manifest(change):
    def damage(folder):
        (file,) = folder.glob("g*/manifest.json")
        data = json.loads(file.read_text())
        change(data)
        file.write_text(json.dumps(data))

    return damage


DAMAGES = {
    "short array": truncated("g*/chunk.words.scores"),
    "short text": truncated("g*/chunk.pieces"),
    "positions": damaged("g*/chunk.pieces.ends"),
    "starts": damaged("g*/chunk.words.starts"),
    "no manifest": lambda folder: next(folder.glob("g*/manifest.json")).unlink(),
    "not json": lambda folder: next(folder.glob("g*/manifest.json")).write_text("{"),
    "object array": manifest(lambda data: data["arrays"]["chunk.words.scores"].update(dtype="object")),
    "outside": manifest(lambda data: data["arrays"].update({"../x": {"dtype": "uint8", "shape": [1]}})),
    "huge": manifest(lambda data: data["arrays"]["chunk.words.scores"].update(shape=[1 << 60])),
    "pointer": lambda folder: (folder / "index.json").write_text('{"generation": "../elsewhere"}'),
    "list": lambda folder: (folder / "index.json").write_text("[]"),
    "format": manifest(lambda data: data["about"].update(format=99)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_index_is_built_again(tmp_path, damage):
    CorpusIndex.open(tmp_path, corpus_of(PASSAGES))
    damage(tmp_path)
    assert found(CorpusIndex.open(tmp_path, corpus_of(PASSAGES)), "engine") == ["Charles Babbage"]


def test_empty_corpus_finds_nothing(tmp_path):
    index = CorpusIndex.open(tmp_path, corpus_of([]))
    assert found(index, "engine") == [] and open_retriever(index).search([], 5) == []


@pytest.mark.parametrize("name", ["chunk.iris", "chunk.pieces", "chunk.words.texts"])
def test_damage_that_a_search_finds(tmp_path, name):
    CorpusIndex.open(tmp_path, corpus_of(PASSAGES))
    (file,) = tmp_path.glob(f"g1-0/{name}")
    size = file.stat().st_size
    file.write_bytes((b"\xc0\xff\xff\x7f" * size)[:size])
    with pytest.raises(CorpusError, match="index of the corpus is damaged"):
        found(CorpusIndex.open(tmp_path, corpus_of(PASSAGES)), "engine program")
