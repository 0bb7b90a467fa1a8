"""A graph whose every text is an attack, in every view: nothing runs, and no element is made of data."""

from __future__ import annotations

import pytest

from tests.serve.page.conftest import Page, running

pytestmark = pytest.mark.server
FOREIGN = "main img, main script, main iframe, main style, main object, main [onload], main [onerror], main [onfocus], main [onmouseover]"


@pytest.fixture(scope="module")
def hostile_address(hostile_graph):
    with running(graph_path=str(hostile_graph[0])) as address:
        yield address


@pytest.fixture
def hostile(browser, hostile_address):
    page = Page(browser, hostile_address)
    page.open()
    yield page
    assert page.run("return window.hacked") is None
    assert page.find(FOREIGN) == []
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert page.browser.console() == []


def test_answer_and_query(hostile, hostile_graph):
    hostile.one("#topic").type("hub\n")
    hostile.wait_for("document.querySelectorAll('#topics .chip').length")
    hostile.ask("<script>window.hacked=1</script> whom does it know?")
    hostile.browser.set_width(400)
    hostile.run("document.querySelectorAll('details').forEach(each => each.open = true)")
    hostile.find("details.query .buttons button")[1].click()
    hostile.wait_for("document.querySelector('.query table')")
    hostile.find("details.query .buttons button")[2].click()
    hostile.wait_for("document.querySelector('.explained')")
    shown = hostile.run("return document.querySelector('main').textContent")
    assert "<script>window.hacked=1</script>" in shown and not set("\u202e\u2066\x1b\x00\u2028") & set(shown)


def test_explorer_search_and_history(hostile, hostile_graph):
    hostile.open("/#explore=" + "http%3A%2F%2Fe.example%2Fhub")
    hostile.wait_for("document.querySelectorAll('#around svg .node').length > 5")
    hostile.browser.set_width(400)
    text = hostile.run("return document.querySelector('#around').textContent")
    assert "x" * 100 in text and "x" * 400 not in text.replace("…", "") and "مرحبا بالعالم" in text
    assert "<svg onload=window.hacked=1>" in text and not set("\u202e\u2066\x1b\u200b") & set(text)
    hostile.one("#entity").type("script")
    hostile.wait_for("document.querySelectorAll('#entity-list [role=option]').length")
    hostile.find("#entity-list li")[0].click()
    hostile.wait_for("document.querySelector('#around h2')?.textContent !== 'Hub'")
    hostile.run(
        "localStorage.setItem('kgqa-history', JSON.stringify([{id: 'javascript:window.hacked=1', question: '<img src=x onerror=window.hacked=1>', at: 'x'}, 7, {id: {}}]))"
    )
    hostile.open("/#history")
    hostile.wait_for("document.querySelectorAll('#past li').length === 1")
    assert hostile.one("#past a").attribute("href").endswith("/a/javascript%3Awindow.hacked%3D1")


def test_the_policy_refuses_inline_scripts_and_html_from_texts(hostile):
    refused = hostile.run(
        "try { document.body.innerHTML = '<b>x</b>'; return false } catch (error) { return error.name }"
    )
    assert refused == "TypeError"
    refused = hostile.run(
        "try { document.body.setAttribute('onclick', 'window.hacked=1') } catch (error) { return error.name }"
    )
    assert refused == "TypeError"
    assert [line for line in hostile.browser.console() if "Content Security Policy" in line or "TrustedHTML" in line]
