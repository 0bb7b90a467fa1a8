"""The search of segments, as the edits of the question leave them."""

from __future__ import annotations

import shutil

import pytest

from kgqa import open_resources
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.overlay import Overlay
from kgqa.corpus.editing.sources import ShownText
from kgqa.corpus.items import Party
from kgqa.methods.evograph.participants import named_participants
from kgqa.methods.evograph.searching import Segments
from kgqa.settings.values import resolve
from kgqa.trace.trace import Trace
from tests.corpus.word_encoder import WordEncoder
from tests.methods.evograph.hyper_corpus import HYPEREDGES

USER = ShownText(1, "urn:user", "The user says so.", "user")
LIGHT = "The lighthouse of Tarn Harbour was finished in 1830."


@pytest.fixture(scope="module")
def resources(written):
    settings = {"ask.method": "evograph", "rank.embeddings": "off", "llm.model": "http://localhost:1/v1#m"}
    with open_resources(written[0], settings=resolve(settings)) as opened:
        yield opened


@pytest.fixture
def search(resources):
    trace = Trace()
    overlay = Overlay(resources.corpus, agent="m")
    return Segments(overlay, "auto", trace), overlay


def texts(search, query, k=5, shown=()):
    return [piece.text for piece in search.find(query, k, shown)[0]]


def test_edits_of_the_question_are_found_and_what_they_remove_is_not(search):
    segments, overlay = search
    (old,) = [piece for piece in segments.ranked("lighthouse finished") if piece.text == LIGHT]
    new = "The lighthouse of Tarn Harbour was finished in 1834."
    done = overlay.update(old.iri, new, [("", Party("Tarn Harbour"))], [USER])
    assert texts(segments, "lighthouse finished") == [new]
    overlay.insert("A second lighthouse stands on Vell.", [("", Party("Vell"))], [USER])
    assert set(texts(segments, "lighthouse")) == {new, "A second lighthouse stands on Vell."}
    overlay.delete(done.added.iri, [USER])
    assert texts(segments, "lighthouse finished") == ["A second lighthouse stands on Vell."]


def test_an_inserted_text_ranks_where_it_would_rank_in_the_index(search, resources):
    segments, overlay = search
    best = segments.ranked("island of the town Tarn Harbour")[0]
    overlay.insert("Seals like fish.", [("", Party("Seals"))], [USER])
    assert segments.ranked("island of the town Tarn Harbour")[0].iri == best.iri
    words = resources.corpus.index.bm25("hyperedge")
    row = resources.corpus.index.pieces("hyperedge").row(best.iri)
    scores = words.scores("island town")
    assert words.score_of("island town", best.text) == pytest.approx(float(scores[row]), rel=0.25)


def test_edits_are_found_by_their_embeddings(written, tmp_path):
    folder, encoder = shutil.copytree(written[0], tmp_path / "corpus"), WordEncoder()
    with Corpus.open(folder, encoder=encoder) as corpus:
        trace, overlay = Trace(), Overlay(corpus, agent="m")
        segments = Segments(overlay, "hyperedge", trace)
        assert len(segments.ranked("something else")) == len(HYPEREDGES)  # by embeddings, all are ranked
        done = overlay.insert("A puffin bred on Corrin.", [("", Party("Corrin"))], [USER])
        assert segments.ranked("A puffin bred on Corrin.")[0].iri == done.added.iri
        overlay.delete(done.added.iri, [USER])
        assert len(segments.ranked("A puffin bred on Corrin.")) == len(HYPEREDGES)


def test_a_hyperedge_takes_no_place_from_a_better_passage(corpus_folder):
    settings = {"ask.method": "evograph", "rank.embeddings": "off", "llm.model": "http://localhost:1/v1#m"}
    with open_resources(corpus_folder, settings=resolve(settings)) as opened:
        trace, overlay = Trace(), Overlay(opened.corpus, agent="m")
        segments = Segments(overlay, "auto", trace)
        chunk = segments.ranked("first tide clock in the museum of Oster Quay")[0]
        overlay.insert("A ferry sails to Oster Quay.", [("", Party("Oster Quay"))], [USER])
        overlay.insert("The museum of Oster Quay shows the first tide clock.", [("", Party("Oster Quay"))], [USER])
        ranked = segments.ranked("first tide clock in the museum of Oster Quay")
        assert {piece.text for piece in ranked[:2]} == {
            chunk.text,
            "The museum of Oster Quay shows the first tide clock.",
        }


def test_a_dispute_is_shown_together(search):
    segments, overlay = search
    (old,) = [piece for piece in segments.ranked("lighthouse finished") if piece.text == LIGHT]
    web = ShownText(1, "https://x.example", "The lighthouse of Tarn Harbour was finished in 1834.", "web")
    overlay.update(old.iri, web.text, [("", Party("Tarn Harbour"))], [web])
    assert set(texts(segments, "lighthouse of Tarn Harbour finished 1834", k=1)) == {LIGHT, web.text}


def test_what_was_shown_makes_room_for_more(search):
    segments, _ = search
    first, _ = segments.find("Tarn Harbour", 1)
    second, known = segments.find("Tarn Harbour", 1, {piece.iri for piece in first})
    assert second != first and first == known


def test_participants_are_entities_of_the_corpus_and_other_names(resources):
    content = "Mara Holt saw the lighthouse of Tarn Harbour with Jonas Pell."
    found = named_participants(content, resources.corpus)
    assert {party.name for _, party in found} == {"Mara Holt", "Tarn Harbour", "Jonas Pell"}
    known = {entity.iri for entity in resources.corpus.reader.entities()}
    assert {party.iri for _, party in found} & known == {Party("Mara Holt").iri, Party("Tarn Harbour").iri}
    assert len(HYPEREDGES) == len(list(resources.corpus.reader.hyperedges()))
