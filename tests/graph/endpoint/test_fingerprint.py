"""The fingerprint of a graph on a server: made of counts, cached, and measured within a deadline."""

from __future__ import annotations

import contextlib
import time

import pytest

from kgqa.graph.endpoint import fingerprint
from kgqa.net.threads import question_end
from kgqa.testing.sparql_server import SparqlReply
from tests.graph import scripted_endpoint
from tests.graph.scripted_endpoint import count_reply

serve, store_of, cache = scripted_endpoint.serve, scripted_endpoint.store_of, scripted_endpoint.cache
LATE = SparqlReply(500, b"Virtuoso S1T00 Error SR171: Transaction timed out", "text/plain")


@pytest.fixture
def graph_of(serve, store_of):
    """Return `graph_of(answer, ...) -> (store, server)`, whose counts come from a function of the query."""

    def graph_of(answer, **options):
        server = serve(lambda request: answer(request.query))
        return store_of(server, **options), server

    return graph_of


@contextlib.contextmanager
def question_ends(seconds: float | None):
    token = question_end.set(seconds and time.monotonic() + seconds)
    try:
        yield
    finally:
        question_end.reset(token)


def is_total(query: str) -> bool:
    return "?predicate" in query


@pytest.mark.parametrize("seconds", [None, 6])
@pytest.mark.parametrize(("counted", "large"), [(20_000_000, True), (19_999_999, False), (None, True)])
def test_large_graph_is_recognised_by_a_limited_count(graph_of, counted, large, seconds):
    """A graph whose size is unknown counts as large, also in the time of a question."""
    late = LATE if seconds is None else count_reply(9, seconds=30)

    def answer(query):
        if "LIMIT 20000000" in query:
            return late if counted is None else count_reply(counted)
        return late if is_total(query) or seconds else count_reply(0)

    store, server = graph_of(answer)
    with question_ends(seconds):
        assert store.may_scan() is not large and store.may_scan() is not large
    assert sum("LIMIT 20000000" in query for query in server.queries) == 1


def test_slow_counts_are_cached(graph_of, store_of, cache, monkeypatch):
    monkeypatch.setattr(fingerprint, "SLOW_SECONDS", 0.2)
    store, server = graph_of(lambda query: count_reply(7, seconds=0.3 if is_total(query) else 0.0), cache=cache())
    first, again = store.fingerprint_of(), store_of(server, cache=cache())
    requests = len(server.requests)
    assert again.fingerprint_of() == first and len(server.requests) == requests
    again.invalidate()
    assert again.fingerprint_of() == first and len(server.requests) > requests


def test_counting_takes_a_part_of_the_time_of_a_question(graph_of, monkeypatch):
    hangs = True
    store, _ = graph_of(lambda query: count_reply(7, seconds=30 if hangs else 0))
    started = time.monotonic()
    with question_ends(2):
        assert store.fingerprint_of() == "" and store.may_scan() is not None
    assert time.monotonic() - started < 2
    hangs = False
    assert store.fingerprint_of()
