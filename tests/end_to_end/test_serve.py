"""`kgqa serve` as a process: how it starts, answers and ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE

import pytest

from kgqa.testing.server import ScriptedServer
from tests.conftest import ROOT

KGQA = Path(sys.executable).with_name("kgqa")
QUESTION = "What is the capital city of Brazil?"


def port_of(process: subprocess.Popen[bytes]) -> int:
    """Return the port in the first line that the service prints."""
    line = process.stdout.readline().decode()
    match = re.fullmatch(r"Open http://127\.0\.0\.1:([0-9]+)/ in a browser\. To end: Ctrl-C\n", line)
    if match is None:
        process.kill()  # its messages are read to their end
        pytest.fail(line + process.stderr.read().decode())
    return int(match[1])


def send(port: int, method: str, path: str, body: object = None, **headers: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    given = None if body is None else json.dumps(body)
    connection.request(method, path, given, {"Content-Type": "application/json", **headers})
    return connection


def reply(connection: http.client.HTTPConnection) -> tuple[int, dict]:
    response = connection.getresponse()
    return response.status, json.loads(response.read())


@pytest.fixture(autouse=True)
def _own_data(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def taken_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_service_is_asked_and_ended(started):
    """Links work after a restart; the log shows neither questions nor tokens; questions in flight are finished."""
    process = started("serve", "--port", "0", "--embeddings", "off")
    port = port_of(process)
    status, answer = reply(send(port, "POST", "/ask", {"question": QUESTION}))
    assert (status, [each["name"] for each in answer["answers"]]) == (200, ["Brasília"])
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    log = process.stderr.read().decode()
    assert re.search(r" POST /ask 200 [0-9]+ ms 127\.0\.0\.1\n", log) and log.endswith("kgqa: Stopped.\n")
    assert "Brazil" not in log and "Traceback" not in log

    environment = {**os.environ, "KGQA_SERVE_TOKEN": "a-long-secret"}
    token = {"Authorization": "Bearer a-long-secret"}
    with ScriptedServer(lambda messages: "1", latency=0.5) as model:
        options = ("--embeddings", "off", "--llm", f"{model.url}#m", "--method", "io", "-v", "--log-questions")
        process = started("serve", "--port", "0", *options, env=environment)
        port = port_of(process)
        assert reply(send(port, "GET", f"/answers/{answer['id']}"))[0] == 401
        assert reply(send(port, "GET", f"/answers/{answer['id']}", **token)) == (200, answer)
        connection = send(port, "POST", "/ask", {"question": QUESTION}, **token)
        while not model.calls:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        status, finished = reply(connection)
        assert (status, finished["status"]) == (200, "no_answer")
        assert process.wait(20) == 0
    with pytest.raises(ConnectionRefusedError):
        send(port, "GET", "/health")
    log = process.stderr.read().decode()
    assert "a-long-secret" not in log and f'token 1 "{QUESTION}"' in log


def test_shutdown_stops_what_takes_too_long(started):
    with ScriptedServer(lambda messages: "1", latency=60) as model:
        options = ("--embeddings", "off", "--llm", f"{model.url}#m", "--set", "serve.shutdown_seconds=1")
        process = started("serve", "--port", "0", *options)
        port = port_of(process)
        connection = send(port, "POST", "/ask", {"question": QUESTION, "method": "io"})
        while not model.calls:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        status, answer = reply(connection)
        assert (status, answer["reason"]) == (200, "Stopped, because the service ends.")
        assert process.wait(20) == 0
        assert "Traceback" not in process.stderr.read().decode()


def test_a_service_that_cannot_start_says_why(kgqa, tmp_path, taken_port):
    for options, message in (
        (("--host", "0.0.0.0"), "needs a token. Set the environment variable KGQA_SERVE_TOKEN"),
        (("--host", "192.0.2.1"), "needs a token"),
        (("--graph", str(tmp_path / "nothing")), "nothing"),
        (("--method", "tog"), "needs a language model"),
        (("--set", "serve.queue=-1"), "serve.queue"),
        (("--llm", "nonsense"), "is not a language model"),
        (("--host", "127.0.0.1", "--port", str(taken_port)), "Address already in use. Choose another port: --port"),
    ):
        done = kgqa("serve", "--port", "0", *options)
        assert done.returncode in (1, 2) and message in done.err and done.out == "", (options, done.err)


def test_make_serve_names_its_own_option_and_ends_quietly(tmp_path, taken_port):
    for path in ("Makefile", "setup.cfg", "pyproject.toml", "constraints.txt"):
        (tmp_path / path).write_bytes((ROOT / path).read_bytes())
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "kgqa").symlink_to(KGQA)
    (tmp_path / ".venv" / ".installed").touch()
    # `make test` tells a make below it to print its folder
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    taken = subprocess.run(
        ["make", "serve", f"PORT={taken_port}"], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert f"Choose another port: make serve PORT={taken_port + 1}\n" in taken.stderr
    # a terminal sends Ctrl-C to make and to the service
    process = subprocess.Popen(
        ["make", "serve", "PORT=0"],
        cwd=tmp_path,
        env=environment,
        stdout=PIPE,
        stderr=PIPE,
        start_new_session=True,
    )
    with process:
        port_of(process)
        os.killpg(process.pid, signal.SIGINT)
        log = process.communicate(timeout=20)[1].decode()
    assert log.endswith("kgqa: Stopped.\n") and "make:" not in log


def test_the_token_is_shown_nowhere_else(kgqa, tmp_path):
    """Not by `kgqa config show`, and not in the folder of a run, which is often given to others."""
    token = {"KGQA_SERVE_TOKEN": "a-long-secret"}
    for options in ((), ("--json",)):
        shown = kgqa("config", "show", *options, **token).out
        assert "(hidden)" in shown and "a-long-secret" not in shown
    run = ("--dataset", "demo", "--sample", "1", "--embeddings", "off", "--out", "run")
    assert kgqa("eval", "run", *run, **token).returncode == 0
    assert not [
        file for file in (tmp_path / "run").rglob("*") if file.is_file() and b"a-long-secret" in file.read_bytes()
    ]
    assert kgqa("eval", "resume", "run").returncode == 0
