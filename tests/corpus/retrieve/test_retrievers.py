"""Retrievers: each channel, their fusion, PageRank against arithmetic by hand, and batches."""

from __future__ import annotations

import numpy as np
import pytest

from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.records import ChunkRecord, DocumentRecord, EntityRecord, HyperedgeRecord, Place
from kgqa.corpus.retrieve.fused import FusedRanker, FusedRetriever, fuse
from kgqa.corpus.retrieve.opening import CHANNELS, open_retriever
from kgqa.corpus.retrieve.pagerank import PageRankOptions, PageRankRanker
from kgqa.errors import SettingsError
from kgqa.model import Piece
from tests.corpus.memory_corpus import MemoryCorpus, corpus_of
from tests.corpus.word_encoder import WordEncoder

# the second and third passage of each chain share no word with the question
PASSAGES = [
    ("River", "The Bubye crosses dry land.", [("Bubye River", "lies in", "Zimbabwe")]),
    ("Country", "Harare governs all.", [("Zimbabwe", "has waterfall", "Victoria Falls")]),
    ("Falls", "Tourists come every year.", [("Victoria Falls", "visited by", "tourists")]),
    ("Noise", "A river is found in a land with a country house."),
    ("Other", "Something else entirely.", [("Else", "is", "something")]),
    ("Twin", "The same text."),
    ("Twin", "The same text. "),
]
QUERIES = ["What falls lie where the Bubye River is found?", "same text", "nothing of the kind", ""]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return CorpusIndex.open(tmp_path_factory.mktemp("index"), corpus_of(PASSAGES), WordEncoder(max_tokens=64))


def titles(pieces):
    return [piece.text.split("\n")[0] for piece in pieces]


def test_pagerank_reaches_passages_that_share_no_word_with_the_question(index):
    query = "Which waterfalls do people see near the Bubye River?"
    words = open_retriever(index, channels=["bm25"]).search([query], 9)[0]
    assert "Country" not in titles(words) and "Falls" not in titles(words)
    ranked = titles(open_retriever(index, channels=["pagerank"]).search([query], 9)[0])
    assert ranked.index("River") < ranked.index("Country") and ranked.index("Country") < ranked.index("Falls")


def test_pagerank_equals_the_solution_of_its_equations(index):
    options = PageRankOptions(damping=0.5, facts=2)
    ranker = PageRankRanker(index, FusedRanker([]), options=options)
    graph = index.graph
    starts = ranker._starts(QUERIES[:1])[:, 0]
    matrix = graph.transitions.toarray()
    expected = np.linalg.solve(np.eye(len(starts)) - 0.5 * matrix, 0.5 * starts)[graph.entities :]
    ((*found,),) = ranker.rank(QUERIES[:1], 9)
    assert found and dict(found) == pytest.approx(
        {row: score for row, score in enumerate(expected) if score > 1e-9}, abs=1e-4
    )
    assert starts.sum() == pytest.approx(0.6)  # no chunks are found, so their share is missing
    columns = matrix.sum(axis=0)
    assert ((columns == 0) | np.isclose(columns, 1)).all()


def test_graph_connects_facts_mentions_and_similar_names(tmp_path):
    name = "Report of the great long war {}"
    passages = [
        ("A", "x", [(name.format("begun"), "wrote", "Notes"), (name.format("1941"), "is", "old")]),
        ("B", "y", [(name.format("ended"), "met", "Nobody"), (name.format("1942"), "is", "old")]),
    ]
    index = CorpusIndex.open(tmp_path, corpus_of(passages), WordEncoder())
    graph, pieces = index.graph, index.pieces("entity")
    matrix = graph.transitions.toarray()
    node = {pieces.piece(row).text: row for row in range(len(pieces))}
    begun, ended = node[name.format("begun")], node[name.format("ended")]
    chunks = {index.pieces("chunk").piece(row).text[0]: graph.entities + row for row in range(2)}
    at_a, at_b = chunks["A"], chunks["B"]
    assert matrix[begun, node["Notes"]] > 0 < matrix[begun, at_a] and matrix[begun, at_b] == 0 == matrix[ended, at_a]
    assert matrix[begun, ended] > 0 and matrix[begun, node["Nobody"]] == 0
    years = [node[name.format(year)] for year in ("1941", "1942")]
    assert matrix[years[0], years[1]] == 0, "different numbers are different things"
    assert graph.mentions[node["old"]] == 2 and graph.mentions.sum() == 8
    assert sorted(map(len, map(graph.entities_of, range(4)))) == [2] * 4 and len(graph.starts) == 5


@pytest.mark.parametrize("kind", ["chunk", "entity", "statement", "hyperedge", "community"])
@pytest.mark.parametrize("channels", [(), *((name,) for name in CHANNELS), CHANNELS])
def test_batch_equals_single_searches_and_pieces_are_distinct_and_sorted(index, kind, channels):
    if "pagerank" in channels and kind not in ("chunk", "entity"):
        with pytest.raises(SettingsError, match="pagerank needs facts"):
            open_retriever(index, kind, channels)
        return
    retriever = open_retriever(index, kind, channels)
    found = retriever.search(QUERIES, 4)
    assert [piece.iri for each in found for piece in each] == [
        piece.iri for query in QUERIES for piece in retriever.search([query], 4)[0]
    ]
    for pieces in found:
        assert len({piece.iri for piece in pieces}) == len(pieces) <= 4 and {piece.kind for piece in pieces} <= {kind}
        keys = [(-piece.score, piece.iri) for piece in pieces]
        assert keys == sorted(keys)
    assert retriever.search([], 4) == [] and retriever.search(QUERIES[:1], 0) == [[]]


