"""ToG-3 on a small corpus, with scripted replies for each kind of prompt."""

from __future__ import annotations

import pytest

from kgqa.testing.agents.shown_prompt import read_prompt
from kgqa.testing.agents.tog3_agent import Tog3Agent, prompt_kind
from tests.small_corpus import QUESTIONS, write_corpus

from ..scripted import replies_by_kind, run_scripted

BORN = "Mara Holt was born in Tarn Harbour in 1871."
HILL = "The highest hill of Corrin is Ben Aske."
BIRTH = "Where was Mara Holt born?"
ASKED = (
    "Which is the highest hill of Corrin?",
    "Who painted ships?",
    "What was counted in 1998?",
    "What is in a museum?",
)
"""Sub-questions that find one passage each, which no other one finds first."""


def answered(name, quote=BORN, claim="A claim."):
    """Return a reply that answers, with a quote that is searched for in all passages."""
    return {"answer": [name], "response": f"It is {name}.", "support": [{"claim": claim, "piece": 1, "quote": quote}]}


def judged(verdict, *questions):
    return {"verdict": verdict, "missing": "" if verdict == "YES" else "A step.", "questions": list(questions)}


UNKNOWN = {"answer": ["Unknown"], "response": "A step is missing.", "support": []}
EDITS = {"keep": [], "same": [], "add": []}
PUBLISHED = {"ask__preset": "as-published", "tog3__keep": 2}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("tog3"))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("kgqa.llm.backends.exchange.FIRST_PAUSE", 0.01)


def kind_of(messages):
    return prompt_kind(read_prompt(messages))


@pytest.fixture
def run(folder):
    """`run(question=BIRTH, agent=..., replies={...}, **settings) -> Run`; the agent answers what has no reply."""

    def run(question=BIRTH, agent=None, corpus=folder, replies={}, **given):
        respond = replies_by_kind(replies, agent or Tog3Agent(QUESTIONS), kind_of, read_prompt)
        settings = {"ask.method": "tog3", "tog3.keep": 1, "tog3.retriever": "bm25"}
        settings |= {name.replace("__", "."): value for name, value in given.items()}
        return run_scripted(respond, question, graph=corpus, variants=settings, kind_of=kind_of)

    return run
