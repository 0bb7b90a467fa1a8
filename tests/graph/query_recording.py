"""Recording of the requests that a store sends, and queries reduced to their structure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import urllib3

from kgqa.graph.query.tokens import tokens
from kgqa.graph.store import Rows, Store
from kgqa.testing.loopback import LoopbackServer, Response


@dataclass(frozen=True)
class Request:
    """A received request; `fields` holds the parameters of the URL and of the form."""

    method: str
    path: str
    fields: dict[str, list[str]]

    @property
    def query(self) -> str:
        """Return the SPARQL text, empty if there is none or more than one."""
        texts = self.fields.get("query", [])
        return texts[0] if len(texts) == 1 else ""


class RecordingProxy:
    """An HTTP proxy on the loopback interface that records every request in `requests`."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._pool = urllib3.PoolManager(maxsize=8)
        self._server = LoopbackServer(self._forward)
        self.url = f"http://127.0.0.1:{self._server.port}{parts.path}"
        self.requests: list[Request] = []

    def _forward(self, method: str, address: str, headers: dict[str, str], body: bytes) -> Response:
        parts = urlsplit(address)
        fields = parse_qs(parts.query, keep_blank_values=True, errors="surrogateescape")
        form = parse_qs(body.decode("latin-1"), keep_blank_values=True, errors="surrogateescape")
        for name, values in form.items():
            fields.setdefault(name, []).extend(values)
        self.requests.append(Request(method, parts.path, fields))
        kept = {name: value for name, value in headers.items() if name not in ("host", "connection", "content-length")}
        answer = self._pool.request(
            method, self._base + address, body=body or None, headers=kept, retries=False, redirect=False
        )
        passed = ("server", "x-sparql-maxrows", "x-sql-state")
        more = tuple((name, value) for name, value in answer.headers.items() if name.lower() in passed)
        return Response(answer.status, answer.data, answer.headers.get("Content-Type", "text/plain"), more)

    def close(self) -> None:
        self._server.close()
        self._pool.clear()


class RecordingStore:
    """A store that records every query, for the embedded engine, which has no connection to record."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.queries: list[str] = []

    def select(self, query: str, **options) -> Rows:
        self.queries.append(query)
        return self._store.select(query, **options)

    def ask(self, query: str, **options) -> bool:
        self.queries.append(query)
        return self._store.ask(query, **options)

    def __getattr__(self, name: str):
        if name in ("update", "load"):
            raise AssertionError(f"nobody asked for {name}")
        return getattr(self._store, name)


_EQUAL_BRANCHES = re.compile(r"(\{(?:(?! UNION ).)+\})(?: UNION \1)+")
_TERMS = {"iri": "IRI", "string": "TEXT", "number": "NUMBER", "language": "LANGUAGE"}


def query_structure(query: str) -> str:
    """Return the structure of a query.

    Each term, or run of terms as in VALUES, is replaced by its kind, and equal branches of a UNION by one of them.
    """
    found: list[str] = []
    for token in tokens(query):
        if token.kind in ("space", "comment"):
            continue
        word = _TERMS.get(token.kind, token.text)
        if not (found and found[-1] == word and token.kind in _TERMS):
            found.append(word)
    return _EQUAL_BRANCHES.sub(r"\1", " ".join(_merge_terms(found)))


def _merge_terms(words: Iterable[str]) -> Iterable[str]:
    """Merge languages and datatypes into their literals, and runs of terms into one."""
    kept: list[str] = []
    for word in words:
        if word == "LANGUAGE" and kept and kept[-1] == "TEXT":
            continue
        if word == "IRI" and kept[-2:] == ["TEXT", "^^"]:
            del kept[-1]
            continue
        if word in ("TEXT", "IRI", "NUMBER") and kept and kept[-1] in ("TEXT", "IRI", "NUMBER"):
            kept[-1] = "TERMS" if kept[-1] != word else word
            continue
        kept.append(word)
    return kept