def test_equal_texts_are_ordered_by_iri(index):
    for channel in ("bm25", "dense"):
        best = open_retriever(index, channels=[channel]).search(["same text"], 2)[0]
        assert titles(best) == ["Twin", "Twin"] and best[0].score == best[1].score and best[0].iri < best[1].iri


def test_fusion_by_hand():
    rankings = [[("a", 3.0), ("b", 2.0), ("c", 2.0)], [("c", 9.0), ("d", 1.0)]]
    found = dict(fuse(rankings, (1.0, 2.0), 60))
    assert found == pytest.approx({"a": 1 / 61, "b": 1 / 62.5, "c": 1 / 62.5 + 2 / 61, "d": 2 / 62})
    assert [each for each, _ in fuse(rankings, (1.0, 1.0), 60)] == ["c", "a", "d", "b"]
    assert [each for each, _ in fuse([[("b", 1.0)], [("a", 1.0)]], (1.0, 1.0))] == ["a", "b"]


def test_fused_retrievers_of_different_kinds(index):
    class Fixed:
        def __init__(self, *pieces):
            self.pieces = pieces

        def search(self, queries, k):
            return [list(self.pieces)[:k] for _ in queries]

    chunk, path = Piece("c", "chunk", "text", 5.0), Piece("p", "path", "words", 0.1)
    (found,) = FusedRetriever([Fixed(chunk), Fixed(path)], [1.0, 2.0]).search(["q"], 5)
    assert [(piece.iri, piece.kind) for piece in found] == [("p", "path"), ("c", "chunk")]
    with pytest.raises(ValueError, match="as many weights"):
        FusedRetriever([Fixed()], [1.0, 2.0])


def test_hyperedges_connect_chunks(tmp_path):
    entities = {name: f"urn:kgqa:entity:{name}" for name in ("ada", "prize", "physics", "paris")}
    texts = ["Ada won.", "The prize is for physics.", "Physics is taught in Paris.", "Unrelated."]
    chunks = [ChunkRecord(f"urn:c{n}", "urn:d", 0, len(text), text) for n, text in enumerate(texts)]

    def hyperedge(chunk, segment, *names):
        place = Place("urn:d", f"urn:c{chunk}", 0, 3)
        return HyperedgeRecord(f"urn:h{chunk}", segment, tuple(("", entities[each]) for each in names), None, (place,))

    corpus = MemoryCorpus(
        document_records=[DocumentRecord("urn:d", "d", "", "text/plain", "x")],
        chunk_records=chunks,
        entity_records=[EntityRecord(iri, name) for name, iri in entities.items()],
        hyperedge_records=[
            hyperedge(0, "Ada won a prize", "ada", "prize"),
            hyperedge(1, "A prize", "prize", "physics"),
            hyperedge(2, "Taught", "physics", "paris"),
        ],
    )
    for number, encoder in enumerate((None, WordEncoder())):
        index = CorpusIndex.open(tmp_path / str(number), corpus, encoder)
        found = [piece.text for piece in open_retriever(index, channels=["pagerank"]).search(["Which won Ada?"], 9)[0]]
        assert found[0] == texts[0] and found.index(texts[1]) < found.index(texts[2])
        (piece,) = open_retriever(index, "hyperedge").search(["Ada"], 1)[0]
        assert piece.iri == "urn:h0" and [triple.object.iri for triple in piece.triples] == [
            entities["ada"],
            entities["prize"],
        ]


def test_index_without_vectors(tmp_path):
    index = CorpusIndex.open(tmp_path, corpus_of(PASSAGES))
    assert "Country" in titles(open_retriever(index, channels=["pagerank"]).search(["Bubye River"], 9)[0])
    with pytest.raises(SettingsError, match="dense needs an embedding model"):
        open_retriever(index, channels=["dense"])
    with pytest.raises(SettingsError, match="nosuch is not a channel"):
        open_retriever(index, channels=["nosuch"])


def test_share_of_facts_decides_how_chunks_are_found(index, monkeypatch):
    def found(*channels):
        return open_retriever(index, channels=channels).search(QUERIES, 9)

    assert found() == found("bm25", "dense") != found("pagerank")  # 4 facts in 7 chunks
    monkeypatch.setattr("kgqa.corpus.retrieve.opening.DENSE_FACTS", 0.5)
    assert found() == found("pagerank")


def test_corpus_without_facts_is_searched_by_words_and_embeddings(tmp_path):
    index = CorpusIndex.open(tmp_path, corpus_of([each[:2] for each in PASSAGES]), WordEncoder())
    assert titles(open_retriever(index).search(["Bubye"], 1)[0]) == ["River"]
    with pytest.raises(SettingsError, match="pagerank needs facts"):
        open_retriever(index, channels=["pagerank"])


@pytest.mark.parametrize("wrong", [{"damping": 1.0}, {"damping": 0.0}, {"chunk_share": 1.1}, {"facts": -1}])
def test_invalid_settings_of_pagerank(wrong):
    with pytest.raises(ValueError, match="invalid settings"):
        PageRankOptions(**wrong)
