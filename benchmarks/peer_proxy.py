"""A proxy for a SPARQL server and a language model server; it counts a program's requests per question."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode

import urllib3

from kgqa.errors import QueryRejected
from kgqa.graph.query.tokens import tokens
from kgqa.testing.loopback import LoopbackServer, Response

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "content-type", "host", "date"}
DATASET = ("default-graph-uri", "named-graph-uri")
SECONDS = 600.0
"""Timeout of a forwarded request in seconds."""


@dataclass
class Counts:
    """Counts of the requests for one question.

    Bytes are the sizes of replies before decompression. Token counts are those that the language model server reports.
    Milliseconds are summed over requests. `failed` counts replies with an error status.
    """

    queries: int = 0
    bytes: int = 0
    query_ms: float = 0.0
    calls: int = 0
    prompt_chars: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    call_ms: float = 0.0
    failed: int = 0
    first: float = 0.0
    last: float = 0.0
    last_reply: str = ""

    @property
    def seconds(self) -> float:
        """The seconds from the first request to the end of the last reply."""
        return self.last - self.first


class CountingProxy(LoopbackServer):
    """A proxy on a free port of the loopback interface. It runs as soon as it is created. Thread-safe.

    The proxy forwards `/sparql` to the SPARQL server and `/v1/...` to the language model server. A request to
    `/question/ID` starts a question, and a request to `/question/` ends it. If a program sends no such requests, each
    question starts with its first prompt. Requests before the first question are counted for a question with the id "".

    Args:
        sparql: URL of the SPARQL server.
        model: URL of the model server, ending in `/v1`.
        default_graph: graph IRI that is added as `default-graph-uri` to queries without a graph.
        round_trip: seconds added before each reply of the SPARQL server.
        latency: seconds added before each reply of the language model.
        question_of: returns the id of the question to which a prompt belongs, or None for the current question.
        on_question: called with each id when its question starts.
    """

    def __init__(
        self,
        sparql: str,
        model: str,
        *,
        default_graph: str = "",
        round_trip: float = 0.0,
        latency: float = 0.0,
        question_of: Callable[[str], str | None] = lambda prompt: None,
        on_question: Callable[[str], None] = lambda ident: None,
    ) -> None:
        self.counts: dict[str, Counts] = {}
        self._targets = {"sparql": sparql, "v1": model.rstrip("/")}
        self._default_graph = default_graph
        self._delays = {"sparql": round_trip, "v1": latency}
        self._question_of, self._on_question = question_of, on_question
        self._current, self._marked = "", False
        self._pool = urllib3.PoolManager(maxsize=64, block=False)
        super().__init__(self._answer)
        self.url = f"http://127.0.0.1:{self.port}"

    @property
    def sparql_url(self) -> str:
        """The URL for SPARQL queries."""
        return f"{self.url}/sparql"

    @property
    def model_url(self) -> str:
        """The base URL for requests to the language model."""
        return f"{self.url}/v1"

    @property
    def question_url(self) -> str:
        """The URL to which a question's id is appended to start the question."""
        return f"{self.url}/question/"

    def reset(self) -> None:
        """Set all counts to zero before the next program runs."""
        with self._lock:
            self.counts = {}
            self._current, self._marked = "", False

    def begin(self, ident: str, *, marked: bool = True) -> None:
        """Start a question; all later requests are counted for this question.

        Args:
            marked: prompts of other questions start no question from now on.
        """
        self._marked = marked and bool(ident)
        with self._lock:
            self._current = ident
        if ident:
            self._on_question(ident)

    def close(self) -> None:
        """Stop the proxy."""
        super().close()
        self._pool.clear()

    # ---- forwarding ----

    def _answer(self, method: str, path: str, headers: dict[str, str], content: bytes) -> Response:
        arrived = time.perf_counter()
        place = path.partition("?")[0].strip("/").partition("/")[0]
        if place == "question":
            self.begin(unquote(path.removeprefix("/question").strip("/")))
            return Response(204)
        if place not in self._targets:
            return Response(404, b"Use /sparql, /v1/... or /question/ID.", "text/plain")
        if place == "sparql":
            path, content = self._with_graph(path, headers.get("content-type", ""), content)
        else:
            self._follow(content)
        with self._lock:
            ident = self._current
        self.wait(self._delays[place])
        url = self._targets[place] + path.removeprefix(f"/{place}")
        kept = {name: value for name, value in headers.items() if name not in HOP_BY_HOP - {"content-type"}}
        try:
            reply = self._pool.request(
                method, url, body=content or None, headers=kept, retries=False, redirect=False, timeout=SECONDS,
                preload_content=False,
            )  # fmt: skip
            body = reply.read(decode_content=False)
            reply.release_conn()
            status, passed = reply.status, list(reply.headers.items())
        except (urllib3.exceptions.HTTPError, OSError) as error:
            status, passed, body = 502, [("content-type", "text/plain")], str(error).encode("utf-8", "replace")
        kind = next((value for name, value in passed if name.lower() == "content-type"), "")
        if place == "sparql" or method == "POST":
            self._count(place, ident, arrived, content, body, failed=status >= 400)
        return Response(status, body, kind, tuple((n, v) for n, v in passed if n.lower() not in HOP_BY_HOP))

    def _with_graph(self, path: str, kind: str, content: bytes) -> tuple[str, bytes]:
        """Add the default graph to a request without a graph."""
        address, _, query = path.partition("?")
        in_body = kind.startswith("application/x-www-form-urlencoded")
        form = content.decode("utf-8", "replace") if in_body else ""
        fields = [*parse_qsl(query, keep_blank_values=True), *parse_qsl(form, keep_blank_values=True)]
        text = next((value for name, value in fields if name == "query"), "")
        if kind.startswith("application/sparql-query"):
            text = content.decode("utf-8", "replace")
        if not self._default_graph or not text or any(name in DATASET for name, _ in fields) or _names_graph(text):
            return path, content
        added = urlencode({DATASET[0]: self._default_graph})
        if form:
            return path, f"{form}&{added}".encode()
        return f"{address}?{query}&{added}" if query else f"{address}?{added}", content

    # ---- counting ----

    def _follow(self, content: bytes) -> None:
        if not self._marked and (ident := self._question_of(_prompt(content))) not in (None, self._current):
            self.begin(str(ident), marked=False)

    def _count(self, place: str, ident: str, arrived: float, sent: bytes, body: bytes, *, failed: bool) -> None:
        now = time.perf_counter()
        with self._lock:
            counts = self.counts.setdefault(ident, Counts(first=arrived))
            counts.last = max(counts.last, now)
            counts.failed += failed
            if place == "sparql":
                counts.queries += 1
                counts.bytes += len(body)
                counts.query_ms += 1000 * (now - arrived)
                return
            usage, text = _reply(body)
            counts.calls += 1
            counts.call_ms += 1000 * (now - arrived)
            counts.prompt_chars += len(_prompt(sent))
            counts.prompt_tokens += int(usage.get("prompt_tokens") or 0)
            counts.reply_tokens += int(usage.get("completion_tokens") or 0)
            counts.last_reply = text or counts.last_reply


def _names_graph(query: str) -> bool:
    """Tell whether a query has a FROM or GRAPH clause."""
    try:
        return any(token.kind == "word" and token.text.upper() == "FROM" for token in tokens(query))
    except QueryRejected:
        return False


def _prompt(content: bytes) -> str:
    """Return the messages of a chat request as one string."""
    try:
        messages = json.loads(content)["messages"]
        return "\n".join(str(message.get("content") or "") for message in messages)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ""


def _reply(body: bytes) -> tuple[dict[str, Any], str]:
    """Return the usage and the text of a chat reply."""
    try:
        reply = json.loads(body)
        return reply.get("usage") or {}, str(reply["choices"][0]["message"].get("content") or "")
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return {}, ""
