"""Questions that `counselor` asks a scripted agent over the demo graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

from kgqa import ask, open_graph, open_resources
from kgqa.methods.counselor.declarations import CounselorSettings
from kgqa.settings.setting import settings_of
from kgqa.settings.values import resolve
from kgqa.testing.agents.counselor_agent import CounselorAgent, GoldProgram, asked_turn
from kgqa.testing.agents.shown_prompt import read_prompt
from kgqa.testing.server import ScriptedServer

FILMS = "Which films did James Cameron direct?"
COUNT = "How many films did James Cameron direct?"
VARIANTS = {key for key, each in settings_of(CounselorSettings).items() if each.variant}
CAMERON = "Neighbour[James Cameron, film (as director)]"
PROGRAMS = {
    FILMS: GoldProgram(("Retrieve[James Cameron]", CAMERON, f"Finish[{CAMERON}]"), ("Aliens", "Avatar", "Titanic")),
    COUNT: GoldProgram(("Retrieve[James Cameron]", f"Count[{CAMERON}]", "Finish[3]"), ("3",)),
}


@dataclass
class Asked:
    """An answer, and the prompts on the way, by the turn that they ask for."""

    answer: object
    turns: list = field(default_factory=list)
    prompts: list = field(default_factory=list)

    def shown(self, turn):
        return [prompt for name, prompt in zip(self.turns, self.prompts) if name == turn]

    def events(self, kind):
        return [event for event in self.answer.trace if isinstance(event, kind)]


@cache
def demo_graph():
    return open_graph()


def run(question=FILMS, replies=(), agent=None, **given):
    """Ask a question.

    `replies` maps a turn (plan, need, action, merged, verify, reflect) to a reply, a list of replies in order of which
    the last is repeated, or a function of the prompt and the step; the agent replies to other prompts.
    """
    agent, asked = agent or CounselorAgent(PROGRAMS), Asked(None)
    replaced = {name: list(each) if isinstance(each, list) else each for name, each in dict(replies).items()}

    def reply(messages):
        again = len(messages) > 2
        prompt = asked.prompts[-1] if again else read_prompt(messages)
        turn = asked.turns[-1] if again else asked_turn(prompt.user).turn
        asked.turns.append(turn)
        asked.prompts.append(prompt)
        value = replaced.get(turn, lambda prompt, step: agent(messages[:2]))
        if isinstance(value, list):
            value = value.pop(0) if len(value) > 1 else value[0]
        return value(prompt, asked_turn(prompt.user).step) if callable(value) else value

    with ScriptedServer(reply) as server:
        settings = {"ask.method": "counselor", "rank.embeddings": "off", "llm.model": f"{server.url}#m"}
        given = {name.replace("__", "."): value for name, value in given.items()}
        variants = {name: given.pop(name) for name in VARIANTS & given.keys()}
        resources = open_resources(demo_graph(), settings=resolve(settings | given, variants=variants))
        asked.answer = ask(question, resources=resources)
        resources.models.close()
        assert not server.errors, server.errors
    return asked
