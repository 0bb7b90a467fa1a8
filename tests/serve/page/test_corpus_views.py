"""Quotes in their text, and edits to review."""

from __future__ import annotations

import pytest

from kgqa.corpus.building.build import build_corpus
from kgqa.corpus.corpus import Corpus
from tests.corpus.editing.edited_corpus import segments
from tests.report.test_pages import ATTACKS
from tests.serve.page.conftest import Page, running

pytestmark = pytest.mark.server


def test_a_quote_is_marked_in_its_document(browser, demo_corpus):
    with running(graph_path=str(demo_corpus)) as address:
        page = Page(browser, address)
        page.open()
        page.ask("Who is the architect of the lighthouse of Sandrey?")
        page.wait_for("document.querySelectorAll('.chunk mark').length === 2")
        assert page.texts(".answers a") == ["Nils Aaberg"]
        quotes = [text.strip("“”") for text in page.texts(".statements q")]
        marked = page.run("return [...document.querySelectorAll('.chunk mark')].map(e => e.textContent)")
        assert marked == quotes and marked[1].startswith("| Gull Point Light | Nils Aaberg")


def test_marks_count_letters_of_all_scripts_and_show_markup_as_text(browser, tmp_path):
    """Positions count code points; an emoji has one, but two units in JavaScript."""
    text = "# Mara Holt\n\n😀😀 <img src=x onerror=window.hacked=1> 𝔘\u202e\n\nBirthplace: Tarn Harbour\nOccupation: clockmaker\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "mara.md").write_text(text, encoding="utf-8")
    build_corpus(tmp_path / "corpus", [tmp_path / "docs"], embeddings="off")
    with running(graph_path=str(tmp_path / "corpus")) as address:
        page = Page(browser, address)
        page.open()
        page.ask("What is the birthplace of Mara Holt?")
        page.wait_for("document.querySelectorAll('.chunk mark').length")
        assert page.texts(".chunk mark") == ["Birthplace: Tarn Harbour"]
        assert "<img src=x onerror=window.hacked=1> 𝔘" in page.one(".chunk").text
        assert page.run("return window.hacked") is None and page.find("main img") == []


def test_edits_are_reviewed_only_if_the_service_may_write(browser, edited_corpus):
    with running(graph_path=str(edited_corpus)) as address:
        page = Page(browser, address)
        page.open("/#edits")
        page.wait_for("document.querySelectorAll('.proposal').length === 3")
        assert page.find(".proposal button") == [] and "2 edits to review" in page.one("#edit-list").text
        assert page.texts(".diff .old b, .diff .new b") == ["London", "Paris"]
        assert page.texts(".diff .new ins")[1] == ATTACKS[2]
        assert page.run("return window.hacked") is None and page.find("#view-edits img, #view-edits script") == []
    with running(graph_path=str(edited_corpus), writable=True) as address:
        page = Page(browser, address)
        page.open("/#edits")
        page.wait_for("document.querySelectorAll('.proposal button').length === 4")
        page.find(".proposal button")[0].click()
        page.wait_for("document.querySelectorAll('.proposal button').length === 2")
        page.find(".proposal button")[1].click()
        page.wait_for("document.querySelectorAll('.proposal button').length === 0")
    assert "Ada met Babbage Paris" in segments(edited_corpus)
    with Corpus.open(edited_corpus) as corpus:
        assert ATTACKS[2] not in {each.segment for each in corpus.reader.hyperedges()}
