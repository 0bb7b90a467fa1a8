"""Requests that a service must refuse, and clients that must not harm others."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing, suppress

import httpx
import pytest

from kgqa.serve.api.monitoring import _asset
from kgqa.serve.guard import Guard
from tests.serve.running import Running, running

QUESTION = {"question": "What is the capital city of Brazil?"}
TOKENS = ("a-long-secret-token", "another-secret-token")


@pytest.fixture(scope="module")
def served(session_cache) -> Iterator[Running]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kgqa.serve.limits.READ_SECONDS", 0.5)
        patched.setattr("kgqa.serve.limits.BODY_BYTES", 8 << 10)
        with running(cache_folder=str(session_cache), rank_embeddings="off") as found:
            yield found


@pytest.fixture(scope="module")
def guarded(session_cache) -> Iterator[Running]:
    with running(cache_folder=str(session_cache), rank_embeddings="off", tokens=TOKENS) as found:
        yield found


def refused(reply: httpx.Response, status: int) -> bool:
    return reply.status_code == status and bool(reply.json()["error"]["message"])


def test_a_page_of_another_origin_cannot_ask(served):
    ask, headers = served.client.post, {"Content-Type": "application/json"}
    assert ask("/ask", json=QUESTION, headers={"Origin": f"http://127.0.0.1:{served.port}"}).status_code == 200
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{served.port + 1}", "http://127.0.0.1"):
        reply = ask("/ask", json=QUESTION, headers={"Origin": origin})
        assert refused(reply, 403), origin
        assert not [name for name in reply.headers if name.startswith("access-control")]
    # what a page can send without a preflight
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        assert refused(ask("/ask", content=b'{"question": "x"}', headers={"Content-Type": content_type}), 415)
    assert refused(ask("/ask", content=b'{"question": "x"}'), 415)
    assert refused(served.client.get("/search?q=x", headers={"Sec-Fetch-Site": "cross-site"}), 403)
    preflight = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST", **headers}
    assert refused(served.client.options("/ask", headers=preflight), 403)
    # a link to the page is no request of another page
    assert served.client.get("/a/x", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "1e3", "", "\u0663"])
def test_a_length_that_is_no_sensible_number_is_refused(length):
    """Servers check the header too, and not all of them."""
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-length", length.encode())]
    scope = {"type": "http", "method": "POST", "path": "/ask", "headers": headers}
    asyncio.run(Guard(None, hosts=(), tokens=())(scope, None, send))
    assert sent[0]["status"] == 413


def test_a_rebound_name_is_refused(served):
    for host in (
        "evil.example",
        f"evil.example:{served.port}",
        "localhost.evil.example",
        "",
        "[::1",
        "a b",
        "localhost:x",
    ):
        assert refused(served.client.get("/about", headers={"Host": host}), 421), host
        assert refused(served.client.post("/ask", json=QUESTION, headers={"Host": host}), 421), host
    for host in ("localhost", "LOCALHOST:1", f"127.0.0.1:{served.port}", "[::1]:80"):
        assert served.client.get("/about", headers={"Host": host}).status_code == 200, host


@pytest.mark.parametrize(
    "path",
    [
        "/static/../service.py",
        "/static/..%2fservice.py",
        "/static/%2e%2e/service.py",
        "/static//etc/passwd",
        "/static/....//service.py",
        "/static/..\\service.py",
        "/static/%00",
        "/docs/..%2f__init__.py",
        "/answers/..%2f..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
    ],
)
def test_no_file_outside_of_the_page_is_served(served, path):
    with closing(socket.create_connection(("127.0.0.1", served.port))) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        reply = received(connection)
    assert reply.split()[1] in (b"404", b"400")
    assert b"root:" not in reply and b"import" not in reply


def received(connection: socket.socket, seconds: float = 10) -> bytes:
    """Return everything until the server closes the connection."""
    connection.settimeout(seconds)
    parts = []
    with suppress(ConnectionResetError):  # it is closed before all was read that is sent to it
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def test_a_request_has_one_length(served):
    head = b"POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with closing(socket.create_connection(("127.0.0.1", served.port))) as connection:
        connection.sendall(
            head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /about HTTP/1.1"
        )
        connection.sendall(b"\r\nHost: localhost\r\n\r\n")
        reply = received(connection)
        assert reply.split()[1] == b"400" and reply.count(b"HTTP/1.1") == 1


def test_an_oversized_body_is_not_read(served):
    assert refused(served.client.post("/ask", json={"question": "x" * 9000}), 413)

    def parts() -> Iterator[bytes]:  # without a Content-Length
        yield b'{"question": "'
        for _ in range(1000):
            yield b"x" * 1000

    assert refused(served.client.post("/ask", content=parts(), headers={"Content-Type": "application/json"}), 413)
    with closing(socket.create_connection(("127.0.0.1", served.port))) as connection:
        # the server closes the connection while the headers are still being sent
        with pytest.raises(ConnectionError):
            connection.sendall(b"GET /about HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
            for _ in range(1000):
                connection.sendall(b"x" * 100_000)


def test_slow_clients_time_out_and_block_nobody(served):
    """Headers, a body, or a body that is refused, sent a byte at a time; and connections on which nothing is sent."""
    head = b"POST /ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 40\r\n\r\n"
    kinds = {  # what is sent at once, and the status of the reply
        head[:1]: b"408",
        head: b"408",
        head.replace(b"localhost", b"evil.test"): b"421",
        b"": b"408",
    }
    slow = [(at_once, socket.create_connection(("127.0.0.1", served.port))) for at_once in kinds for _ in range(40)]
    for at_once, connection in slow:
        connection.sendall(at_once)
    started = time.monotonic()
    for step in range(1, 12):
        for at_once, connection in slow:
            with suppress(OSError):  # the server has closed it
                connection.sendall((head[step : step + 1] if at_once == head[:1] else b" ") if at_once else b"")
        asked = time.monotonic()
        assert served.client.post("/ask", json=QUESTION).status_code == 200
        assert time.monotonic() - asked < 20
        time.sleep(0.05)
    for at_once, connection in slow:
        with closing(connection):
            assert received(connection).split()[1] == kinds[at_once], at_once
    assert time.monotonic() - started < 10


def test_a_client_that_reads_no_reply_is_let_go(served):
    query = {"sparql": "SELECT * { BIND('abcdefghijklmnop' AS ?a) " + doubled("a", 18) + " }"}
    body = json.dumps(query).encode()
    head = (
        f"POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    with closing(socket.socket()) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", served.port))
        connection.sendall(head.encode() + b"\r\n" + body)
        assert connection.recv(1)
        opened, ends = served.server.server_state.connections, time.monotonic() + 10
        held = next(each for each in opened if each.transport.get_extra_info("peername") == connection.getsockname())
        while held in opened and time.monotonic() < ends:
            time.sleep(0.05)
        assert held not in opened
    wait_until_logged(served)


def test_one_address_does_not_take_all_connections(served, monkeypatch):
    monkeypatch.setattr("kgqa.serve.server.ADDRESS_CONNECTIONS", 3)
    idle = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(6)]
    assert received(idle[-1]) == b""
    other = httpx.HTTPTransport(local_address="127.0.0.2")
    with httpx.Client(transport=other, base_url=served.url) as client:
        assert client.get("/about").status_code == 200
    for connection in idle:
        connection.close()


def wait_until_logged(served: Running) -> None:
    """Wait until the requests so far are in the log, which is written after the reply."""
    while served.server.server_state.tasks:
        time.sleep(0.01)


def doubled(name: str, times: int) -> str:
    """Return BINDs that double the length of a value."""
    return " ".join(f"BIND(CONCAT(?{name}{at or ''}, ?{name}{at or ''}) AS ?{name}{at + 1})" for at in range(times))


def test_a_proxy_names_the_client_only_if_it_is_known(served, session_cache, caplog):
    wait_until_logged(served)
    caplog.set_level(logging.INFO, "kgqa.serve")
    headers = {"X-Forwarded-For": "192.0.2.7"}
    served.client.get("/about", headers=headers)
    with running(cache_folder=str(session_cache), rank_embeddings="off", serve_proxy="127.0.0.1") as behind:
        behind.client.get("/about", headers=headers)
    lines = [record.getMessage() for record in caplog.records if record.name == "kgqa.serve"]
    assert [line.split()[-1] for line in lines] == ["127.0.0.1", "192.0.2.7"]


def test_a_token_is_needed(guarded):
    client = guarded.client
    for method, path in (("POST", "/ask"), ("GET", "/about"), ("GET", "/search?q=x"), ("GET", "/metrics"), ("GET", "/v1/models"), ("GET", f"/answers/{'0' * 32}"), ("GET", "/nothing")):  # fmt: skip
        body = QUESTION if method == "POST" else None
        for given in (
            None,
            "",
            "Bearer",
            "Bearer wrong",
            f"Bearer {TOKENS[0]}x",
            f"Basic {TOKENS[0]}",
            f"Bearer {TOKENS[0][:-1]}",
        ):
            headers = {} if given is None else {"Authorization": given}
            reply = client.request(method, path, json=body, headers=headers)
            assert refused(reply, 401) and reply.headers["www-authenticate"] == "Bearer", (path, given)
    for token in TOKENS:
        assert client.get("/about", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    schemes = client.get("/openapi.json").json()["components"]["securitySchemes"]
    assert [each["scheme"] for each in schemes.values()] == ["bearer"]
    # the page asks for the token, and shows nothing of the graph without one
    assert client.get("/").status_code == 200
    twice = [("Authorization", f"Bearer {TOKENS[0]}"), ("Authorization", "Bearer wrong")]
    assert refused(client.get("/about", headers=twice), 400)
    wait_until_logged(guarded)


def test_the_log_holds_no_question_and_no_token(guarded, caplog):
    caplog.set_level(logging.DEBUG)
    headers = {"Authorization": f"Bearer {TOKENS[1]}"}
    guarded.client.post("/ask", json=QUESTION, headers=headers)
    guarded.client.get("/search?q=my-private-name", headers=headers)
    guarded.client.get("/answers/my-private-id", headers=headers)
    guarded.client.get("/about?token=my-private-token", headers={"Authorization": "Bearer my-private-guess"})

    def logged() -> list[str]:
        return [record.getMessage() for record in caplog.records if record.name == "kgqa.serve"]

    end = time.monotonic() + 5
    while len(logged()) < 4 and time.monotonic() < end:  # a line is written after the reply
        time.sleep(0.01)
    lines = logged()
    assert [line.split(" ms")[0].rsplit(" ", 1)[0] for line in lines] == [
        "POST /ask 200",
        "GET /search 200",
        "GET /answers/{id} 404",
        "GET other 401",
    ]
    assert lines[0].endswith(" ms token 2")
    everything = "\n".join(record.getMessage() for record in caplog.records if "httpx" not in record.name)
    assert not [text for text in ("Brazil", "private", *TOKENS) if text in everything]


def test_every_reply_forbids_foreign_scripts_and_frames(served):
    for path in ("/", "/docs", "/about", "/nothing", "/static/main.js"):
        headers = served.client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'"), path
        assert "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_queries_of_a_client_do_not_hold_up_other_look_ups(served):
    slow = {"sparql": "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"}
    for _ in range(os.cpu_count() or 1):
        with suppress(httpx.TimeoutException):
            served.client.post("/query", json=slow, timeout=0.1)
    started = time.monotonic()
    assert served.client.get("/search?q=brazil").status_code == 200
    assert time.monotonic() - started < 20


def test_only_files_of_the_documentation_are_remembered(served):
    before = _asset.cache_info().currsize
    for name in ("a.js", "b.js", "start.css"):
        assert refused(served.client.get(f"/docs/{name}"), 404)
    assert _asset.cache_info().currsize == before
