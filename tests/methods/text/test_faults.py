"""The methods over text under faulty calls, contradictory agents, spent budgets, and passages that give orders.

Every question ends in a status that says so; nothing that was not read is accepted, and nothing that was not quoted
grounds an answer.
"""

from __future__ import annotations

import itertools
import json
from typing import get_args

import pytest

from kgqa import ask, open_resources
from kgqa.model import Status
from kgqa.settings.values import resolve
from kgqa.storage.answer_json import answer_object, json_text
from kgqa.testing import faults
from kgqa.testing.agents.graphsearch_agent import GraphSearchAgent
from kgqa.testing.agents.text_agents import RagAgent
from kgqa.testing.agents.tog3_agent import Tog3Agent
from kgqa.testing.server import ScriptedServer
from kgqa.trace import DraftVerified, StepAnswered, SufficiencyJudged
from tests.small_corpus import LONG, ORDER, QUESTIONS, write_corpus

AGENTS = {"rag": RagAgent, "tog3": Tog3Agent, "graphsearch": GraphSearchAgent}
METHODS = tuple(AGENTS)
FEW = {"tog3": {"tog3.retrieve": 2, "tog3.keep": 2, "tog3.rounds": 4}}
"""Settings with which a question needs several rounds in a corpus as small as this."""
FAULTS = (faults.server_error(), faults.half_json(), faults.cut_off(), faults.html(), faults.refusal(), faults.empty())
GARBAGE = (
    "Yes ... No",
    "[" * 1000,
    '{"answers": 7, "verdict": ["yes"], "questions": "none", "support": {}}',
    '{"answer": ',
    "<think>yes</think>",
    "\x00\x1b[31m\ud800",
)


