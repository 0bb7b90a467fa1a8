"""Sessions of EvoGraph-R1 over the small corpus, with scripted replies."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from kgqa import ask, open_resources
from kgqa.settings.values import resolve
from kgqa.testing.server import ScriptedServer
from tests.methods.evograph.hyper_corpus import write_hyper_corpus, write_web
from tests.small_corpus import SINGLE, write_corpus


@dataclass
class Asked:
    """An answer, the messages of each request, and its whole body."""

    answer: object
    requests: list[list[dict]] = field(default_factory=list)
    bodies: list[dict] = field(default_factory=list)

    def events(self, kind):
        """Return the events of one kind."""
        return [event for event in self.answer.trace if isinstance(event, kind)]


@pytest.fixture(scope="session")
def corpus_folder(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("evograph"))


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """The folder of the corpus with hyperedges, which no test changes, and the file of recorded searches."""
    folder = tmp_path_factory.mktemp("hyper")
    return write_hyper_corpus(folder / "corpus"), write_web(folder / "web.jsonl")


@pytest.fixture
def run(corpus_folder):
    """`run(*replies, question=SINGLE, folder=..., **settings) -> Asked`; the last reply is repeated."""

    def run(*replies, question=SINGLE, folder=corpus_folder, **given):
        with ScriptedServer(replies[0] if callable(replies[0]) else list(replies)) as server:
            settings = {"ask.method": "evograph", "rank.embeddings": "off", "llm.model": f"{server.url}#m"}
            given = {name.replace("__", "."): value for name, value in given.items()}
            settings |= ({} if "ask.preset" in given else {"evograph.commit": "off"}) | given
            with open_resources(folder, settings=resolve(settings)) as resources:
                answer = ask(question, resources=resources)
            assert not server.errors, server.errors
            return Asked(
                answer,
                [request.messages for request in server.requests],
                [request.body for request in server.requests],
            )

    return run


def call(name, thought="Think.", **arguments):
    """Return a reply with a call."""
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<think>{thought}</think><tool_call>{body}</tool_call>"


def final(text, thought="Done."):
    """Return a reply with an answer."""
    return f"<think>{thought}</think><answer>{text}</answer>"
