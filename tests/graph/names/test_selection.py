"""Choice of the name index, reading of names from a server, and building of the name graph."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kgqa.errors import NamesNotIndexed
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names import graph_names
from kgqa.graph.names.index import NameIndex
from kgqa.graph.names.reading import NameReader
from kgqa.graph.names.server_index import ServerIndex
from kgqa.model import Entity, Literal
from kgqa.search.linking import find_mentions
from kgqa.testing.sparql_server import SparqlReply, SparqlRequest, table, truth
from kgqa.trace.trace import Budget, BudgetExhausted, Trace
from kgqa.virtuoso.graph_loading import index_graph
from kgqa.virtuoso.server import Server
from tests.graph import scripted_endpoint
from tests.graph.hard_names import LABEL, SCHEMA, lines, load_onto_server, table_lines
from tests.virtuoso_server import copied, running_server

serve, took = scripted_endpoint.serve, scripted_endpoint.seconds_of
IRI = "http://names.test/choice"
COUNT = len(table_lines())


@pytest.fixture(scope="module")
def server(prepared_folder, tmp_path_factory) -> Iterator[Server]:
    """Yield a server of its own, whose full-text index does not contain these names because of other tests."""
    folder = tmp_path_factory.mktemp("choice")
    file = folder / "names.nt"
    file.write_text("\n".join(table_lines()) + "\n", encoding="utf-8")
    with running_server(copied(prepared_folder, folder / "server")) as server:
        load_onto_server(server, [file], SCHEMA, IRI).close()
        yield server


@pytest.fixture
def open_table(server):
    """Return `open_table() -> KnowledgeGraph`, which opens the table of names; closed after the test."""
    graphs: list[KnowledgeGraph] = []

    def open_table(**options) -> KnowledgeGraph:
        graphs.append(KnowledgeGraph(EndpointStore(server.url), SCHEMA, view=[IRI], **options))
        return graphs[-1]

    yield open_table
    for graph in graphs:
        graph.close()


class TestIndexChoice:
    def test_many_names_need_a_name_graph(self, open_table, monkeypatch):
        monkeypatch.setattr(graph_names, "MAX_LOCAL_NAMES", 10)
        graph = open_table()
        assert isinstance(graph.names, ServerIndex) and graph.names.count == COUNT
        for ask in (
            lambda: graph.search("super bowl"),
            lambda: find_mentions(graph, "Who won the Super Bowl?"),
            lambda: graph.names.exact(["super bowl"]),
            lambda: graph.names.loose(["superbowl"]),
            lambda: graph.names.similar_words(["bowl"]),
            lambda: graph.names.containing(["bowl"]),
        ):
            with pytest.raises(NamesNotIndexed, match="kgqa virtuoso index"):
                ask()
        bowl = Entity("http://e/bowl")
        assert graph.names.names_of([bowl]) == {bowl: ["Super Bowl"]}

    def test_names_that_are_missing_in_the_index_are_read(self, server, open_table, tmp_path):
        index_graph(server, open_table().store, SCHEMA, IRI)
        before = len(open_table().search("stadium", limit=100))
        more, words = tmp_path / "more.nt", "abcdefgh" * 3
        lines = (f'<http://e/new{w}{n}> <{LABEL}> "Brand{w * n} New{w} Stadium" .\n' for n, w in enumerate(words))
        more.write_text("".join(lines), encoding="utf-8")
        load_onto_server(server, [more], SCHEMA, IRI).close()
        graph = open_table()
        assert type(graph.names) is NameIndex
        assert len(graph.search("stadium", limit=100)) == before + len(words)
        index_graph(server, open_table().store, SCHEMA, IRI)
        graph = open_table()
        assert isinstance(graph.names, ServerIndex)
        assert len(graph.search("stadium", limit=100)) == before + len(words)


class TestLimitsOfAQuestion:
    """Queries for names stay within the limits of the question and report when these are too small."""

    ROWS = tuple([Entity(f"http://e/{n}"), Literal(f"Name {n}")] for n in range(2_000))

    def script(self, *, counting: float = 0.0, reading: float = 0.0):
        def answer(request: SparqlRequest) -> SparqlReply:
            if request.query.startswith("ASK"):
                return truth(False)
            if "?names" in request.query:
                labels = LABEL in request.query
                return scripted_endpoint.count_reply(len(self.ROWS) if labels else 0, seconds=counting)
            if "OFFSET" in request.query:
                return table(["subject", "name", "predicate", "place"], self.ROWS, seconds=reading)
            return scripted_endpoint.count_reply(7) if "COUNT" in request.query else table(["x"], [])

        return answer

    @pytest.fixture
    def graph_of_question(self, serve):
        """Return `asking(script, timeout=..., **budget) -> KnowledgeGraph` for one question."""
        graphs: list[KnowledgeGraph] = []

        def graph_of_question(script, *, timeout: float = 60.0, **budget) -> KnowledgeGraph:
            server = serve(script, server="Virtuoso/07.20.3229 (Linux) x86_64-pc-linux-gnu")
            store = EndpointStore(server.url)
            graph = KnowledgeGraph(store, SCHEMA, view=[IRI], timeout=timeout)
            graphs.append(graph)
            graph.tables.prepare()
            return graph.for_question(Trace(Budget(**budget)))

        yield graph_of_question
        for graph in graphs:
            graph.close()

    def test_building_an_index_beyond_the_question_budget(self, graph_of_question, monkeypatch):
        slow = threading.Event()
        monkeypatch.setattr(
            "kgqa.graph.names.index.spellings", lambda name: {} if slow.wait(0.002) else {"key": "article"}
        )
        graph = graph_of_question(self.script(), seconds=1.0)
        with pytest.raises(BudgetExhausted, match="could not be read in time: more than 1 seconds.*kgqa graph info"):
            graph.search("name 7")

    def test_failed_count_is_not_repeated_by_every_question(self, graph_of_question, monkeypatch):
        counts: list[str] = []
        late = [True]

        def script(request: SparqlRequest) -> SparqlReply:
            if "?names" in request.query:
                counts.append(request.query)
                return self.script(counting=15 if late[-1] and LABEL not in request.query else 0)(request)
            return self.script()(request)

        graph = graph_of_question(script, timeout=0.4)
        for _ in range(4):
            with pytest.raises(NamesNotIndexed, match="could be counted in time"):
                graph.for_question(Trace(Budget())).search("name 7")
        assert len(counts) == 2, "labels, and aliases, which took too long"
        late.append(False)
        monkeypatch.setattr(graph_names, "UNCOUNTED_SECONDS", 0)
        assert graph.tables.names.within(lambda: 5.0).count == len(self.ROWS)


class TestReading:
    @pytest.fixture(scope="class")
    @classmethod
    def server_with_row_cap(cls, prepared_folder, tmp_path_factory) -> Iterator[EndpointStore]:
        """Yield a server that truncates results at 700 rows and has more names."""
        with running_server(copied(prepared_folder, tmp_path_factory.mktemp("stingy") / "s"), row_cap=700) as server:
            file = server.import_folder / "names.nt"
            file.write_text("\n".join(lines()) + "\n", encoding="utf-8")
            server.load([file], "http://g")
            with EndpointStore(server.url) as store:
                yield store

    def test_page_size_is_reduced_below_the_row_cap(self, server_with_row_cap):
        found = list(NameReader(server_with_row_cap, SCHEMA, [Entity("http://g")]).all())
        assert len(found) == len(lines()) and len(set(found)) > 1500

    def test_name_in_two_graphs_is_read_once(self, server, tmp_path):
        file = tmp_path / "again.nt"
        file.write_text("\n".join(table_lines()[:20]) + "\n", encoding="utf-8")
        with load_onto_server(server, [file], SCHEMA, "http://names.test/again") as graph:
            alone = sorted(NameReader(graph.store, SCHEMA, graph.view).all())
            twice = (*graph.view, *graph.view, Entity("http://names.test/none"))
            assert sorted(NameReader(graph.store, SCHEMA, twice).all()) == alone and len(alone) == 20
