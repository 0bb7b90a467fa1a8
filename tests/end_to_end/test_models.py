"""`kgqa ask` with a language model on a server: recorded replies, keys, budgets, presets."""

from __future__ import annotations

import json
import socket

import pytest

from kgqa import open_resources
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion
from kgqa.graph.opening import open_graph
from kgqa.settings.values import resolve
from kgqa.storage.cache import Cache
from kgqa.testing import faults
from kgqa.testing.gold_table import gold_for
from kgqa.testing.model_oracle import Gold, ModelOracle
from kgqa.testing.server import ScriptedServer
from scripts import demo_graph as build

CAPITAL = "Which city is the capital of the country whose anthem is Kimigayo?"
CURRENCY = "Which currency do people pay with in Switzerland?"
KEY = "sk-secret-0123456789"
GOLD = {
    CAPITAL: ("m.demo_kimigayo", "m.demo_tokyo", "Tokyo"),
    CURRENCY: ("m.demo_switzerland", "m.demo_swiss_franc", "Swiss franc"),
}
WORDS = ("--embeddings", "off")


@pytest.fixture(scope="module")
def gold(session_cache):
    """The right paths of both questions, worded as in masked, unmasked and published prompts."""
    with open_graph(cache=Cache(session_cache)) as demo:
        found = []
        published = {"ask.method": "top-2", "ask.preset": "as-published", "llm.model": "http://127.0.0.1:1/v1#m"}
        for given in ({"ask.method": "top-2"}, {"ask.method": "top-1"}, published):
            resources = open_resources(demo, settings=resolve({"rank.embeddings": "off", **given}))
            for text, (topic, ident, name) in GOLD.items():
                question = GoldQuestion(text, "", "", 0, topics=(topic,), answers=(GoldAnswer(ident, name),))
                found.append(gold_for(question, resources))
    return Gold(
        tuple(solution for each in found for solution in each.solutions),
        frozenset(node for each in found for node in each.nodes),
        tuple(dict.fromkeys(name for each in found for name in each.answers)),
    )


@pytest.fixture
def oracle(gold):
    with ScriptedServer(ModelOracle({"": gold}), constrains="structured_outputs") as server:
        yield server


def test_gold_ids_are_in_the_demo_graph():
    lines = "".join(build.build_lines())
    assert all(f"/{ident}>" in lines for topic, answer, _ in GOLD.values() for ident in (topic, answer))


def reproducible(found):
    """The JSON of an answer without values that differ from run to run."""
    usage = {name: value for name, value in found["usage"].items() if name != "seconds"}
    trace = [{name: value for name, value in event.items() if name != "at"} for event in found.get("trace", ())]
    return {**found, "usage": usage, "trace": trace}


@pytest.mark.parametrize("method", ["top-1", "top-2"])
def test_recorded_replies_reproduce_the_answer(kgqa, gold, method):
    arguments = ("ask", CAPITAL, *WORDS, "--method", method, "--json", "--trace", "--replay", "kept.jsonl")
    with ScriptedServer(ModelOracle({"": gold}), constrains="structured_outputs") as server:
        url = f"{server.url}#oracle"
        live = kgqa(*arguments, "--llm", url)
        call_count = server.calls
        again = kgqa(*arguments, "--llm", url)
        assert server.calls == call_count > 0  # no call is repeated
    closed = kgqa(*arguments, "--llm", url, "--replay-only")
    assert live.returncode == again.returncode == closed.returncode == 0
    first, second, third = (reproducible(json.loads(done.out)) for done in (live, again, closed))
    assert first == second == third
    assert [answer["name"] for answer in first["answers"]] == ["Tokyo"] and first["method"] == method
    assert first["usage"]["calls"] == call_count and first["query_class"] in ("exact", "restricted")
    file_alone = kgqa(*arguments[:-2], "--llm", "replay:kept.jsonl")
    assert reproducible(json.loads(file_alone.out)) == first


def test_missing_reply(kgqa, oracle):
    options = (*WORDS, "--method", "top-2", "--replay", "kept.jsonl", "--llm", f"{oracle.url}#oracle")
    assert kgqa("ask", CURRENCY, *options).returncode == 0
    call_count = oracle.calls
    done = kgqa("ask", CAPITAL, *options, "--replay-only", "--json")
    found = json.loads(done.out)
    assert (done.returncode, found["status"], found["answers"]) == (1, "failed", []) and oracle.calls == call_count
    assert "no reply of oracle" in found["reason"] and "--replay kept.jsonl" in found["reason"]
    missing = kgqa("ask", CURRENCY, *WORDS, "--llm", f"{oracle.url}#oracle", "--replay", "none.jsonl", "--replay-only")
    assert missing.returncode == 1 and "no replay file none.jsonl" in missing.err
    nameless = kgqa("ask", CURRENCY, *WORDS, "--llm", f"{oracle.url}#oracle", "--replay-only")
    assert nameless.returncode == 2 and "--replay FILE" in nameless.err


