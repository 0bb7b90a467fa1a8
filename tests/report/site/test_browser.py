"""A report in a real browser, opened from the disk."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from kgqa.report.site.question_page import question_page
from kgqa.report.site.writing import write_site
from tests.browser import Browser
from tests.report.conftest import hostile_record
from tests.report.test_comparison import FakeRun
from tests.report.test_pages import ATTACKS, CONTEXT, with_conditions

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


def test_filters(opened):
    opened.one("#find").type("ANTHEM kimigayo")
    assert visible_rows(opened) == 1
    opened.one("#find").clear()
    opened.one("#find").type("no such words")
    assert visible_rows(opened) == 0 and opened.one("#count").text == "0 of 12 questions"
    opened.one("#find").clear()
    opened.wait_for("document.querySelectorAll('#questions tbody tr').length === 12")
    assert visible_rows(opened) == 12
    right = opened.run(
        "const s = document.getElementById('stage'); s.value = '0'; s.dispatchEvent(new Event('change'));"
        "return document.querySelectorAll('#questions tbody tr').length"
    )
    wrong = opened.run(
        "const s = document.getElementById('stage'); s.value = '-1'; s.dispatchEvent(new Event('change'));"
        "return document.querySelectorAll('#questions tbody tr').length"
    )
    assert 0 < right < 12 and 0 < wrong < 12 and right + wrong >= 12
    opened.run("const s = document.getElementById('run'); s.value = '1'; s.dispatchEvent(new Event('change'))")
    assert visible_rows(opened) <= 2


def test_navigation(opened, site):
    opened.one("#find").type("kimigayo")
    opened.one("#questions tbody tr td:nth-child(4) a").click()
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


def test_copy_button(opened, site, by_model):
    page = next((site / "run-2").glob("00001-*.html"))
    opened.go(page)
    opened.cdp("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    opened.one("button.copy").click()
    assert opened.wait_for("document.querySelector('button.copy').textContent === 'Copied'")
    opened.run("navigator.clipboard.readText().then(text => { window.copied = text })")
    query = next(by_model.records()).answer["sparql"]
    assert opened.wait_for("window.copied") == query


def test_copy_button_without_clipboard_access(opened, site, by_model):
    """If the browser denies access to the clipboard, the text is selected and copied."""
    opened.go(next((site / "run-2").glob("00001-*.html")))
    opened.run("navigator.clipboard.writeText = () => Promise.reject(new Error('no'))")
    opened.one("button.copy").click()
    assert opened.wait_for("document.querySelector('button.copy').textContent === 'Copied'")
    assert opened.run("return getSelection().toString()").split() == next(by_model.records()).answer["sparql"].split()


def test_more_button(browser, offline, tmp_path):
    (first, *_) = offline.records()
    run = FakeRun("many", [replace(first, id=f"q{n}") for n in range(450)])
    browser.go(write_site([run], tmp_path))
    assert visible_rows(browser) == 200
    browser.one("#more").click()
    browser.one("#more").click()
    assert visible_rows(browser) == 450
    assert browser.one("#more").attribute("hidden") == "true"


def test_hostile_texts_run_no_script(browser, by_model, tmp_path):
    first = next(by_model.records())
    runs = [FakeRun(attack, [hostile_record(first, lambda attack=attack: attack)]) for attack in ATTACKS]
    index = write_site(runs, tmp_path)
    for page in [index, *sorted(tmp_path.glob("run-*/*.html"))]:
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
