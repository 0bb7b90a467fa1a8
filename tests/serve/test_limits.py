"""Limits of clients, fair turns, and the answers that are kept."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kgqa.serve.fair_queue import FairQueue, QueueFull
from kgqa.serve.kept_answers import KeptAnswers
from kgqa.serve.limits import ClientLimits, ClientTrace, LimitReached
from kgqa.settings.values import resolve
from kgqa.testing.server import ScriptedServer
from kgqa.trace.trace import NO_LIMITS, BudgetExhausted
from tests.serve.running import running

QUESTION = "What is the capital city of Brazil?"


def limits(**given: object) -> ClientLimits:
    return ClientLimits(resolve({f"serve.client_{name}": value for name, value in given.items()}))


def test_each_client_has_its_own_limits():
    counted = limits(questions=2, per_minute=3)
    counted.begin("a"), counted.begin("a"), counted.begin("b")
    with pytest.raises(LimitReached, match="2 questions in progress"):
        counted.begin("a")
    counted.end("a")
    counted.begin("a")
    counted.end("a")
    with pytest.raises(LimitReached, match="3 questions per minute") as found:
        counted.begin("a")
    assert 55 < found.value.retry_after <= 60


def test_cost_and_tokens_of_a_day_are_limited():
    counted = limits(cost=0.5, tokens=1000)
    traces = []
    for _ in range(3):  # questions at the same time share what is left of the day
        counted.begin("a")
        traces.append(ClientTrace(NO_LIMITS, listener=lambda event: None, limits=counted, client="a"))
    for trace in traces[:2]:
        trace.charge_calls("decide", 1)
        trace.tally("decide", cost=0.3, prompt_tokens=100)
    with pytest.raises(BudgetExhausted, match="cost 0.5 USD"):
        traces[2].charge_calls("decide", 1)
    counted.end("a")
    with pytest.raises(LimitReached, match="cost 0.5 USD") as found:
        counted.begin("a")
    assert 0 < found.value.retry_after <= 86_400
    counted.begin("b")
    counted.end("b")
    counted.spend("b", cost=0, tokens=1000)
    with pytest.raises(LimitReached, match="1,000 tokens"):
        counted.begin("b")


def test_clients_take_turns():
    queue = FairQueue(1, limit=100, name="test")
    order: list[str] = []
    begin = threading.Event()
    queue.submit("first", begin.wait)
    while not queue.running:
        pass
    many = [queue.submit("greedy", lambda: order.append("greedy")) for _ in range(5)]
    few = [queue.submit(name, lambda name=name: order.append(name)) for name in ("b", "c", "b")]
    assert [queue.position("greedy", many[0]), queue.position("greedy", many[4])] == [2, 7]
    assert queue.position("c", few[1]) == 2
    many[4].cancel()
    assert queue.waiting == 7
    begin.set()
    for each in (*many[:4], *few):
        each.result(5)
    queue.close()
    assert order == ["greedy", "b", "c", "greedy", "b", "greedy", "greedy"]


def test_a_full_queue_takes_no_more():
    queue = FairQueue(1, limit=1, name="test")
    begin = threading.Event()
    first = [queue.submit("a", begin.wait), queue.submit("b", begin.wait)]
    with pytest.raises(QueueFull):
        queue.submit("c", begin.wait)
    begin.set()
    assert [each.result(5) for each in first] == [True, True]
    queue.close()
    with pytest.raises(QueueFull):
        queue.submit("a", begin.wait)


def test_one_client_does_not_fill_the_queue():
    queue = FairQueue(1, limit=4, name="test")
    begin = threading.Event()
    queue.submit("greedy", begin.wait)
    while not queue.running:
        pass
    waiting = [queue.submit("greedy", begin.wait) for _ in range(3)]
    with pytest.raises(QueueFull):
        queue.submit("greedy", begin.wait)
    waiting.append(queue.submit("b", begin.wait))
    begin.set()
    assert [each.result(5) for each in waiting] == [True] * 4
    queue.close()


def test_limits_are_told_with_the_time_to_wait(session_cache):
    given = {"cache_folder": str(session_cache), "rank_embeddings": "off", "serve_cache": 0, "llm_retries": 0}
    limited = {"serve_workers": 1, "serve_queue": 1, "serve_client_questions": 3}
    with (
        ScriptedServer(lambda messages: "1", latency=30) as model,
        running(**given, **limited, llm_model=model.url) as served,
        ThreadPoolExecutor(4) as pool,
    ):

        def ask() -> int:
            return served.client.post("/ask", json={"question": QUESTION, "method": "tog"}).status_code

        asked = [pool.submit(ask)]
        while not model.calls:
            pass
        asked.append(pool.submit(ask))
        while not served.service.questions.waiting:
            pass
        full = served.client.post("/ask", json={"question": QUESTION})
        assert full.status_code == 503 and int(full.headers["retry-after"]) >= 1
        # a look-up does not wait behind questions
        assert served.client.get("/search?q=brazil").json()["entities"][0]["name"] == "Brazil"
        served.service.limits.begin("127.0.0.1")
        refused = served.client.post("/ask", json={"question": QUESTION})
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
        assert "3 questions in progress" in refused.json()["error"]["message"]
        for job in list(served.service.jobs):
            served.service.stop(job)
        assert [each.result(10) for each in asked] == [200, 200]


def test_kept_answers_are_bounded_and_survive_a_restart(tmp_path):
    folder = tmp_path / "answers"
    ids = [f"{number:032x}" for number in range(5)]
    kept = KeptAnswers(folder, number=3, megabytes=1)
    for number, id in enumerate(ids):
        kept.put(id, {"question": f"{number} “ä”\ud800"})
        os.utime(folder / f"{id}.json", (number, number))
    assert sorted(each.name for each in folder.iterdir()) == [f"{id}.json" for id in ids[2:]]
    assert folder.stat().st_mode & 0o077 == 0
    again = KeptAnswers(folder, number=3, megabytes=1)
    assert again.get(ids[0]) is None
    assert again.get(ids[4]) == kept.get(ids[4]) == {"question": "4 “ä”\ud800"}
    again.put("f" * 32, {"question": "new"})
    assert again.get(ids[2]) is None and again.get(ids[3]) is not None
    (folder / f"{ids[3]}.json").write_bytes(b'{"question": ')
    (folder / f"{ids[4]}.json").write_bytes(b"[" * 100_000)
    assert KeptAnswers(folder, number=3, megabytes=1).get(ids[3]) is None
    assert KeptAnswers(folder, number=3, megabytes=1).get(ids[4]) is None
    small = KeptAnswers(None, number=10, megabytes=1)
    for id in ids:
        small.put(id, {"question": "x" * 400_000})
    assert [id for id in ids if small.get(id)] == ids[3:]
