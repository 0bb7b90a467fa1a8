"""The proxy that counts the requests of programs to a SPARQL server and a model per question."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError
from urllib.parse import parse_qs, quote, urlencode, urlsplit
from urllib.request import Request, urlopen

import pytest

from benchmarks.peer_proxy import CountingProxy
from kgqa.testing.faults import ModelReply
from kgqa.testing.loopback import LoopbackServer, Response
from kgqa.testing.server import ScriptedServer

GRAPH = "http://own.example/graph"
ROWS = gzip.compress(b'{"results": {"bindings": []}}', mtime=0)
ALL = "SELECT * WHERE { ?s ?p ?o }"


@pytest.fixture
def servers() -> Iterator[dict]:
    """Yield a recording SPARQL server, a model that counts 7 and 3 tokens, and the arguments of the proxy."""
    requests: list[tuple[str, str, dict, bytes]] = []

    def sparql(method: str, path: str, headers: dict[str, str], content: bytes) -> Response:
        requests.append((method, path, headers, content))
        if b"broken" in content or "broken" in path:
            return Response(500, b"no", "text/plain")
        kept = (("Content-Encoding", "gzip"), ("X-SPARQL-MaxRows", "5"))
        return Response(200, ROWS, "application/sparql-results+json", kept)

    store = LoopbackServer(sparql)
    with ScriptedServer(lambda messages: ModelReply("{Yes}", prompt_tokens=7, completion_tokens=3)) as model:
        yield {"requests": requests, "sparql": f"http://127.0.0.1:{store.port}/sparql", "model": model.url}
    store.close()


def proxy_of(servers: dict, **options) -> CountingProxy:
    return CountingProxy(servers["sparql"], servers["model"], **options)


def select(proxy: CountingProxy, query: str = ALL, **fields: str):
    return urlopen(f"{proxy.sparql_url}?{urlencode({'query': query, **fields})}")


def chat(proxy: CountingProxy, text: str) -> str:
    messages = [{"role": "system", "content": "ab"}, {"role": "user", "content": text}]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    request = Request(f"{proxy.model_url}/chat/completions", body, {"Content-Type": "application/json"})
    return json.load(urlopen(request))["choices"][0]["message"]["content"]


def test_queries_and_calls_are_counted_per_question(servers):
    begun: list[str] = []
    with proxy_of(servers, on_question=begun.append) as proxy:
        select(proxy)
        for ident, queries in (("q 1/ä", 2), ("q2", 1)):
            urlopen(proxy.question_url + quote(ident, safe="")).close()
            for _ in range(queries):
                reply = select(proxy)
                assert reply.headers["X-SPARQL-MaxRows"] == "5" and gzip.decompress(reply.read()).startswith(b"{")
            assert chat(proxy, "four") == "{Yes}"
        urlopen(proxy.question_url).close()
        select(proxy)
        assert begun == ["q 1/ä", "q2"]
        one, two, others = proxy.counts["q 1/ä"], proxy.counts["q2"], proxy.counts[""]
    assert (one.queries, two.queries, others.queries) == (2, 1, 2)
    assert (one.bytes, one.calls, one.prompt_chars, one.prompt_tokens, one.reply_tokens) == (2 * len(ROWS), 1, 7, 7, 3)
    assert one.last_reply == "{Yes}" and others.calls == 0 and one.failed == 0
    assert 0 < one.query_ms / 1000 + one.call_ms / 1000 <= one.seconds + 0.001


def test_unmarked_questions_are_recognised_by_their_prompts(servers):
    with proxy_of(servers, question_of=lambda text: text.partition("Q: ")[2] or None) as proxy:
        for text in ("Q: a", "more of it", "Q: b", "Q: b"):
            chat(proxy, text)
            select(proxy)
        assert {ident: (c.calls, c.queries) for ident, c in proxy.counts.items()} == {"a": (2, 2), "b": (2, 2)}
        proxy.reset()
        urlopen(proxy.question_url + "marked").close()
        chat(proxy, "Q: a")
        assert list(proxy.counts) == ["marked"]


@pytest.mark.parametrize(
    ("query", "fields", "added"),
    [
        (ALL, {}, True),
        ("SELECT * FROM <http://x.example/> WHERE { ?s ?p ?o }", {}, False),
        ("SELECT * from named <http://x.example/> WHERE { GRAPH ?g { ?s ?p ?o } }", {}, False),
        ("SELECT * WHERE { ?s ?p 'away FROM <here>' } # FROM <there>", {}, True),
        (ALL, {"default-graph-uri": "http://x.example/"}, False),
        (ALL, {"named-graph-uri": "http://x.example/"}, False),
        (ALL, {"default-graph-uri": ""}, False),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "direct"])
def test_query_without_graph_gets_the_default_graph(servers, query, fields, added, method):
    with proxy_of(servers, default_graph=GRAPH) as proxy:
        sent = urlencode({"query": query, **fields, "format": "json"})
        if method == "GET":
            urlopen(f"{proxy.sparql_url}?{sent}").close()
        elif method == "POST":
            urlopen(Request(proxy.sparql_url, sent.encode())).close()
        else:
            kind = {"Content-Type": "application/sparql-query"}
            urlopen(Request(f"{proxy.sparql_url}?{urlencode(fields)}", query.encode(), kind)).close()
    ((_, path, _, content),) = servers["requests"]
    form = parse_qs(urlsplit(path).query, keep_blank_values=True)
    if method == "POST":
        form = parse_qs(content.decode(), keep_blank_values=True)
    assert (form.get("default-graph-uri") == [GRAPH]) is added
    assert (content.decode() if method == "direct" else form["query"][0]) == query


def test_request_is_forwarded_unchanged(servers):
    with proxy_of(servers) as proxy:
        sent = urlencode({"query": ALL}).encode()
        urlopen(Request(f"{proxy.sparql_url}?y=%2F", sent, {"X-Own": "1"})).close()
    ((method, path, headers, content),) = servers["requests"]
    assert (method, path, content, headers["x-own"]) == ("POST", "/sparql?y=%2F", sent, "1")


def test_failures_are_counted_and_forwarded(servers):
    with proxy_of(servers) as proxy:
        with pytest.raises(HTTPError) as caught:
            select(proxy, "broken")
        assert caught.value.code == 500 and proxy.counts[""].failed == 1
        with pytest.raises(HTTPError) as caught:
            urlopen(f"{proxy.url}/elsewhere")
        assert caught.value.code == 404
    with CountingProxy("http://127.0.0.1:1/sparql", "http://127.0.0.1:1/v1") as proxy:
        with pytest.raises(HTTPError) as caught:
            select(proxy)
        assert caught.value.code == 502 and proxy.counts[""].failed == 1


def test_time_is_measured_for_both_servers(servers):
    with proxy_of(servers, round_trip=0.02, latency=0.05) as proxy:
        select(proxy)
        chat(proxy, "x")
        counts = proxy.counts[""]
    assert counts.query_ms >= 20 and counts.call_ms >= 50 and counts.seconds >= 0.07


def test_concurrent_requests_are_counted(servers):
    with proxy_of(servers) as proxy, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: select(proxy).read(), range(40)))
        assert proxy.counts[""].queries == 40
