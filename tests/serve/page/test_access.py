"""The page for everybody: axe-core, 400 pixels, the keyboard alone, and less motion."""

from __future__ import annotations

import pytest

from tests.axe import axe_script, faults
from tests.serve.page.conftest import Page, running

pytestmark = pytest.mark.server
TAB, ENTER = "\ue004", "\ue007"
VIEWS = ("/#explore=m.demo_japan", "/#query", "/#history")


@pytest.fixture(scope="module")
def axe() -> str:
    return axe_script()


def schemes(page: Page):
    for scheme in ("light", "dark"):
        page.browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        yield scheme


def test_axe_finds_no_fault(page, axe):
    found = {}
    page.ask("What are the official languages of Canada?")
    page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.find("details.query .buttons button")[1].click()
    page.wait_for("document.querySelector('.query table')")
    page.one("#topic").type("a")
    page.wait_for("document.querySelectorAll('#topic-list [role=option]').length")
    for scheme in schemes(page):
        found["answer", scheme] = faults(page.browser, axe)
    for view in VIEWS:
        page.open(view)
        page.wait_for("document.querySelector('#around svg') || !location.hash.startsWith('#explore')")
        for scheme in schemes(page):
            found[view, scheme] = faults(page.browser, axe)
    assert {view: each for view, each in found.items() if each} == {}


def test_axe_finds_no_fault_in_edits(browser, edited_corpus, axe):
    with running(graph_path=str(edited_corpus), writable=True) as address:
        page = Page(browser, address)
        page.open("/#edits")
        page.wait_for("document.querySelectorAll('.proposal').length")
        assert faults(page.browser, axe) == []


def test_axe_finds_no_fault_in_evidence(browser, demo_corpus, axe):
    with running(graph_path=str(demo_corpus)) as address:
        page = Page(browser, address)
        page.open()
        page.ask("Who is the architect of the lighthouse of Sandrey?")
        page.wait_for("document.querySelectorAll('.chunk mark').length === 2")
        assert faults(page.browser, axe) == []
        page.browser.set_width(400)
        assert page.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_a_phone_needs_no_horizontal_scrolling(page):
    page.browser.set_width(400)
    wide = {}
    page.ask("Which city is the capital of the country whose anthem is Kimigayo?")
    page.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    for view in ("", *VIEWS):
        if view:
            page.open(view)
            page.wait_for("document.querySelector('#around svg') || !location.hash.startsWith('#explore')")
        else:  # the path stacks: its names stand below each other
            page.wait_for("document.querySelector('.path svg')?.clientWidth <= 400")
            places = page.run(
                "return [...document.querySelectorAll('.path .node circle')].map(e => +e.getAttribute('cy'))"
            )
            assert places == sorted(set(places)) and len(places) == 4
        wide[view] = page.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert set(wide.values()) == {0}


def test_the_keyboard_is_enough(page):
    page.open("/#history")
    page.keys(TAB)
    assert page.focused == "skip"
    page.keys(ENTER)
    assert page.focused == "main"
    page.open("/#history")
    page.keys(TAB, TAB, TAB)
    assert page.focused == "Ask"
    page.keys(ENTER)
    for _ in range(5):
        if page.focused != "question":
            page.keys(TAB)
    assert page.focused == "question"
    page.keys(*"What is the capital city of Brazil?", ENTER)
    page.wait_for("document.querySelector('article.answer')")
    assert page.focused == "question"
    for _ in range(30):
        page.keys(TAB)
        assert page.run(
            "const e = document.activeElement, c = e.querySelector?.('circle');"
            "return getComputedStyle(e).outlineStyle !== 'none' || (c && getComputedStyle(c).strokeWidth === '5px')"
        ), page.focused
        if page.run("return document.activeElement.matches('a.node.answer')"):
            break
    page.keys(ENTER)
    page.wait_for("document.querySelector('#around h2')?.textContent.startsWith('Bras')")
    assert page.run("return document.activeElement.tagName") == "H2"


def test_no_motion_if_less_is_wanted(page):
    page.browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    page.run("document.querySelector('#progress').hidden = false; document.querySelector('#progress').className = 'card working';"
             "document.querySelector('#steps').append(document.createElement('li'))")  # fmt: skip
    assert page.run("return getComputedStyle(document.querySelector('#steps li'), '::before').animationName") == "none"