def consistent(verdict: str) -> str:
    """Return one reply for all prompts: an answer without a true quote, and this verdict wherever there is one."""
    invented = {"claim": "Mars is near.", "passage": 1, "piece": 1, "quote": "Mars is near."}
    answer = "Mars" if verdict == "yes" else "Unknown"
    fact = {"subject": "Mars", "relation": "is", "object": "near", "passage": 1, "quote": "Mars is near."}
    replies = {
        "answers": [answer] if verdict == "yes" else [],
        "answer": answer,
        "response": answer,
        "verdict": verdict,
    }
    replies |= {"missing": "", "failed": [] if verdict == "yes" else [1], "support": [invented], "claims": [invented]}
    replies |= {"questions": ["Where is Mars?", "Why?"], "steps": [{"question": "Where is Mars?", "triples": []}]}
    return json.dumps({**replies, "keep": [1], "same": [["Mars", "Corrin"]], "add": [fact]})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The corpus, and the one with passages that give orders."""
    folder = tmp_path_factory.mktemp("faults")
    return {name: write_corpus(folder / name, poison=name == "poisoned") for name in ("clean", "poisoned")}


@pytest.fixture
def run(folders):
    """`run(method, reply, *questions, corpus="clean", **settings) -> (answers, number of requests)`."""

    def run(method, reply, *questions, corpus="clean", **given):
        with ScriptedServer(reply) as server:
            settings = {"ask.method": method, "rank.embeddings": "off", "llm.model": f"{server.url}#m"}
            settings |= FEW.get(method, {}) | {name.replace("__", "."): value for name, value in given.items()}
            with open_resources(folders[corpus], settings=resolve(settings)) as resources:
                answers = [ask(question, resources=resources) for question in questions or QUESTIONS]
            assert not server.errors
            return [checked(answer) for answer in answers], server.calls

    return run


def checked(answer):
    """Return an answer after checks that hold in every run."""
    assert answer.status in get_args(Status)
    assert answer.answers or (answer.status != "answered" and answer.reason)
    assert not answer.answers or answer.status in ("answered", "budget_exhausted")
    assert json.loads(json_text(answer_object(answer, trace=True)))
    for event in answer.trace:
        if isinstance(event, SufficiencyJudged):
            assert event.verdict in ("yes", "no", "unparsed") and (event.verdict == "yes" or not event.accepted)
        elif isinstance(event, DraftVerified):
            assert event.verdict in ("yes", "no", "unparsed")
        elif isinstance(event, StepAnswered):
            assert event.verified <= event.quotes and (event.read or not event.answers)
    texts = {evidence.words for evidence in answer.evidence if hasattr(evidence, "words")}
    assert all(citation.quote in texts for citation in answer.citations if citation.verified)
    return answer


@pytest.mark.parametrize("method", METHODS)
def test_faults_in_a_tenth_of_the_calls(run, method):
    agent = AGENTS[method](QUESTIONS)
    for first, retries in itertools.product(range(0, 10, 3), (0, 1)):
        turn, kinds = itertools.count(first), itertools.cycle(FAULTS[first:] + FAULTS[:first])

        def faulty(messages, turn=turn, kinds=kinds):
            return next(kinds) if next(turn) % 10 == 9 else agent(messages)

        answers, _ = run(method, faulty, llm__retries=retries)
        right = [answer for answer, gold in zip(answers, QUESTIONS.values()) if str(answer) == gold.answers[0]]
        assert all(answer in right or answer.status != "answered" or answer.notes for answer in answers)
        assert retries == 0 or right


@pytest.mark.parametrize("method", METHODS)
def test_garbage_is_never_an_answer(run, method):
    for begin in range(0, len(GARBAGE), 3):
        kinds = itertools.cycle(GARBAGE[begin:] + GARBAGE[:begin])
        (answer,), _ = run(method, lambda messages, kinds=kinds: next(kinds), LONG)
        assert answer.grounding != "text" and not any(getattr(event, "accepted", False) for event in answer.trace)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("agent", ["yes", "no", "alternating"])
def test_contradictory_agents(run, method, agent):
    replies = {"yes": ("yes",), "no": ("no",), "alternating": ("yes", "no")}[agent]
    turn = itertools.cycle(map(consistent, replies))
    answers, calls = run(method, lambda messages: next(turn))
    assert calls <= 25 * len(answers)
    for answer in answers:
        # the only quote is invented
        assert answer.grounding in ("none", "model") and answer.evidence_sparql == ""
        assert not any(getattr(event, "accepted", False) for event in answer.trace)
    if agent == "no":
        assert {answer.status for answer in answers} == {"no_answer"}


@pytest.mark.parametrize("method", METHODS)
def test_budget_spent_anywhere(run, method):
    agent = AGENTS[method](QUESTIONS)
    (whole,), needed = run(method, agent, LONG)
    assert str(whole) == "Ben Aske" and needed >= {"rag": 1, "tog3": 6, "graphsearch": 6}[method]
    assert whole.usage.calls == needed
    for calls in range(needed):
        (answer,), sent = run(method, agent, LONG, budget__calls=calls)
        assert sent <= calls and answer.usage.calls <= calls
        assert answer.status in ("budget_exhausted", "no_answer") or answer.notes
    if method != "rag":  # only the last verdict is missing
        assert answer.status == "budget_exhausted" and [each.name for each in answer.answers] == ["Ben Aske"]
        assert answer.grounding in ("text", "graph") and not answer.accepted
    for queries in (1, 2, 5):
        run(method, agent, LONG, budget__queries=queries)


@pytest.mark.parametrize("method", METHODS)
def test_no_order_in_a_passage_is_followed(run, method):
    agent = AGENTS[method](QUESTIONS)
    shown = []

    def reply(messages):
        shown.append(messages)
        return agent(messages)

    many = {"tog3__retrieve": 8, "tog3__keep": 8} if method == "tog3" else {}
    answers, _ = run(method, reply, corpus="poisoned", **many)
    assert any(ORDER in message["content"] for messages in shown for message in messages)
    for answer, gold in zip(answers, QUESTIONS.values()):
        assert str(answer) == gold.answers[0] and answer.grounding in ("text", "graph")
        assert ORDER not in answer.response and not any(ORDER in each.quote for each in answer.citations)
    for messages in shown:
        outside = "".join(message["content"] for message in messages if message["role"] == "system")
        assert ORDER not in outside
