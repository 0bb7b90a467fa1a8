"""Questions in the page: live steps, the answer, stopping, follow-ups, history and permanent links."""

from __future__ import annotations

import threading
import time

import httpx
import pytest

from kgqa.testing.server import ScriptedServer
from tests.serve.page.conftest import SLOW, Page, running

pytestmark = pytest.mark.server
ANTHEM = "Which city is the capital of the country whose anthem is Kimigayo?"
DOWN, ENTER, ESCAPE = "\ue015", "\ue007", "\ue00c"


def test_an_example_is_asked_and_answered(page):
    page.find(".example")[0].click()
    page.wait_for("document.querySelector('article.answer')")
    assert page.texts(".answers a") == ["Tokyo"] and page.texts(".answers code") == ["m.demo_tokyo"]
    assert "returns exactly these answers" in page.one(".facts").text
    assert page.run("return document.title") == f"Tokyo – {ANTHEM} – kgqa"
    assert page.run("return document.querySelector('#live').textContent") == "Answer: Tokyo"
    assert page.texts("#steps li")  # what happened stays, folded
    drawn = page.run("return [...document.querySelectorAll('.path .node title')].map(e => e.textContent)")
    assert [name.partition(" (")[0] for name in drawn if "m.demo" in name] == ["Kimigayo", "Japan", "Tokyo"]
    page.one("details.rows summary").click()
    assert page.texts("details.rows thead tr")[0].startswith("topic")
    assert page.texts("details.rows tbody a")[:2] == ["Kimigayo", "g.demo_national_anthem_of_a_country_japan_kimigayo"]


def test_steps_arrive_while_the_question_is_answered(browser):
    """The position in the queue, each step, and the time are seen before there is an answer."""
    first, second = threading.Event(), threading.Event()

    def reply(messages):
        (second if "river" in str(messages) else first).wait(30)
        return "none"

    with ScriptedServer(reply) as model:
        with running(llm_model=f"{model.url}#slow", serve_workers=1) as address:
            page = Page(browser, address)
            page.open()
            sent = {
                "target": httpx.post,
                "args": (f"{address}/ask",),
                "kwargs": {"json": {"question": ANTHEM}, "timeout": 60},
            }
            before = [threading.Thread(**sent) for _ in range(2)]
            for each in before:
                each.start()
            while "kgqa_questions_waiting 1" not in httpx.get(f"{address}/metrics").text:
                time.sleep(0.02)
            page.one("#question").type(SLOW + "\n")
            page.wait_for("document.querySelector('#state').textContent === 'Waiting: 1 question before yours'")
            first.set()
            page.wait_for("document.querySelectorAll('#steps li').length > 2")
            while not any("river" in str(each.body) for each in model.requests):
                time.sleep(0.02)
            assert page.find("article.answer") == [] and page.run("return document.querySelector('#progress').open")
            assert page.focused == "stop"
            found, asked = len(page.find("#steps li")), len(model.requests)
            page.keys(ENTER)
            page.wait_for("document.querySelector('article.answer')")
            assert "Stopped by the user" in page.one("article.answer .status").text
            assert len(page.find("#steps li")) >= found and page.one("#state").text.startswith("Stopped after")
            second.set()
            for each in before:
                each.join(30)
            assert len(model.requests) == asked


def test_entities_are_completed_by_keyboard_and_become_topics(page):
    page.one("#topic").type("brazil")
    page.wait_for(
        "document.querySelectorAll('#topic-list [role=option]').length && !document.querySelector('#topic-list').hidden"
    )
    page.keys(DOWN)
    field = page.one("#topic")
    chosen = field.attribute("aria-activedescendant")
    assert page.one(f"#{chosen}").attribute("aria-selected") == "true" and field.attribute("aria-expanded") == "true"
    page.keys(ESCAPE)
    assert page.one("#topic-list").attribute("hidden") and field.attribute("aria-expanded") == "false"
    page.keys(DOWN)
    page.wait_for("!document.querySelector('#topic-list').hidden")
    page.keys(ENTER)
    assert page.texts("#topics .chip span") == ["Brazil"]
    page.ask("What is its capital?")
    assert page.texts(".answers a") == ["Brasília"] or page.texts(".answers a")
    assert "Brazil" in page.one(".facts").text
    page.one("#topics button").click()
    assert page.texts("#topics .chip") == [] and page.focused == "topic"


