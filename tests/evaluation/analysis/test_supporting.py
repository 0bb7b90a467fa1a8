"""Supporting passages of a data set, found again in the chunks and statements of a corpus."""

from __future__ import annotations

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.evaluation.analysis.supporting import PassageFinder, supporting_pieces
from kgqa.evaluation.datasets.questions import GoldQuestion
from tests.corpus.small_corpus import new_editor, read_document

TOLLO = ("Tollo rows ferry", "Ferry crosses Orrin")
MILL = ("Mill grinds rye",)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "texts"
    with new_editor(path) as editor:
        for name, facts in {"tollo": TOLLO, "mill": MILL, "all": (*MILL, *TOLLO)}.items():
            additions, texts = read_document(name, *facts)
            editor.apply("insert", additions, agent="reader", texts=texts)
        editor.publish()
    with Corpus.open(path) as opened:
        yield opened


def chunk_texts(corpus: Corpus, iris) -> list[str]:
    return sorted(corpus.chunk(iri).text for iri in iris)


def question(*texts: str, supporting=(0,)) -> GoldQuestion:
    passages = [{"title": f"T{number}", "text": text} for number, text in enumerate(texts)]
    return GoldQuestion("?", "q", "d", 0, row={"passages": passages, "supporting": list(supporting)})


def test_passage_that_is_a_whole_document(corpus):
    finder = PassageFinder(corpus)
    assert chunk_texts(corpus, finder.chunks("Tollo  rows ferry Ferry crosses ORRIN ")) == sorted(TOLLO * 2)
    # the same text stands in a second document, after its first line; that line is not a part of it
    assert len({corpus.chunk(iri).document for iri in finder.chunks(" ".join(TOLLO))}) == 2


def test_passage_within_a_document(corpus):
    finder = PassageFinder(corpus)
    assert chunk_texts(corpus, finder.chunks("rye\nTollo rows")) == ["Mill grinds rye", "Tollo rows ferry"]
    assert finder.chunks("nothing like this") == finder.chunks(" ") == []


def test_pieces_of_supporting_passages(corpus):
    (rows,) = [each for each in corpus.reader.statements() if each.words == "Tollo rows ferry"]
    (grinds,) = [each for each in corpus.reader.statements() if each.words == "Mill grinds rye"]
    trace = [{"kind": "retrieved", "pieces": [rows.iri, grinds.iri, "urn:kgqa:path:x"], "step": 0}]
    asked = question("Tollo rows ferry", "not there", "Mill grinds rye", supporting=(0, 1))
    first, second = supporting_pieces(asked, trace, corpus)
    assert rows.iri in first and grinds.iri not in first and second == ()
    assert set(chunk_texts(corpus, (iri for iri in first if iri != rows.iri))) == {"Tollo rows ferry"}


def test_questions_without_passages(corpus):
    assert supporting_pieces(question("a", supporting=()), [], corpus) == ()
    assert supporting_pieces(question("a"), [], None) == ()
    assert supporting_pieces(GoldQuestion("?", "q", "d", 0), [], corpus) == ()
