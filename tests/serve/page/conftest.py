"""Services on the loopback, and the page in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kgqa.corpus.building.build import build_corpus
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.graph.opening import load_into_folder
from tests.browser import Browser
from tests.corpus.editing.edited_corpus import build, iri_of, overlay, parties, shown
from tests.report.test_pages import ATTACKS
from tests.serve.running import running as running_service

SLOW = "Which river flows through the capital of Japan?"


@contextmanager
def running(*, tokens: tuple[str, ...] = (), writable: bool = False, **given: Any) -> Iterator[str]:
    """Run a service without embeddings, and yield its address without a slash at the end."""
    with running_service(rank_embeddings="off", tokens=tokens, writable=writable, **given) as service:
        yield service.url


class Page:
    """The page of a service in a browser."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.browser, self.address = browser, address
        self.one, self.find, self.run, self.wait_for = browser.one, browser.find, browser.run, browser.wait_for

    def open(self, path: str = "/") -> None:
        self.browser.go("about:blank")
        self.browser.go(self.address + path)
        self.wait_for("document.documentElement.dataset.ready")

    def ask(self, question: str) -> None:
        self.one("#question").type(question + "\n")
        self.wait_for("document.querySelector('article.answer')")

    def texts(self, selector: str) -> list[str]:
        return self.run(f"return [...document.querySelectorAll({selector!r})].map(e => e.innerText.trim())")

    def keys(self, *keys: str) -> None:
        """Press keys where the focus is."""
        for key in keys:
            actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
            self.browser.command("POST", "/actions", actions=[{"type": "key", "id": "keys", "actions": actions}])

    @property
    def focused(self) -> str:
        return self.run("const e = document.activeElement; return e.id || e.textContent || e.tagName")


@pytest.fixture(scope="module")
def demo_address() -> Iterator[str]:
    with running() as address:
        yield address


@pytest.fixture
def page(browser, demo_address) -> Iterator[Page]:
    """The page of the demo graph; the test must end without an error in the console."""
    found = Page(browser, demo_address)
    found.open()
    found.run("localStorage.clear()")
    yield found
    assert [line for line in browser.console() if "favicon" not in line] == []


def escaped(text: str) -> str:
    """Return a text as it is written in N-Triples."""
    return "".join(c if (c.isalnum() and c.isascii()) or c == " " else f"\\U{ord(c):08X}" for c in text)


@pytest.fixture(scope="session")
def hostile_graph(tmp_path_factory) -> tuple[Path, list[str]]:
    """A graph whose names, ids, relations and literals are attacks, and the names."""
    names = [text for text in ATTACKS if text.isprintable() or "\x1b" in text]
    names += [
        "x" * 3000,
        "مرحبا بالعالم",
        "\u202eevil\u202c" + "A\u200bB",
        "https://x/<img src=x onerror=window.hacked=1>",
    ]
    base, label = "http://e.example/", "<http://www.w3.org/2000/01/rdf-schema#label>"
    triples = [f'<{base}hub> {label} "Hub" .', f'<{base}knows> {label} "{escaped(names[0])}" .']
    for number, name in enumerate(names):
        triples += [
            f'<{base}n{number}> {label} "{escaped(name)}" .',
            f"<{base}hub> <{base}knows> <{base}n{number}> .",
            f"<{base}n{number}> <{base}part> <{base}hub> .",
            f'<{base}hub> <{base}note> "{escaped(name)}" .',
        ]
    file = tmp_path_factory.mktemp("hostile") / "hostile.nt"
    file.write_text("\n".join(triples) + "\n")
    load_into_folder([file], file.parent / "graph")
    return file.parent / "graph", names


@pytest.fixture(scope="session")
def edited_corpus(tmp_path_factory) -> Path:
    """A corpus with two proposed edits, one of them with hostile texts."""
    folder = build(tmp_path_factory.mktemp("edits") / "corpus")
    with Corpus.open(folder) as corpus:
        mine = overlay(corpus, question=f"Where did Ada meet him? {ATTACKS[0]}")
        met = iri_of(corpus.reader, "Ada met Babbage London")
        mine.update(met, "Ada met Babbage Paris", parties("Ada"), [shown(1, "Ada met Babbage in Paris.", "corpus")])
        mine.insert(ATTACKS[2], parties("Ada"), [shown(2, ATTACKS[9], iri="http://x.example/<script>")])
        commit(mine, "proposed")
    return folder


@pytest.fixture(scope="session")
def demo_corpus(tmp_path_factory) -> Path:
    """The corpus of the demo documents."""
    folder = tmp_path_factory.mktemp("corpus") / "demo"
    build_corpus(folder, [Path(str(files("kgqa.demo") / "corpus"))], embeddings="off")
    return folder