def test_a_name_typed_at_once_is_chosen_with_enter(page):
    """Enter before the list has come waits for it."""
    page.one("#topic").type("portugal" + ENTER)
    page.wait_for("document.querySelectorAll('#topics .chip').length")
    assert page.texts("#topics .chip span") == ["Portugal"]


def test_permanent_links_history_and_back(page):
    page.ask("What is the capital city of Brazil?")
    first = page.browser.url
    assert "/a/" in first
    page.one("#question").clear()
    page.ask("What are the official languages of Canada?")
    page.wait_for(f"location.href !== {first!r}")
    page.browser.command("POST", "/back")
    page.wait_for("document.querySelector('.answers a')?.textContent.startsWith('Bras')")
    assert page.browser.url == first and page.run("return document.querySelector('#question').value").endswith(
        "Brazil?"
    )
    page.open(first.removeprefix(page.address))
    page.wait_for("document.querySelector('article.answer')")
    page.find("#views a")[-1].click()
    page.wait_for("document.querySelectorAll('#past li').length")
    assert [text.split("?")[0] for text in page.texts("#past a")] == [
        "What are the official languages of Canada",
        "What is the capital city of Brazil",
    ]
    page.one("#past button").click()
    assert page.one("#past").text == "Nothing was asked yet."


def test_a_follow_up_says_what_is_asked(page):
    page.ask("What is the capital city of Brazil?")
    first = page.browser.url
    page.one("#question").clear()
    page.ask("Which country is it the capital of?")
    page.wait_for(f"location.href !== {first!r}")
    assert page.one(".resolved").text == "asked as: Which country is Brasília the capital of?"


def test_an_answer_that_is_not_kept_and_a_question_without_an_answer_say_what_helps(page):
    page.open("/a/0123456789abcdef0123456789abcdef")
    assert "There is no answer with this id" in page.one("#answer").text
    assert page.browser.console()  # the browser reports the 404
    page.ask("Who invented the flux capacitor?")
    assert "No entity of this graph was found in the question" in page.one("article .status").text
    assert "First search for it, then give its id as a topic" in page.one("article .status").text
    assert "kgqa graph" not in page.one("article").text and not page.texts("article .hints li")


def test_a_query_is_run_explained_and_changed(page):
    page.ask("What are the official languages of Canada?")
    page.one("details.query summary").click()
    _copy, run, explain, change = page.find("details.query .buttons button")
    run.click()
    page.wait_for("document.querySelector('.query table')")
    assert sorted(page.texts(".query tbody a")) == ["English", "French"]
    explain.click()
    page.wait_for("document.querySelector('.explained')")
    assert page.one(".explained").text.startswith("Find every ?answer")
    change.click()
    page.wait_for("!document.querySelector('#view-query').hidden")
    page.one("#sparql").clear()
    page.one("#sparql").type("SELECT * { ?s ?p ?o }")
    page.find("#query-form button")[0].click()
    page.wait_for("document.querySelector('#view-query .problem')")
    assert "more than 1,000 rows" in page.one("#view-query .problem").text
    page.open("/#query")  # begins with an example
    page.find("#query-form button")[0].click()
    page.wait_for("document.querySelectorAll('#view-query tbody tr').length === 10")
    page.browser.console()


def test_a_service_with_a_token_asks_for_it(browser):
    with running(tokens=("secret",)) as address:
        browser.go(address)
        browser.wait_for("!document.querySelector('#login').hidden")
        gap = "document.querySelector('#login').getBoundingClientRect().top - document.querySelector('header').getBoundingClientRect().bottom"
        assert browser.run(f"return {gap}") > 8
        browser.one("#token").type("wrong\n")
        browser.wait_for("document.querySelector('#login-note').textContent.includes('does not accept')")
        browser.one("#token").clear()
        browser.one("#token").type("secret\n")
        browser.wait_for("document.documentElement.dataset.ready")
        Page(browser, address).ask("What is the capital city of Brazil?")
