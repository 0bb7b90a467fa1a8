"""ToG-3 on a small corpus, with scripted replies for each kind of prompt."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from kgqa import ask, open_resources
from kgqa.settings.values import resolve
from kgqa.testing.agents.shown_prompt import read_prompt
from kgqa.testing.agents.tog3_agent import Tog3Agent, prompt_kind
from kgqa.testing.server import ScriptedServer
from tests.small_corpus import QUESTIONS, write_corpus

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


class Run:
    """An answer, and the requests that led to it."""

    def __init__(self, answer, requests):
        self.answer, self.requests = answer, requests
        self.kinds = [prompt_kind(read_prompt(request.messages)) for request in requests]
        self.calls = len(requests)
        self.counts = Counter(self.kinds)
        self.why = [event.why for event in answer.trace if event.kind == "stopped"]

    def prompts(self, kind):
        return [r.messages[1]["content"] for r, each in zip(self.requests, self.kinds) if each == kind]

    def events(self, kind):
        return [event for event in self.answer.trace if event.kind == kind]


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("tog3"))


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("kgqa.llm.backends.exchange.FIRST_PAUSE", 0.01)


@pytest.fixture
def run(folder):
    """Return `run(question=BIRTH, agent=..., answer=..., reflect=..., ..., **settings) -> Run`.

    A reply is a value, a text, a list whose last item is repeated, or a function of the prompt. Kinds of prompts
    without a reply here are answered by `agent`.
    """

    def run(question=BIRTH, agent=None, corpus=folder, replies={}, **given):
        agent = agent or Tog3Agent(QUESTIONS)
        waiting = {kind: list(each) if isinstance(each, list) else each for kind, each in replies.items()}

        def respond(messages):
            kind = prompt_kind(read_prompt(messages))
            if kind not in waiting:
                return agent(messages)
            reply = waiting[kind]
            if isinstance(reply, list):
                reply = reply.pop(0) if len(reply) > 1 else reply[0]
            if callable(reply):
                reply = reply(messages[1]["content"])
            return json.dumps(reply) if isinstance(reply, dict) else reply

        with ScriptedServer(respond) as server:
            settings = {
                "ask.method": "tog3",
                "rank.embeddings": "off",
                "llm.model": f"{server.url}#m",
                "tog3.keep": 1,
                "tog3.retriever": "bm25",
            }
            settings |= {name.replace("__", "."): value for name, value in given.items()}
            with open_resources(corpus, settings=resolve({}, variants=settings)) as resources:
                answer = ask(question, resources=resources)
            assert not server.errors
            return Run(answer, list(server.requests))

    return run
