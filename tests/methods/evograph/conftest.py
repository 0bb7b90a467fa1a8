"""Sessions of EvoGraph-R1 over the small corpus, with scripted replies."""

from __future__ import annotations

import json

import pytest

from tests.methods.evograph.hyper_corpus import write_hyper_corpus, write_web
from tests.methods.scripted import run_scripted
from tests.small_corpus import SINGLE, write_corpus


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
    """`run(*replies, question=SINGLE, folder=..., **settings) -> Run`; a function gives all replies."""

    def run(*replies, question=SINGLE, folder=corpus_folder, **given):
        given = {name.replace("__", "."): value for name, value in given.items()}
        given = {"ask.method": "evograph", **({} if "ask.preset" in given else {"evograph.commit": "off"}), **given}
        return run_scripted(replies[0] if callable(replies[0]) else list(replies), question, graph=folder, **given)

    return run


def call(name, thought="Think.", **arguments):
    """Return a reply with a call."""
    body = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<think>{thought}</think><tool_call>{body}</tool_call>"


def final(text, thought="Done."):
    """Return a reply with an answer."""
    return f"<think>{thought}</think><answer>{text}</answer>"
