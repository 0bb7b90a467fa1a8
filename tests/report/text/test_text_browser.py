"""Pages of answers over text in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa.report.site.writing import write_site
from tests.report.conftest import hostile_record
from tests.report.test_comparison import FakeRun
from tests.report.test_pages import ATTACKS
from tests.report.text.traces import RAG, ROUNDS, STEPS, text_record, write_corpus

pytestmark = pytest.mark.server
WIDTHS = (400, 1200)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = write_corpus(tmp_path_factory.mktemp("corpus") / "towns")
    manifest = {"settings": {"graph.path": str(folder)}}
    records = [text_record("rag", RAG), text_record("tog3", ROUNDS), text_record("graphsearch", STEPS)]
    return write_site([FakeRun("text", records, folder, manifest)], tmp_path_factory.mktemp("site")).parent


@pytest.mark.parametrize("width", WIDTHS)
def test_page_fits_its_window_and_loads_nothing(browser, site, width):
    browser.set_width(width)
    for page in sorted(site.glob("run-1/*.html")):
        browser.go(page)
        browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert [each.text for each in browser.find("mark")] == [
            "Its architect was Ines Marr",
            "She was born in Kirkwick on 3 May 1832",
        ]
        assert (
            browser.run("return getComputedStyle(document.querySelector('mark')).backgroundColor") != "rgba(0, 0, 0, 0)"
        )
    assert browser.console() == []
    assert [item for item in browser.fetched() if not item.startswith(site.as_uri())] == []


def test_pieces_open_and_the_graph_is_drawn(browser, site):
    browser.set_width(1200)
    browser.go(sorted(site.glob("run-1/*.html"))[1])
    assert browser.run("return [...document.querySelectorAll('.pieces')].some(each => each.checkVisibility())") is False
    browser.one("#rounds > h3 + .step summary:first-of-type").click()
    assert browser.run("return [...document.querySelectorAll('.pieces')].some(each => each.checkVisibility())")
    inside = browser.run(
        "const outer = document.querySelector('svg.evidence-graph').getBoundingClientRect();"
        "return [...document.querySelectorAll('svg.evidence-graph g')].every(each => {"
        "  const box = each.getBoundingClientRect();"
        "  return box.width > 0 && box.left >= outer.left && box.right <= outer.right && box.bottom <= outer.bottom })"
    )
    assert inside and len(browser.find("svg.evidence-graph .node")) == 4


def test_hostile_texts_run_no_script(browser, tmp_path):
    record = text_record("text", (*RAG, *ROUNDS, *STEPS))
    runs = [FakeRun(f"run {n}", [hostile_record(record, lambda a=attack: a)]) for n, attack in enumerate(ATTACKS)]
    write_site(runs, tmp_path)
    for page in sorted(tmp_path.glob("run-*/*.html")):
        browser.go(page)
        assert browser.run("return typeof window.hacked") == "undefined", page
        assert browser.find("#rounds")
    assert browser.console() == []
    assert [item for item in browser.fetched() if not item.startswith(tmp_path.as_uri())] == []
