"""Questions to GraphSearch over the small corpus, with a scripted agent whose replies can be replaced."""

from __future__ import annotations

import pytest

from kgqa.testing.agents.graphsearch_agent import GraphSearchAgent, prompt_name
from kgqa.testing.agents.shown_prompt import read_prompt
from tests.small_corpus import LONG, QUESTIONS, write_corpus

from ..scripted import replies_by_kind, run_scripted


@pytest.fixture(scope="session")
def corpus_folder(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("graphsearch"))


def kind_of(messages):
    return prompt_name(read_prompt(messages).system)


@pytest.fixture
def run(corpus_folder):
    """`run(question=LONG, replies={...}, **settings) -> Run`; a scripted agent answers what has no reply."""

    def run(question=LONG, replies=(), folder=corpus_folder, **given):
        respond = replies_by_kind(replies, GraphSearchAgent(QUESTIONS), kind_of, read_prompt)
        settings = {"ask.method": "graphsearch"}
        settings |= {name.replace("__", "."): value for name, value in given.items()}
        return run_scripted(respond, question, graph=folder, variants=settings, kind_of=kind_of)

    return run
