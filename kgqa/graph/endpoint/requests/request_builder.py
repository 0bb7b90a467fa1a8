"""Queries and updates as HTTP requests (SPARQL 1.1 Protocol, sections 2.1 and 2.2), built with SPARQLWrapper."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kgqa.graph.endpoint.profiles import Profile
from kgqa.version import __version__
from kgqa.words import clean

MAX_GET_CHARS = 1_500
"""Characters of a query sent by GET. Escaped it may be three times as long, and servers refuse addresses of some
thousand characters with misleading errors."""


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request without its login. `target` is the path of the address with its query string."""

    method: str
    url: str
    target: str
    headers: dict[str, str]
    body: bytes | None


class RequestBuilder:
    """Builds requests to one address. Thread-safe.

    Args:
        contact: whom to write to, for the User-Agent header. compressed: whether to ask for gzip.
    """

    def __init__(self, url: str, *, contact: str, compressed: bool) -> None:
        self._url = url
        self._agent = user_agent(contact)
        self._compressed = compressed
        self._local = threading.local()  # SPARQLWrapper holds the query as state

    def query(self, text: str, *, is_ask: bool, profile: Profile, limit: float | None) -> Request:
        """Build a SELECT or ASK: by GET if short, else as a form by POST (Virtuoso hangs on a body of bare SPARQL).

        Args:
            is_ask: whether it is an ASK.
            limit: the time limit to send, in seconds; None to send none.
        """
        wrapper = self._wrapper()
        text = profile.prepared(text)
        wrapper.queryString, wrapper.queryType = text, "ASK" if is_ask else "SELECT"
        wrapper.setMethod("GET" if len(text) <= MAX_GET_CHARS and text.isascii() else "POST")
        value = None if limit is None else profile.time_limit(limit)
        wrapper.parameters = {profile.timeout_parameter: [value]} if value and profile.timeout_parameter else {}
        wrapper.customHttpHeaders = {profile.timeout_header: value} if value and profile.timeout_header else {}
        return self._build(wrapper)

    def update(self, text: str, *, url: str) -> Request:
        """Build an update: a form by POST."""
        wrapper = self._wrapper()
        wrapper.queryString, wrapper.queryType, wrapper.updateEndpoint = text, "INSERT", url
        wrapper.parameters, wrapper.customHttpHeaders = {}, {}
        wrapper.setMethod("POST")
        return self._build(wrapper)

    def _build(self, wrapper: Any) -> Request:
        request = wrapper.request()
        headers = dict(request.header_items())
        if self._compressed:
            headers["Accept-encoding"] = "gzip"
        return Request(request.get_method(), request.full_url, request.selector, headers, request.data)

    def _wrapper(self) -> Any:
        wrapper = getattr(self._local, "wrapper", None)
        if wrapper is None:
            wrapper = self._local.wrapper = _wrapper_class()(self._url, returnFormat="json", agent=self._agent)
            wrapper.setOnlyConneg(True)  # servers refuse parameters they do not know
        return wrapper


def user_agent(contact: str) -> str:
    """Return the User-Agent header: tool, version and contact."""
    about = f" ({clean(contact)[:200]})" if contact else ""
    return f"kgqa/{__version__}{about}".encode("ascii", "replace").decode()


@lru_cache(maxsize=1)
def _wrapper_class() -> type:
    from SPARQLWrapper import SPARQLWrapper

    class Wrapper(SPARQLWrapper):
        """SPARQLWrapper without its search of the text for the kind of query, which takes most of its time."""

        def request(self) -> Any:
            return self._createRequest()

    return Wrapper
