"""The explorer: from entity to entity, back, more neighbours, and a question about what was found."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.server


def shown(page, name: str) -> None:
    page.wait_for(f"document.querySelector('#around h2')?.textContent === {name!r}")


def test_walk_and_back(page):
    page.find("#views a")[1].click()
    page.one("#entity").type("marie curie\n")
    shown(page, "Marie Curie")
    assert page.run("return document.title") == "Marie Curie – kgqa"
    assert page.find("#around svg a.node") and "Relations that lead here" in page.one("#around").text
    page.run(
        "[...document.querySelectorAll('.relations a')].find(a => a.textContent === 'Poland' || a.textContent === 'Physicist' || a.textContent).click()"
    )
    page.wait_for("document.querySelector('#around h2').textContent !== 'Marie Curie'")
    page.browser.command("POST", "/back")
    shown(page, "Marie Curie")
    page.browser.command("POST", "/forward")
    page.wait_for("document.querySelector('#around h2').textContent !== 'Marie Curie'")


def test_a_node_of_an_answer_leads_to_the_explorer_and_back(page):
    page.ask("What is the capital city of Brazil?")
    page.run(
        "document.querySelector('.path a.node.answer').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, view: window}))"
    )
    page.wait_for("!document.querySelector('#view-explore').hidden && document.querySelector('#around h2')")
    page.browser.command("POST", "/back")
    page.wait_for("!document.querySelector('#view-ask').hidden")
    assert page.find("article.answer")


def test_more_neighbours_and_ask_about(page):
    page.open("/#explore=m.demo_europe")
    page.wait_for("document.querySelector('.more')")
    count = int(page.run("return document.querySelector('.more').closest('div').querySelector('.count').textContent"))
    before = page.run("return document.querySelector('.more').previousElementSibling.children.length")
    page.run(
        "document.querySelector('.more').previousElementSibling.dataset.seen = '1'; document.querySelector('.more').click()"
    )
    page.wait_for(f"document.querySelector('[data-seen]').children.length > {before}")
    names = page.texts("[data-seen] a")
    assert len(set(names)) == len(names) <= count
    page.one("#around .primary").click()
    page.wait_for("!document.querySelector('#view-ask').hidden")
    assert page.texts("#topics .chip span") == ["Europe"] and page.focused == "question"


def test_an_unknown_entity_is_an_error_in_words(page):
    page.open("/#explore=m.nothing")
    page.wait_for("document.querySelector('#around .problem')")
    assert "There is no entity m.nothing" in page.one("#around .problem").text
    page.browser.console()
