"""The search of segments, as the edits of the question leave them."""

from __future__ import annotations

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.items import Party
from kgqa.methods.evograph.declarations import EvographSettings
from kgqa.methods.evograph.searching import SegmentSearch
from kgqa.settings.values import resolve
from kgqa.trace.trace import Trace
from tests.corpus.word_encoder import WordEncoder
from tests.methods.evograph.hyper_corpus import HYPEREDGES

USER = ShownText(1, "urn:user", "The user says so.", "user")
LIGHT = "The lighthouse of Tarn Harbour was finished in 1830."
LATER = "The lighthouse of Tarn Harbour was finished in 1834."


@pytest.fixture
def search(written):
    """The search, which shows one result at a time, and the overlay that its question edits."""
    with Corpus.open(written[0]) as corpus:
        yield searching(corpus, results=1)


def searching(corpus, **given):
    given = {"ask.method": "evograph", **{f"evograph.{name}": value for name, value in given.items()}}
    overlay = Overlay(corpus, agent="m")
    return SegmentSearch(overlay, resolve(given).of(EvographSettings), Trace()), overlay


def texts(search, query, most=5):
    return [piece.text for piece in search.ranked(query)[:most]]


def insert(overlay, text, *names):
    return overlay.insert(text, [("", Party(name)) for name in names], [USER]).added


def test_edits_of_the_question_are_found_where_they_belong_and_what_they_remove_is_not(search):
    search, overlay = search
    best = texts(search, "island of the town Tarn Harbour")[0]
    (old,) = [piece for piece in search.ranked("lighthouse finished") if piece.text == LIGHT]
    done = overlay.update(old.iri, LATER, [("", Party("Tarn Harbour"))], [USER])
    assert texts(search, "lighthouse finished") == [LATER]
    second = insert(overlay, "A second lighthouse stands on Vell.", "Vell").segment
    assert set(texts(search, "lighthouse")) == {LATER, second}
    overlay.delete(done.added.iri, [USER])
    assert texts(search, "lighthouse finished") == [second]
    assert texts(search, "island of the town Tarn Harbour")[0] == best


def test_edits_are_found_by_their_embeddings(written):
    with Corpus.open(written[0], encoder=WordEncoder()) as corpus:
        search, overlay = searching(corpus)
        assert len(search.ranked("something else")) == len(HYPEREDGES)  # by embeddings, all are ranked
        done = insert(overlay, "A puffin bred on Corrin.", "Corrin")
        assert search.ranked("A puffin bred on Corrin.")[0].iri == done.iri
        overlay.delete(done.iri, [USER])
        assert len(search.ranked("A puffin bred on Corrin.")) == len(HYPEREDGES)
