"""Results that are kept: what was asked before is not asked again, and nothing is taken for what it is not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from kgqa.errors import PartialResult
from kgqa.graph.endpoint import fingerprint
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.model import Entity
from kgqa.testing.sparql_server import SparqlReply, table, truth
from tests.graph import scripted
from tests.graph.scripted import ASK, QUERY, TABLE, asked_queries, counting, number

serve, store_of, cache = scripted.serve, scripted.store_of, scripted.cache

BODY = TABLE.body


def test_what_was_asked_before_is_not_asked_again_by_another_run_either(serve, store_of, cache):
    server = serve(counting({"ASK": truth(True)}))
    found = []
    for _ in range(3):
        with EndpointStore(server.url, profile="generic", cache=cache()) as store:
            found.append((store.select(QUERY).rows, store.ask(ASK), store.select(QUERY).rows))
    assert found[0] == found[1] == found[2]
    assert asked_queries(server) == [QUERY, ASK]


def test_fresh_goes_past_what_is_kept(serve, store_of, cache):
    server = serve(counting({}))
    store = store_of(server, cache=cache())
    for _ in range(2):
        store.select(QUERY)
        store.select(QUERY, fresh=True)
    assert asked_queries(server) == [QUERY] * 3


def test_a_graph_that_has_changed_is_asked_anew(serve, store_of, cache):
    answers = {}
    server = serve(counting(answers))
    store_of(server, cache=cache()).select(QUERY)
    answers["COUNT"] = number(8)
    answers["<http://e/p>"] = table(["x"], [])
    assert len(store_of(server, cache=cache()).select(QUERY)) == 0
    assert asked_queries(server) == [QUERY] * 2


def test_another_view_address_or_user_is_asked_by_itself(serve, store_of, cache):
    server = serve(counting({}))
    kept = cache()
    for options in [
        {},
        {"graphs": ["http://e/g"]},
        {"access": Access(user="u", password="p")},
    ]:
        store_of(server, cache=kept, **options).select(QUERY)
        store_of(server, cache=kept, **options).select(QUERY)
    store_of(server.url + "/", cache=kept).select(QUERY)
    assert asked_queries(server) == [QUERY] * 4


def test_more_rows_than_asked_for_are_an_error_from_the_disk_too(serve, store_of, cache):
    store = store_of(serve(counting({})), cache=cache())
    assert len(store.select(QUERY)) == 50
    with pytest.raises(PartialResult, match="more than 10 rows"):
        store.select(QUERY, max_rows=10)


def test_blank_nodes_are_the_same_from_the_disk(serve, store_of, cache):
    body = BODY.replace(b'"uri", "value": "http://e/', b'"bnode", "value": "nodeID://b')
    server = serve(counting({"<http://e/p>": SparqlReply(body=body)}), server="Virtuoso")
    first = store_of(server, cache=cache()).select(QUERY)
    assert store_of(server, cache=cache()).select(QUERY) == first
    assert first.rows[0] == (Entity("nodeID://b0"),)


def test_where_nothing_can_be_counted_nothing_is_kept(serve, store_of, cache):
    server = serve(counting({"COUNT": SparqlReply(500, b"Transaction timed out", "text/plain")}))
    store = store_of(server, cache=cache())
    store.select(QUERY)
    store.select(QUERY)
    assert asked_queries(server) == [QUERY] * 2 and store.fingerprint == "" and store.triples is None


def test_without_a_cache_nothing_is_counted(serve, store_of):
    server = serve(TABLE)
    store_of(server).select(QUERY)
    assert server.queries == [QUERY]


def test_threads_share_connections_and_results(serve, store_of, cache):
    server = serve(counting({}))
    store = store_of(server, cache=cache())
    with ThreadPoolExecutor(16) as threads:
        rows = list(threads.map(lambda n: len(store.select(f"{QUERY} # {n % 10}")), range(200)))
    assert rows == [50] * 200
    assert server.connections <= 4 + 1 and 10 <= len(asked_queries(server)) <= 160


def test_what_others_know_of_a_graph_is_forgotten_with_an_update(serve, store_of, cache, monkeypatch):
    monkeypatch.setattr(fingerprint, "SLOW_SECONDS", 0.0)  # counts are kept
    answers, kept = {}, cache()
    server = serve(counting(answers))
    both = {"graphs": ["http://e/g", "http://e/h"], "cache": kept}
    assert len(store_of(server, **both).select(QUERY)) == 50
    writer = store_of(server, graphs=["http://e/g"], writable="http://e/g", cache=kept, access=Access(user="w"))
    server.enqueue(SparqlReply(204))
    writer.update("INSERT DATA { GRAPH <http://e/g> { <http://e/s> <http://e/p> 1 } }")
    answers.update({"COUNT": number(8), "<http://e/p>": table(["x"], [])})
    assert len(store_of(server, **both).select(QUERY)) == 0


def test_a_result_that_an_update_overtook_is_not_kept(serve, store_of, cache):
    store = None

    def script(request):
        if request.update:
            return SparqlReply(204)
        if "COUNT" in request.query:
            return number(7)
        store.update("INSERT DATA { GRAPH <http://e/g> { <http://e/s> <http://e/p> 1 } }")
        return TABLE

    server = serve(script)
    store = store_of(server, cache=cache(), writable="http://e/g")
    assert len(store.select(QUERY)) == len(store.select(QUERY)) == 50
    assert [query for query in asked_queries(server) if query] == [QUERY, QUERY]


def test_the_first_query_has_all_of_its_time_for_itself(serve, store_of, cache):
    server = serve(lambda request: number(7, seconds=0.05) if "COUNT" in request.query else TABLE)
    assert len(store_of(server, cache=cache(), timeout=0.4).select(QUERY)) == 50
