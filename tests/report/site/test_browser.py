"""A report in a real browser, opened from the disk."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgqa.graph.query.tokens import shorten_iris
from kgqa.report.site.question_page import question_page
from kgqa.report.site.writing import write_site
from tests.axe import axe_script, faults
from tests.browser import Browser
from tests.report.agents.traces import TOOL_TURNS, acting_record
from tests.report.conftest import hostile_record
from tests.report.test_comparison import FakeRun, record
from tests.report.test_pages import ATTACKS, CONTEXT, with_conditions
from tests.report.text.traces import ROUNDS, text_record, write_corpus

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def site(offline, by_model, tmp_path_factory) -> Path:
    return write_site([offline, by_model], tmp_path_factory.mktemp("site") / "out").parent


@pytest.fixture
def opened(browser: Browser, site: Path) -> Browser:
    """The index page, with empty logs; after the test they must hold only pages of the site."""
    browser.go(site / "index.html")
    yield browser
    assert browser.console() == []
    assert [item for item in browser.fetched() if not item.startswith(site.as_uri())] == []


def visible_rows(browser: Browser) -> int:
    return browser.run("return document.querySelectorAll('#questions tbody tr').length")


def test_index_lists_all_questions(opened):
    assert visible_rows(opened) == 12
    assert opened.one("#count").text == "12 of 12 questions"
    assert "Which city is the capital" in opened.one("#questions tbody tr:first-child").text
    assert opened.find("svg.plot circle") and opened.find("table.losses rect")


def choose(browser: Browser, select: str, value: str) -> int:
    """Choose a value of a filter, and return the number of rows that are shown then."""
    browser.run(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))",
        select,
        value,
    )
    return visible_rows(browser)


def test_filters(opened):
    opened.one("#find").type("ANTHEM kimigayo")
    assert visible_rows(opened) == 1
    opened.one("#find").clear()
    opened.one("#find").type("no such words")
    assert visible_rows(opened) == 0 and opened.one("#count").text == "0 of 12 questions"
    opened.one("#find").clear()
    opened.wait_for("document.querySelectorAll('#questions tbody tr').length === 12")
    right, other = choose(opened, "outcome", "right"), choose(opened, "outcome", "not-right")
    assert 0 < right < 12 and 0 < other < 12 and right + other >= 12
    causes = opened.run("return [...document.querySelectorAll('#cause option')].map(each => each.value)")
    assert len(causes) > 1 and 0 < choose(opened, "cause", causes[1]) <= other
    choose(opened, "cause", "")
    choose(opened, "outcome", "")
    assert choose(opened, "run", "1") == 2


def test_filters_are_kept_in_the_address(opened, site):
    opened.one("#find").type("capital & <of>")
    choose(opened, "run", "1")
    assert opened.wait_for("location.hash.includes('run=1')")
    address = opened.url
    opened.go(site / "index.html")
    assert visible_rows(opened) == 12
    opened.command("POST", "/url", url=address)
    assert opened.wait_for("document.getElementById('find').value === 'capital & <of>'")
    assert opened.run("return document.getElementById('run').value") == "1" and visible_rows(opened) == 0
    opened.command("POST", "/url", url=(site / "index.html").as_uri() + "#run=99&outcome=%3Cb%3E&find=capital")
    assert opened.wait_for("document.querySelectorAll('#questions tbody tr').length > 0")  # unknown values are ignored


def test_keyboard(opened):
    opened.run("document.querySelector('h1').click()")
    opened.one("body").type("/")
    assert opened.run("return document.activeElement.id") == "find"
    opened.one("#find").type("capital\ue015")  # arrow down
    assert opened.run("return document.activeElement.closest('tr').rowIndex") == 1
    opened.run("document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown', bubbles: true}))")
    assert opened.run("return document.activeElement.closest('tr').rowIndex") == 2
    opened.one("#find").type("\ue00c")  # escape
    assert visible_rows(opened) == 12


def test_two_runs_question_by_question(browser, tmp_path):
    found = {"a": (1, 1, 0, 0, 1), "b": (1, 0, 1, 0, 1)}
    runs = [
        FakeRun(name, [replace(record(n, float(hit)), number=n) for n, hit in enumerate(hits)])
        for name, hits in found.items()
    ]
    runs.append(FakeRun("c", [record(n, 0.0) for n in range(3)]))
    site = write_site(runs, tmp_path).parent
    browser.go(site / "index.html")
    browser.find("header a")[0].click()
    texts = (
        "return [...document.querySelectorAll('#questions tbody tr td:first-child a')].map(each => each.textContent)"
    )
    assert browser.run(texts) == [f"question {n}" for n in (1, 2, 0, 3, 4)]  # those on which they differ come first
    chips = {each.attribute("value"): each for each in browser.find("#shown button")}
    assert {name: each.text.split()[-1] for name, each in chips.items() if name != "apart"} == {
        "": "5",
        "differ": "2",
        "a": "1",
        "b": "1",
        "both": "2",
        "neither": "1",
    }
    for name, shown in {"a": [1], "b": [2], "both": [0, 4], "neither": [3], "differ": [1, 2]}.items():
        chips[name].click()
        assert browser.run(texts) == [f"question {n}" for n in shown]
        assert browser.wait_for(f"location.hash === '#show={name}'")
    verdict = browser.one("#verdict").text
    assert "A 60.0%, B 60.0%" in verdict and "p=1 (McNemar's exact test, 5 questions of both runs)" in verdict
    choose(browser, "show", "a")
    choose(browser, "b", "2")
    assert browser.run(texts) == ["question 0", "question 1"] and "3 questions" in browser.one("#verdict").text
    cells = browser.find("#questions tbody tr:first-child td")
    assert "✓right" in cells[1].text and "2 model calls" in cells[1].text and "○" in cells[2].text
    browser.find("#questions tbody tr:first-child td:nth-child(3) a")[0].click()
    assert "/run-3/00001-" in browser.url
    assert browser.console() == []


def test_layout_on_a_phone_and_on_a_wide_screen(opened, site):
    pages = [site / "index.html", site / "compare.html", *sorted(site.glob("run-2/*.html"))[:1]]
    try:
        for width in (400, 1600):
            opened.set_width(width)
            for page in pages:
                opened.go(page)
                assert opened.run("return document.documentElement.scrollWidth <= window.innerWidth"), (page, width)
                # nothing is wider than the box in which it scrolls
                cut = opened.run(
                    "return [...document.querySelectorAll('table, svg, pre')].filter(each => each.clientWidth &&"
                    " !each.closest('.wide, .cards') && each.getBoundingClientRect().right > window.innerWidth)"
                    ".map(each => each.outerHTML.slice(0, 80))"
                )
                assert cut == [], (page, width)
            stacked, drawn = opened.run(
                "return ['.stacked', 'svg.path'].map(each => document.querySelector(each).getBoundingClientRect().height > 0)"
            )
            assert (stacked, drawn) == ((True, False) if width == 400 else (False, True))
            if width == 1600:
                assert opened.run("return document.querySelector('main').clientWidth") > 1450
    finally:
        opened.set_width(1200)


def test_navigation(opened, site):
    opened.one("#find").type("kimigayo")
    opened.one("#questions tbody tr td:nth-child(3) a").click()
    assert opened.url.startswith((site / "run-2" / "00001-").as_uri())
    assert "Kimigayo" in opened.one("h1").text
    assert opened.one("#question-id").text == "demo-001"
    assert "Kimigayo" not in opened.one("#seen").text  # the topic is masked
    assert len(opened.find("svg.path circle")) >= 3
    # a tournament is folded and unfolded
    before = opened.run("return [...document.querySelectorAll('.match')].filter(e => e.checkVisibility()).length")
    opened.find("details:has(.bracket) > summary")[0].click()
    after = opened.run("return [...document.querySelectorAll('.match')].filter(e => e.checkVisibility()).length")
    assert after != before
    opened.one("a[rel=next]").click()
    assert opened.one("#question-id").text == "demo-002"
    opened.find("nav a.other")[0].click()
    assert "/run-1/" in opened.url and opened.one("#question-id").text == "demo-002"
    opened.find("nav a")[0].click()
    assert opened.url == (site / "index.html").as_uri()


@pytest.mark.parametrize(("scheme", "width"), [("light", 400), ("dark", 1600)])
def test_axe_finds_no_serious_fault(browser, site, tmp_path, scheme, width):
    corpus = write_corpus(tmp_path / "corpus")
    text = FakeRun("text", [text_record("tog3", ROUNDS)], corpus, {"settings": {"graph.path": str(corpus)}})
    others = write_site([text, FakeRun("tools", [acting_record(TOOL_TURNS)])], tmp_path / "others").parent
    lost = sorted(site.glob("run-1/*.html"))[5]
    pages = [site / "index.html", site / "compare.html", lost, *sorted(others.glob("run-*/*.html"))]
    axe = axe_script()
    browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.set_width(width)
    found = {}
    for page in pages:
        browser.go(page)
        browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        found[page] = [each for each in faults(browser, axe) if each.startswith(("serious", "critical"))]
    assert {page: each for page, each in found.items() if each} == {}


def shown_query(run) -> str:
    answer = next(run.records()).answer
    return shorten_iris(answer["sparql"], answer["prefixes"])


def test_copy_button(opened, site, by_model):
    page = next((site / "run-2").glob("00001-*.html"))
    opened.go(page)
    opened.cdp("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    opened.one("button.copy").click()
    assert opened.wait_for("document.querySelector('button.copy').textContent === 'Copied'")
    opened.run("navigator.clipboard.readText().then(text => { window.copied = text })")
    assert opened.wait_for("window.copied") == shown_query(by_model)


def test_copy_button_without_clipboard_access(opened, site, by_model):
    """If the browser denies access to the clipboard, the text is selected and copied."""
    opened.go(next((site / "run-2").glob("00001-*.html")))
    opened.run("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    opened.one("button.copy").click()
    assert opened.wait_for("document.querySelector('button.copy').textContent === 'Copied'")
    assert opened.run("return getSelection().toString()").split() == shown_query(by_model).split()


def test_more_button(browser, offline, tmp_path):
    (first, *_) = offline.records()
    run = FakeRun("many", [replace(first, id=f"q{n}") for n in range(450)])
    browser.go(write_site([run], tmp_path))
    assert visible_rows(browser) == 200
    browser.one("#more").click()
    browser.one("#more").click()
    assert visible_rows(browser) == 450
    assert browser.one("#more").attribute("hidden") == "true"


def hostile_manifest(text: str) -> dict[str, Any]:
    return {
        "dataset": {"source": text},
        "topics": "gold",
        "models": {"decide": {"model": text}},
        "graph": {"place": text, "fingerprint": text},
        "settings": {"rank.chooser": text, text: text},
    }


def test_hostile_texts_run_no_script(browser, by_model, tmp_path):
    first = next(by_model.records())
    runs = [
        FakeRun(attack, [hostile_record(first, lambda attack=attack: attack)], manifest=hostile_manifest(attack))
        for attack in ATTACKS
    ]
    index = write_site(runs, tmp_path)
    for page in [index, tmp_path / "compare.html", *sorted(tmp_path.glob("run-*/*.html"))]:
        browser.go(page)
        assert browser.run("return typeof window.hacked") == "undefined", page
        assert browser.find("h1")
    assert browser.console() == []
    assert [item for item in browser.fetched() if not item.startswith(tmp_path.as_uri())] == []


def test_injected_script_is_blocked(browser, site, tmp_path):
    """The content security policy blocks a script and an image even if escaping fails."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        evil = f"<main><script>window.hacked=1</script><img src='{address}'><link rel='stylesheet' href='{address}'>"
        (tmp_path / "index.html").write_text((site / "index.html").read_text().replace("<main>", evil))
        browser.go(tmp_path / "index.html")
        assert browser.run("return typeof window.hacked") == "undefined"
        assert sum("Content Security Policy" in item for item in browser.console()) == 3
        server.settimeout(0.5)
        with pytest.raises(TimeoutError):
            server.accept()


def test_conditions_stand_inside_the_drawing(opened, site, offline):
    record = next(offline.records())
    record = replace(record, answer={**record.answer, "paths": [with_conditions(record.answer["paths"][0])]})
    page = site / "conditions.html"
    page.write_text("".join(question_page(record, CONTEXT)), encoding="utf-8")
    opened.go(page)
    texts = opened.run("return [...document.querySelectorAll('svg .branch text')].map(each => each.textContent)")
    assert texts == ["“held from” of ?e1 is in or before 1962", "Count every different ?answer."]
    inside = opened.run(
        "const outer = document.querySelector('svg.path').getBoundingClientRect();"
        "return [...document.querySelectorAll('svg .branch')].every(each => {"
        "  const box = each.getBoundingClientRect();"
        "  return box.width > 0 && box.left >= outer.left && box.right <= outer.right && box.bottom <= outer.bottom })"
    )
    assert inside
