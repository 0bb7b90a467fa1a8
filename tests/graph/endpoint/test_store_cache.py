"""The endpoint store with a result cache."""

from __future__ import annotations

from kgqa.graph.endpoint import fingerprint
from kgqa.graph.endpoint.options import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.model import Entity, Literal, Triple
from kgqa.testing.sparql_server import SparqlReply, table, truth
from tests.graph import scripted_endpoint
from tests.graph.scripted_endpoint import (
    ASK,
    QUERY,
    TABLE,
    count_reply,
    counting_script,
    insert,
    queries_without_counts,
)

serve, store_of, cache = scripted_endpoint.serve, scripted_endpoint.store_of, scripted_endpoint.cache


def test_cached_query_is_not_sent_again_by_another_run(serve, store_of, cache):
    server = serve(counting_script({"ASK": truth(True)}))
    found = []
    for _ in range(3):
        with EndpointStore(server.url, profile="generic", cache=cache()) as store:
            found.append((store.select(QUERY).rows, store.ask(ASK), store.select(QUERY).rows))
    assert found[0] == found[1] == found[2]
    assert queries_without_counts(server) == [QUERY, ASK]


def test_changed_graph_is_queried_again(serve, store_of, cache):
    answers = {}
    server = serve(counting_script(answers))
    store_of(server, cache=cache()).select(QUERY)
    answers["COUNT"] = count_reply(8)
    answers["<http://e/p>"] = table(["x"], [])
    assert len(store_of(server, cache=cache()).select(QUERY)) == 0
    assert queries_without_counts(server) == [QUERY] * 2


def test_view_url_and_user_are_cached_separately(serve, store_of, cache):
    server = serve(counting_script({}))
    kept = cache()
    view = QUERY.replace("WHERE", "FROM <http://e/g> WHERE")
    for query, options in [(QUERY, {}), (view, {}), (QUERY, {"access": Access(user="u", password="p")})]:
        store_of(server, cache=kept, **options).select(query)
        store_of(server, cache=kept, **options).select(query)
    store_of(server.url + "/", cache=kept).select(QUERY)
    assert queries_without_counts(server) == [QUERY, view, QUERY, QUERY]


def test_graph_without_fingerprint_is_not_cached(serve, store_of, cache):
    server = serve(counting_script({"COUNT": SparqlReply(500, b"Transaction timed out", "text/plain")}))
    store = store_of(server, cache=cache())
    store.select(QUERY)
    store.select(QUERY)
    assert queries_without_counts(server) == [QUERY] * 2 and store.fingerprint_of() == "" and store.triples_of() is None


def test_result_from_before_an_update_is_not_cached(serve, store_of, cache):
    store = None

    def script(request):
        if request.update:
            return SparqlReply(204)
        if "COUNT" in request.query:
            return count_reply(7)
        insert(store)
        return TABLE

    server = serve(script)
    store = store_of(server, cache=cache(), writable="http://e/g")
    assert len(store.select(QUERY)) == len(store.select(QUERY)) == 50
    assert [query for query in queries_without_counts(server) if query] == [QUERY, QUERY]


def test_results_from_before_an_edit_that_leaves_all_counts_equal(serve, store_of, cache, monkeypatch):
    monkeypatch.setattr(fingerprint, "SLOW_SECONDS", 0.0)  # counts are cached
    sent, old, new = [], *(Triple(Entity("http://e/s"), "http://e/p", Entity(f"http://e/{n}")) for n in ("old", "new"))

    def script(request):
        if request.update:
            sent.append(request.update)
            return SparqlReply(204)
        if "?number" in request.query:
            return table(["number"], [[Literal("1", "http://www.w3.org/2001/XMLSchema#integer")]])
        return count_reply(7) if "COUNT" in request.query else table(["x"], [[(new if sent else old).object]])

    server = serve(script)
    store = store_of(server, cache=cache(), writable="http://e/g")
    assert store.select(QUERY).rows == [(old.object,)]
    assert store.edit("http://e/g", [new], [old]).added == (new,)
    for each in (store, store_of(server, cache=cache()), store_of(server, cache=cache(), access=Access(user="w"))):
        assert each.select(QUERY).rows == [(new.object,)]
