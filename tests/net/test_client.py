"""The HTTP client: proxies of the environment, redirects, Retry-After, and models on servers behind all of these."""

from __future__ import annotations

import re
import time
from email.utils import formatdate

import pytest
from urllib3.exceptions import ConnectTimeoutError, LocationValueError, SSLError

from kgqa.errors import ModelUnavailable, SettingsError, StoreUnavailable
from kgqa.llm.backends.openai import OpenAIChat
from kgqa.llm.client import Message, Prompt
from kgqa.net.client import HttpClient, Request, is_same_server, read_up_to, retry_after
from kgqa.net.connections import proxy_for
from kgqa.rank.embedding.remote import RemoteEncoder
from kgqa.testing.loopback import LoopbackServer, Response
from kgqa.testing.server import ScriptedServer

DEAD = "http://127.0.0.1:9"
PROMPT = Prompt((Message("user", "hello"),), "decide")
EMBEDDINGS = b'{"data": [{"index": 0, "embedding": [3.0, 4.0]}]}'


@pytest.fixture
def proxies(monkeypatch):
    """Return `proxies(**variables)`, which sets the only proxies of the environment."""
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_proxy".upper(), raising=False)
    return lambda **variables: [monkeypatch.setenv(name, value) for name, value in variables.items()]


def get(url: str) -> tuple[int, bytes]:
    client = HttpClient(url, patience=0.0)
    with client.deadline(time.monotonic() + 5) as deadline:
        response = client.request(lambda: Request("GET", url, {}), lambda response: "final", deadline=deadline)
        return response.status, read_up_to(client.chunks(response, deadline), 1000)


@pytest.mark.parametrize(
    "variables",
    [{"http_proxy": DEAD, "https_proxy": DEAD}, {"all_proxy": "socks5://127.0.0.1:9"}, {"http_proxy": "127.0.0.1:9"}],
)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_server_on_this_machine_needs_no_proxy(proxies, variables, host):
    proxies(**variables)
    with (
        ScriptedServer(lambda messages: "yes") as chat,
        LoopbackServer(lambda *_: Response(body=EMBEDDINGS)) as embeddings,
    ):
        model = OpenAIChat(None, url=chat.url.replace("127.0.0.1", host))
        assert model.complete([PROMPT])[0].text == "yes" and model.responds(1)
        encoder = RemoteEncoder(f"http://{host}:{embeddings.port}", "m")
        assert encoder.encode(["a"]).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
        assert get(f"http://{host}:{embeddings.port}/") == (200, EMBEDDINGS)


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({"http_proxy": "http://p:1"}, "http://e.org/", "http://p:1"),
        ({"http_proxy": "http://p:1"}, "https://e.org/", ""),
        ({"all_proxy": "http://p:1"}, "https://e.org/", "http://p:1"),
        ({"all_proxy": "http://p:1", "no_proxy": "e.org"}, "https://www.e.org/", ""),
        ({"all_proxy": "http://p:1", "no_proxy": "e.org:8890"}, "http://e.org:8890/", ""),
        ({"all_proxy": "http://p:1", "no_proxy": "*"}, "http://e.org", ""),
        ({"all_proxy": "http://p:1"}, "http://[::1]:8890/", ""),
        ({"all_proxy": "http://p:1"}, "http://127.8.9.1/", ""),
    ],
)
def test_proxy_of_the_environment(proxies, variables, url, proxy):
    proxies(**variables)
    assert proxy_for(url) == proxy


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("p.example:3128", r"The proxy address p.example:3128 must start with http://.*http_proxy.*no_proxy"),
        ("ftp://me:geheim@p.example", r"The proxy address ftp://p.example must start with"),
        ("socks5://me:geheim@p.example:1080", r"The proxy socks5://p.example:1080 needs .*PySocks.*pip install"),
    ],
)
def test_unusable_proxy_is_named(proxies, monkeypatch, variable, message):
    proxies(http_proxy=variable)
    monkeypatch.setattr("kgqa.net.connections.find_spec", lambda name: None)
    for opened in (HttpClient, lambda url: OpenAIChat("m", url=url), lambda url: RemoteEncoder(url, "m")):
        with pytest.raises(SettingsError, match=message) as caught:
            opened("http://far.example")
        assert "geheim" not in str(caught.value)


def test_dead_proxy_is_named(proxies):
    proxies(http_proxy="http://me:geheim@127.0.0.1:9")
    message = r"The proxy http://127.0.0.1:9 for http://far.example\S* does not answer"
    with pytest.raises(StoreUnavailable, match=message) as caught:
        get("http://far.example")
    with pytest.raises(ModelUnavailable, match=message):
        OpenAIChat("m", url="http://far.example", retries=0).complete([PROMPT])
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (LocationValueError("x"), "http://e.org is not the address of a server"),
        (SSLError("bad\x1b[31m"), r"No secure connection to http://e.org \(bad\[31m\).*SSL_CERT_FILE"),
        (ConnectTimeoutError("x"), "Nothing answers at http://e.org. .*kgqa virtuoso status"),
        (OSError("x"), "lost during a query"),
    ],
)
def test_lost_connections_are_explained(problem, message):
    client = HttpClient("http://e.org")
    assert re.match(f".*{message}", str(client.error_of(problem)))
    assert "may have been carried out" in str(client.error_of(OSError("x"), is_update=True))


@pytest.mark.parametrize(
    ("url", "target", "same"),
    [("http://e/sparql", "/sparql/", True), ("http://e:80/sparql", "http://E/x", True), ("http://e/a", "https://e/a", True),
     ("https://e/sparql", "http://e/sparql", False), ("http://e/sparql", "http://e:8080/sparql", False),
     ("http://e:8080/sparql", "https://e/sparql", False), ("http://e/sparql", "//f/sparql", False),
     ("http://e/sparql", "", False), ("http://e/sparql", "http://[", False), ("http://e/a", "http://e:99999/", False)],
)  # fmt: skip
def test_redirects_within_a_server(url, target, same):
    assert is_same_server(url, target) is same


def test_redirect_within_the_server_is_followed_and_a_circle_left():
    def answer(method, path, headers, content):
        target = {"/old": "/new", "/circle": "/circle", "/out": "http://127.0.0.1:9/"}.get(path)
        return Response(307, headers=(("Location", target),)) if target else Response(body=path.encode())

    with LoopbackServer(answer) as server:
        url = f"http://127.0.0.1:{server.port}"
        assert get(f"{url}/old") == (200, b"/new")
        assert get(f"{url}/circle")[0] == get(f"{url}/out")[0] == 307


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3", 3), (" 7 ", 7), ("0", 0), ("-4", None), ("", None), ("soon", None), ("inf", None), ("²", None),
     ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("Wed, 99 Oct 2015 07:28:00 GMT", 0), ("Wed, 99 Foo 2020", None)],
)  # fmt: skip
def test_retry_after_header(text, seconds):
    assert retry_after({"retry-after": text}) == seconds
    assert retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)}) == pytest.approx(60, abs=3)
