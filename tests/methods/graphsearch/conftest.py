"""Questions to GraphSearch over the small corpus, with a scripted agent whose replies can be replaced."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from kgqa import ask, open_resources
from kgqa.settings.values import resolve
from kgqa.testing.agents.graphsearch_agent import GraphSearchAgent, prompt_name
from kgqa.testing.agents.shown_prompt import read_prompt
from kgqa.testing.server import ScriptedServer
from tests.small_corpus import LONG, QUESTIONS, write_corpus


@dataclass
class Asked:
    """An answer, and the prompts that led to it: their names in the order of arrival, and what they show."""

    answer: object
    names: list[str] = field(default_factory=list)
    prompts: list[object] = field(default_factory=list)

    def shown(self, name):
        """Return what the prompts of one name show."""
        return [prompt for each, prompt in zip(self.names, self.prompts) if each == name]

    def events(self, kind):
        """Return the events of one kind."""
        return [event for event in self.answer.trace if isinstance(event, kind)]


@pytest.fixture(scope="session")
def corpus_folder(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("graphsearch"))


@pytest.fixture
def run(corpus_folder):
    """`run(question=LONG, replies={...}, **settings) -> Asked`.

    `replies` maps the name of a prompt to a reply, a list of replies in order (the last one is repeated), or a function
    of what the prompt shows; a reply that is no string is sent as JSON. Other prompts are answered by the agent.
    """

    def run(question=LONG, replies=(), folder=corpus_folder, agent=None, **given):
        agent = agent or GraphSearchAgent(QUESTIONS)
        replaced = {name: list(each) if isinstance(each, list) else each for name, each in dict(replies).items()}
        found = Asked(None)

        def reply(messages):
            prompt = read_prompt(messages)
            name = prompt_name(prompt.system)
            found.names.append(name)
            found.prompts.append(prompt)
            if name not in replaced:
                return agent(messages)
            value = replaced[name]
            if isinstance(value, list):
                value = value.pop(0) if len(value) > 1 else value[0]
            value = value(prompt) if callable(value) else value
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

        with ScriptedServer(reply) as server:
            settings = {"ask.method": "graphsearch", "rank.embeddings": "off", "llm.model": f"{server.url}#m"}
            settings |= {name.replace("__", "."): value for name, value in given.items()}
            with open_resources(folder, settings=resolve({}, variants=settings)) as resources:
                found.answer = ask(question, resources=resources)
            assert not server.errors, server.errors
        return found

    return run
