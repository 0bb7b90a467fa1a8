"""Builds HTTP requests for queries and updates (SPARQL 1.1 Protocol, sections 2.1, 2.2) with SPARQLWrapper."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from SPARQLWrapper import SPARQLWrapper

from kgqa.graph.endpoint.profiles import Profile
from kgqa.text.words import clean
from kgqa.version import __version__

MAX_GET_CHARS = 1_500
"""The longest query sent by GET, in characters. Escaping may triple the length, and servers refuse URLs of a few
thousand characters with misleading errors."""


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request without a login. `target` is the path of the URL with the query string."""

    method: str
    url: str
    target: str
    headers: dict[str, str]
    body: bytes | None


class RequestBuilder:
    """Builds requests to one address. Thread-safe.

    Args:
        contact: e-mail address or URL of a person to contact, for the User-Agent header.
        compressed: whether to ask for replies compressed with gzip.
    """

    def __init__(self, url: str, *, contact: str, compressed: bool) -> None:
        self._url = url
        self._agent = user_agent(contact)
        self._compressed = compressed
        self._local = threading.local()  # one SPARQLWrapper per thread, because the object holds the query

    def query(self, text: str, *, is_ask: bool, profile: Profile, limit: float | None) -> Request:
        """Build the request for a SELECT or ASK query: a GET request if it is short, else a POST request with a form.

        Virtuoso hangs if the body of a POST request is the query itself.

        Args:
            is_ask: whether the query is an ASK query.
            limit: the time limit to send, in seconds; None to send no limit.
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
        """Build the request for an update: a POST request with a form."""
        wrapper = self._wrapper()
        wrapper.queryString, wrapper.queryType, wrapper.updateEndpoint = text, "INSERT", url
        wrapper.parameters, wrapper.customHttpHeaders = {}, {}
        wrapper.setMethod("POST")
        return self._build(wrapper)

    def _build(self, wrapper: Any) -> Request:
        request = wrapper._createRequest()  # `query` would first detect the kind of query, which takes most of the time
        headers = dict(request.header_items())
        if self._compressed:
            headers["Accept-encoding"] = "gzip"
        return Request(request.get_method(), request.full_url, request.selector, headers, request.data)

    def _wrapper(self) -> Any:
        wrapper = getattr(self._local, "wrapper", None)
        if wrapper is None:
            wrapper = self._local.wrapper = SPARQLWrapper(self._url, returnFormat="json", agent=self._agent)
            wrapper.setOnlyConneg(True)  # send no further parameters: servers refuse unknown ones
        return wrapper


def user_agent(contact: str) -> str:
    """Return the User-Agent header: tool, version and contact."""
    about = f" ({clean(contact)[:200]})" if contact else ""
    return f"kgqa/{__version__}{about}".encode("ascii", "replace").decode()
