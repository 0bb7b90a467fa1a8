"""Queries and updates as HTTP requests (SPARQL 1.1 Protocol, sections 2.1 and 2.2), worded by SPARQLWrapper."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kgqa.graph.endpoint.profiles import Profile
from kgqa.version import __version__
from kgqa.words import clean

LONGEST_GET = 1_500
"""Characters of a query that stands in the address; escaped it may be three times as long, and servers refuse
addresses from some thousand characters on in misleading ways."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent, but for logging in. `target`: the path of the address with its query."""

    method: str
    url: str
    target: str
    headers: dict[str, str]
    body: bytes | None


class Requests:
    """Words requests to one address. Thread-safe."""

    def __init__(self, url: str, *, contact: str, packed: bool) -> None:
        self._url = url
        self._agent = agent(contact)
        self._packed = packed
        self._local = threading.local()  # SPARQLWrapper keeps the query in itself

    def query(self, text: str, *, asks: bool, profile: Profile, limit: float | None) -> Request:
        """A SELECT or ASK query: GET where it is short, a form by POST where it is long (Virtuoso hangs on a body
        that is the query itself).

        Args:
            limit: seconds to tell the server, in the way of `profile`; None to tell it nothing.
        """
        wrapper = self._wrapper()
        text = profile.worded(text)
        wrapper.queryString, wrapper.queryType = text, "ASK" if asks else "SELECT"
        wrapper.setMethod("GET" if len(text) <= LONGEST_GET and text.isascii() else "POST")
        told = None if limit is None else profile.time_limit(limit)
        wrapper.parameters = {profile.timeout_parameter: [told]} if told and profile.timeout_parameter else {}
        wrapper.customHttpHeaders = {profile.timeout_header: told} if told and profile.timeout_header else {}
        return self._made(wrapper)

    def update(self, text: str, *, url: str) -> Request:
        """An update, as a form by POST."""
        wrapper = self._wrapper()
        wrapper.queryString, wrapper.queryType, wrapper.updateEndpoint = text, "INSERT", url
        wrapper.parameters, wrapper.customHttpHeaders = {}, {}
        wrapper.setMethod("POST")
        return self._made(wrapper)

    def _made(self, wrapper: Any) -> Request:
        made = wrapper.request()
        headers = dict(made.header_items())
        if self._packed:
            headers["Accept-encoding"] = "gzip"
        return Request(made.get_method(), made.full_url, made.selector, headers, made.data)

    def _wrapper(self) -> Any:
        wrapper = getattr(self._local, "wrapper", None)
        if wrapper is None:
            wrapper = self._local.wrapper = _wrapper_class()(self._url, returnFormat="json", agent=self._agent)
            wrapper.setOnlyConneg(True)  # servers refuse parameters that they do not know
        return wrapper


def agent(contact: str) -> str:
    """The User-Agent header: tool, version, and whom to write to."""
    about = f" ({clean(contact)[:200]})" if contact else ""
    return f"kgqa/{__version__}{about}".encode("ascii", "replace").decode()


@lru_cache(maxsize=1)
def _wrapper_class() -> type:
    from SPARQLWrapper import SPARQLWrapper

    class Wrapper(SPARQLWrapper):
        """SPARQLWrapper, told what kind of query it has instead of searching the text for it (most of its time)."""

        def request(self) -> Any:
            return self._createRequest()

    return Wrapper
