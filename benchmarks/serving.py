"""Measures `kgqa serve` on the demo graph with many clients at once, without the cache of answers.

One client asks alone; then `--clients` clients ask for `--seconds`, each its own question again and again. The 95th
percentile of `/ask` may be at most 75 times that of the single client, because the clients share the processors. Then
a worker of the store is killed (kill -9) while they ask: at most one question may fail.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from importlib.resources import files
from pathlib import Path

LARGEST_RATIO = 75
MAX_GROWTH = 1.15
"""Maximum memory at the end relative to that in the middle of the load."""


def questions() -> list[str]:
    """Return the questions about the demo graph."""
    lines = files("kgqa.demo").joinpath("questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["question"] for line in lines]


class Server:
    """`kgqa serve` as a process, on a free port."""

    def __init__(self, *options: str) -> None:
        environment = {**os.environ, "KGQA_SERVE_CACHE": "0", "KGQA_SERVE_FOLDER": "none"}
        command = [str(Path(sys.executable).with_name("kgqa")), "-q", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().split("/")[2].rpartition(":")[2])

    def memory(self) -> float:
        """Return the resident memory of the process and its workers in MB."""
        return sum(_resident(pid) for pid in (self.process.pid, *self.workers())) / 1024

    def workers(self) -> list[int]:
        """Return the ids of the processes of the store."""
        found = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(pid) for each in found for pid in each.read_text().split()]

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def _resident(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")), 0)


class Load:
    """Clients that each ask their question again and again over one connection."""

    def __init__(self, port: int, asked: list[str]) -> None:
        self.times: list[float] = []
        self.failures: Counter[str] = Counter()
        self._port, self._end = port, threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(each,)) for each in asked]

    def run(self, seconds: float) -> Load:
        for thread in self._threads:
            thread.start()
        self._end.wait(seconds)
        self._end.set()
        for thread in self._threads:
            thread.join()
        return self

    def _ask(self, question: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        body = json.dumps({"question": question})
        while not self._end.is_set():
            started = time.perf_counter()
            try:
                connection.request("POST", "/ask", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                found = json.loads(response.read())
                problem = "" if response.status == 200 else f"status {response.status}"
                if not problem and found["status"] in ("failed", "budget_exhausted"):
                    problem = found["reason"]
            except (OSError, ValueError, http.client.HTTPException) as error:
                problem = f"{type(error).__name__}: {error}"
                connection.close()
            self.times.append(time.perf_counter() - started)
            if problem:
                self.failures[problem] += 1

    def percentile(self, share: float) -> float:
        """Return a percentile of the times, in milliseconds."""
        ordered = sorted(self.times)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def alone(port: int, asked: list[str], rounds: int) -> Load:
    """Let one client ask all questions in turn."""
    load = Load(port, [])
    for _ in range(rounds):
        for question in asked:
            single = Load(port, [question])
            single._end.set()
            single._end = _Once()
            single._ask(question)
            load.times += single.times
            load.failures += single.failures
    return load


class _Once(threading.Event):
    """An event that is set when it has been looked at once."""

    def is_set(self) -> bool:
        before = super().is_set()
        self.set()
        return before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    asked = (questions() * (options.clients // len(questions()) + 1))[: options.clients]
    server = Server()
    try:
        alone(server.port, asked, 1)  # Not measured: prepares vectors and labels.
        single = alone(server.port, asked, 3)
        memory = [server.memory()]
        first = Load(server.port, asked).run(options.seconds / 2)
        memory.append(server.memory())
        second = Load(server.port, asked).run(options.seconds / 2)
        memory.append(server.memory())
        many = Load(server.port, [])
        many.times, many.failures = first.times + second.times, first.failures + second.failures
        killed = Load(server.port, asked)
        timer = threading.Timer(2, lambda: [os.kill(pid, signal.SIGKILL) for pid in server.workers()[:1]])
        timer.start()
        killed.run(5)
    finally:
        server.close()
    ratio = many.percentile(0.95) / single.percentile(0.95)
    found = {
        "single_p50_ms": round(single.percentile(0.5), 1),
        "single_p95_ms": round(single.percentile(0.95), 1),
        "clients": options.clients,
        "p50_ms": round(many.percentile(0.5), 1),
        "p95_ms": round(many.percentile(0.95), 1),
        "per_second": round(len(many.times) / options.seconds, 1),
        "ratio": round(ratio, 1),
        "failures": dict(single.failures + many.failures),
        "memory_mb": [round(each) for each in memory],
        "failed_after_kill": sum(killed.failures.values()),
        "exit_code": server.process.returncode,
    }
    if options.json:
        print(json.dumps(found))
    else:
        for name, value in found.items():
            print(f"{name:18} {value}")
    wrong = ratio > LARGEST_RATIO or found["failures"] or memory[2] > MAX_GROWTH * memory[1]
    sys.exit(bool(wrong) or sum(killed.failures.values()) > 1)


if __name__ == "__main__":
    main()