def test_closed_port(kgqa):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    done = kgqa("ask", CURRENCY, *WORDS, "--llm", f"{url}#m", KGQA_LLM_RETRIES="0")
    assert done.returncode == 1 and done.out.startswith("Failed:")
    assert url in done.out and "Start the server, or change --llm" in done.out
    unnamed = kgqa("ask", CURRENCY, *WORDS, "--llm", url, KGQA_LLM_RETRIES="0")
    assert unnamed.returncode == 1 and url in unnamed.err and "Start the server, or change --llm" in unnamed.err


def test_key_is_sent_to_the_server_only(kgqa, gold, tmp_path):
    with ScriptedServer(ModelOracle({"": gold}), key=KEY) as server:
        arguments = ("ask", CURRENCY, *WORDS, "--method", "top-2", "--llm", f"{server.url}#oracle", "--trace")
        right = kgqa(*arguments, "--json", "--replay", "kept.jsonl", KGQA_LLM_KEY=KEY)
        assert json.loads(right.out)["answers"][0]["name"] == "Swiss franc" and server.calls
        text_output = kgqa(*arguments, KGQA_LLM_KEY=KEY)
        wrong = kgqa(*arguments, "--json", KGQA_LLM_KEY=f"{KEY}-wrong")  # the reply of the server contains it
        without_key = kgqa(*arguments)
    for done in (right, text_output, wrong, without_key):
        assert "sk-secret" not in done.out + done.err
    assert not any(b"sk-secret" in file.read_bytes() for file in tmp_path.glob("kept.jsonl*"))
    assert wrong.returncode == without_key.returncode == 1
    assert "KGQA_LLM_KEY" in json.loads(wrong.out)["reason"] and "KGQA_LLM_KEY" in without_key.out


def test_as_published(kgqa, oracle):
    done = kgqa(
        "ask", CAPITAL, *WORDS, "--method", "top-2", "--llm", f"{oracle.url}#oracle", "--as-published", "--json"
    )
    found = json.loads(done.out)
    assert [answer["name"] for answer in found["answers"]] == ["Tokyo"] and found["query_class"] == "exact"
    prompts = [request.messages[-1]["content"] for request in oracle.requests]
    # The id contains the name, so [E1] is shown.
    assert all("whose anthem is [E1]?" in prompt for prompt in prompts)
    assert any("government.national_anthem.national_anthem_of" in prompt for prompt in prompts)
    assert all("structured_outputs" not in request.body for request in oracle.requests)


def test_max_calls_returns_the_best_answer_so_far(kgqa, oracle):
    limited = (*WORDS, "--method", "top-1", "--llm", f"{oracle.url}#oracle", "--max-calls", "2")
    done = kgqa("ask", CAPITAL, *limited, "--json")
    found = json.loads(done.out)
    assert (done.returncode, found["status"], found["usage"]["calls"]) == (3, "budget_exhausted", 2)
    assert oracle.calls == 2 and found["answers"] and "more than 2 model calls" in found["reason"]
    assert found["grounding"] == "graph" and found["sparql"] and found["defects"] == []
    text = kgqa("ask", CAPITAL, *limited)
    assert "Stopped: The budget is exhausted: more than 2 model calls." in text.out and text.returncode == 3


def test_several_questions_from_standard_input(kgqa, oracle):
    lines = [CAPITAL, json.dumps({"question": CURRENCY, "id": "two"}), "Where is Xyzzy Plugh?"]
    done = kgqa("ask", *WORDS, "--json", "--llm", f"{oracle.url}#oracle", input="\n".join(lines))
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [item["status"] for item in found] == ["answered", "answered", "no_answer"]
    assert [item["answers"][0]["name"] for item in found[:2]] == ["Tokyo", "Swiss franc"]
    assert found[1]["id"] == "two" and done.returncode == 3
    assert all(item["usage"]["calls"] for item in found[:2]) and found[2]["usage"]["calls"] == 0


def test_model_failure_affects_one_question(kgqa, gold):
    oracle = ModelOracle({"": gold})

    def reply(messages):
        return faults.wrong_key(KEY) if "anthem is" in messages[1]["content"] else oracle(messages)

    with ScriptedServer(reply, constrains="structured_outputs") as server:
        done = kgqa(
            "ask", *WORDS, "--json", "--llm", f"{server.url}#m", input=f"{CAPITAL}\n{CURRENCY}\n", KGQA_LLM_KEY=KEY
        )
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [item["status"] for item in found] == ["failed", "answered"] and KEY not in done.out


def test_text_names_the_model_and_the_cost(kgqa, oracle):
    done = kgqa("ask", CURRENCY, *WORDS, "--llm", f"{oracle.url}#oracle")
    assert done.out.startswith("Swiss franc") and "Compared by oracle." in done.out
    assert "model call" in done.out and "no language model configured" not in done.out


@pytest.mark.parametrize("method", ["tog", "cot"])
def test_baselines(kgqa, oracle, method):
    found = json.loads(kgqa("ask", CURRENCY, *WORDS, "--method", method, "--llm", f"{oracle.url}#oracle", "--json").out)
    assert found["status"] == "answered" and found["method"] == method
    assert (found["grounding"], bool(found["sparql"])) == (("graph", True) if method == "tog" else ("model", False))


def test_method_without_its_model(kgqa):
    done = kgqa("ask", CURRENCY, "--method", "tog")
    assert done.returncode == 2 and "--llm openai:NAME" in done.err
