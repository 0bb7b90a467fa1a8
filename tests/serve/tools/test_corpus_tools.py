"""The text around a span, and chunks."""

from __future__ import annotations

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.errors import CorpusError
from kgqa.serve.tools.corpus_tools import chunk, excerpt
from tests.small_corpus import write_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    with Corpus.open(write_corpus(tmp_path_factory.mktemp("texts"))) as opened:
        yield opened


def test_a_span_lies_in_its_excerpt(corpus):
    for document in corpus.reader.documents():
        text = corpus.text(document.iri)
        for begin, end in ((0, 5), (len(text) // 2, len(text) // 2 + 9), (len(text) - 4, len(text)), (-5, 10**9)):
            found = excerpt(corpus, document.iri, begin, end)
            assert found["text"] == text[found["begin"] : found["end"]] and found["source"]
            assert found["begin"] <= max(begin, 0) and min(end, len(text)) <= found["end"]


def test_chunks_and_what_is_not_there(corpus):
    (first, *_) = corpus.reader.chunks()
    assert chunk(corpus, first.iri)["text"] == first.text
    for wrong in ("", "urn:kgqa:chunk:0", "../../etc/passwd"):
        with pytest.raises(CorpusError):
            chunk(corpus, wrong)
        with pytest.raises(CorpusError):
            excerpt(corpus, wrong, 0, 5)
    with pytest.raises(CorpusError):
        chunk(None, first.iri)
