"""Builds HTTP requests for queries and updates (SPARQL 1.1 Protocol, sections 2.1, 2.2) with SPARQLWrapper.

SPARQLWrapper itself opens a connection per request, and supports neither HTTP 429 nor a limit on the total time of a
request. So it formats requests, and `HttpClient` sends them. For this, `RequestBuilder` calls a private method.
"""

from __future__ import annotations

import copy
from typing import Any

from SPARQLWrapper import SPARQLWrapper

from kgqa.graph.endpoint.profiles import Profile
from kgqa.net.client import Request
from kgqa.text.words import clean
from kgqa.version import __version__

MAX_GET_CHARS = 1_500
"""The longest query sent by GET, in characters. Escaping may triple the length, and servers refuse URLs of a few
thousand characters with misleading errors."""


class RequestBuilder:
    """Builds requests to one address, without a login. Thread-safe.

    Args:
        contact: e-mail address or URL of a person to contact, for the User-Agent header.
        compressed: whether to ask for replies compressed with gzip.
    """

    def __init__(self, url: str, *, contact: str, compressed: bool) -> None:
        about = f" ({clean(contact)[:200]})" if contact else ""
        agent = f"kgqa/{__version__}{about}".encode("ascii", "replace").decode()
        self._wrapper = SPARQLWrapper(url, returnFormat="json", agent=agent)
        self._wrapper.setOnlyConneg(True)  # send no further parameters: servers refuse unknown ones
        self._headers = {"Accept-encoding": "gzip"} if compressed else {}

    def query(self, text: str, *, is_ask: bool, profile: Profile, limit: float | None) -> Request:
        """Build the request for a SELECT or ASK query: a GET request if it is short, else a POST request with a form.

        Virtuoso hangs if the body of a POST request is the query itself.

        Args:
            is_ask: whether the query is an ASK query.
            limit: the time limit to send, in seconds; None to send no limit.
        """
        wrapper, text = copy.copy(self._wrapper), profile.prepared(text)
        wrapper.queryString, wrapper.queryType = text, "ASK" if is_ask else "SELECT"
        wrapper.setMethod("GET" if len(text) <= MAX_GET_CHARS and text.isascii() else "POST")
        value = None if limit is None else profile.time_limit(limit)
        wrapper.parameters = {profile.timeout_parameter: [value]} if value and profile.timeout_parameter else {}
        wrapper.customHttpHeaders = {profile.timeout_header: value} if value and profile.timeout_header else {}
        return self._built(wrapper)

    def update(self, text: str, *, url: str) -> Request:
        """Build the request for an update: a POST request with a form."""
        wrapper = copy.copy(self._wrapper)
        wrapper.queryString, wrapper.queryType, wrapper.updateEndpoint = text, "INSERT", url
        wrapper.setMethod("POST")
        return self._built(wrapper)

    def _built(self, wrapper: Any) -> Request:
        request = wrapper._createRequest()  # the public `query` opens a connection of its own
        headers = {**dict(request.header_items()), **self._headers}
        return Request(request.get_method(), request.full_url, headers, request.data)
