"""Mixed load on one service: answers stay right, memory stays flat, and a killed worker costs at most one answer."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from tests.cli_runner import KGQA
from tests.conftest import SOAK

SECONDS = 300 if SOAK else 4
CLIENTS = 30 if SOAK else 10
MAX_GROWTH_MB = 60
"""Maximum growth of memory after the first third; the caches of vectors and answers are full by then."""
KEPT = 10_000
"""Maximum number of kept answers."""


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def children(pid: int) -> list[int]:
    return [int(each) for file in Path(f"/proc/{pid}/task").glob("*/children") for each in file.read_text().split()]


class Mixed:
    """Clients that ask, look up, break off and send nonsense, in random order."""

    def __init__(self, port: int) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        lines = files("kgqa.demo").joinpath("questions.jsonl").read_text(encoding="utf-8").splitlines()
        self._questions = [json.loads(line) for line in lines]
        self._port = port
        self._end = threading.Event()
        self._expected: dict[str, list[str]] = {}

    def run(self, seconds: float) -> None:
        """Send requests for some seconds."""
        self._end.clear()
        threads = [threading.Thread(target=self._client, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        self._end.wait(seconds)
        self._end.set()
        for thread in threads:
            thread.join(60)
        assert not any(thread.is_alive() for thread in threads)

    def _client(self, seed: int) -> None:
        choose = random.Random(f"{seed} {time.monotonic()}" if SOAK else seed)
        actions = (self._ask, self._ask, self._stream, self._break_off, self._look_up, self._query, self._nonsense)
        with httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=60) as client:
            while not self._end.is_set():
                action = choose.choice(actions)
                try:
                    action(client, choose)
                except (httpx.HTTPError, ValueError, KeyError, AssertionError, OSError) as error:
                    self.wrong.append(f"{action.__name__}: {type(error).__name__}: {error}")
                self.counts[action.__name__] += 1

    def _check(self, question: str, answer: dict) -> None:
        names = sorted(str(each["name"]) for each in answer["answers"])
        if answer["status"] == "failed" or self._expected.setdefault(question, names) != names:
            self.wrong.append(f"{question}: {answer['status']} {answer['reason']} {names}")

    def _ask(self, client: httpx.Client, choose: random.Random) -> None:
        question = choose.choice(self._questions)["question"]
        reply = client.post("/ask", json={"question": question})
        assert reply.status_code == 200, reply.text
        self._check(question, reply.json())

    def _stream(self, client: httpx.Client, choose: random.Random) -> None:
        question = choose.choice(self._questions)["question"]
        reply = client.post("/ask", json={"question": question}, headers={"Accept": "text/event-stream"})
        self._check(question, json.loads(reply.text.rpartition("event: answer\ndata: ")[2]))

    def _break_off(self, client: httpx.Client, choose: random.Random) -> None:
        body = json.dumps({"question": choose.choice(self._questions)["question"]})
        head = f"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        data = (head + body).encode()
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            connection.sendall(data[: choose.randrange(1, len(data) + 1)])
            time.sleep(choose.random() / 20)

    def _look_up(self, client: httpx.Client, choose: random.Random) -> None:
        topic = choose.choice(choose.choice(self._questions)["topic_entities"])
        assert client.get("/search", params={"q": topic["name"]}).status_code == 200
        assert client.get("/neighbours", params={"id": topic["id"]}).json()["relations"]

    def _query(self, client: httpx.Client, choose: random.Random) -> None:
        sparql = choose.choice(self._questions)["sparql"]
        rows = client.post("/query", json={"sparql": sparql})
        assert rows.status_code == 200 and rows.json()["rows"], rows.text
        words = client.post("/explain", json={"sparql": sparql})
        assert words.status_code == 200 and words.json()["words"], words.text

    def _nonsense(self, client: httpx.Client, choose: random.Random) -> None:
        data = choose.randbytes(choose.randrange(1, 200))
        assert client.post("/ask", content=data, headers={"Content-Type": "application/json"}).status_code == 400
        assert client.get(f"/{data.hex()}").status_code == 404
        assert client.post("/query", json={"sparql": "DELETE WHERE { ?s ?p ?o }"}).status_code == 400


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_mixed_load(tmp_path, session_cache):
    answers = tmp_path / "kgqa/answers"
    answers.mkdir(parents=True)
    for number in range(KEPT):  # the service starts with as many as it keeps
        (answers / f"{number:032x}.json").write_text("{}")
    environment = {**os.environ, "KGQA_SERVE_CACHE": "0", "XDG_DATA_HOME": str(tmp_path)}
    command = [KGQA, "-q", "serve", "--port", "0", "--embeddings", "off"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        try:
            port = int(process.stdout.readline().split(b"/")[2].rpartition(b":")[2])
            load = Mixed(port)
            load.run(SECONDS / 3)
            memory = [resident_mb(process.pid)]
            load.run(SECONDS / 3)
            assert not load.wrong, load.wrong[:5]
            memory.append(resident_mb(process.pid))
            killer = threading.Timer(SECONDS / 12, lambda: os.kill(children(process.pid)[0], signal.SIGKILL))
            killer.start()
            load.run(SECONDS / 3)
            memory.append(resident_mb(process.pid))
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr.read() == b""
    assert len(load.wrong) <= 1, load.wrong[:5]
    assert sum(load.counts.values()) > SECONDS, load.counts
    assert max(memory) - memory[0] < MAX_GROWTH_MB, memory
    assert len(list(answers.iterdir())) <= KEPT + 1
