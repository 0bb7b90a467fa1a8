"""Which index of names is used, how names are read from a server, and how the graph of names is made."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgqa.cache import Cache
from kgqa.errors import NamesNotIndexed, PartialResult, ServerError, StoreError, StoreTimeout, StoreUnavailable
from kgqa.explore.linking import find_mentions
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.names import name_reader, selection
from kgqa.graph.names.name_reader import read_names
from kgqa.graph.names.server.builder import build_names_graph
from kgqa.graph.names.server.names_graph import TEXTS, is_names_graph, names_facts, names_graph_iri, outdated_graphs
from kgqa.graph.names.server.server_names import ServerNames
from kgqa.graph.names.sqlite_index import SqliteNames
from kgqa.graph.names.unindexed import UnindexedNames
from kgqa.model import Entity, Literal
from kgqa.schema import bundled_schema
from kgqa.testing.sparql_server import SparqlReply, SparqlRequest, table, truth
from kgqa.trace import Budget, BudgetExhausted, Trace
from kgqa.virtuoso.bulk.name_graph import drop_names_graph, index_graph, names_graphs
from kgqa.virtuoso.server.server import Server
from tests.graph import scripted
from tests.graph.named import LABEL, SCHEMA, lines, on_server, table_lines
from tests.virtuoso_server import copied, running_server

serve, took = scripted.serve, scripted.took
IRI = "http://names.test/choice"
COUNT = len(table_lines())


@pytest.fixture(scope="module")
def server(virtuoso_server, tmp_path_factory) -> Server:
    """A server with the table of names, and no graph of names."""
    file = tmp_path_factory.mktemp("choice") / "names.nt"
    file.write_text("\n".join(table_lines()) + "\n", encoding="utf-8")
    on_server(virtuoso_server, [file], SCHEMA, IRI).close()
    return virtuoso_server


@pytest.fixture
def opened(server):
    """`opened() -> KnowledgeGraph`: the table, opened anew; closed at the end."""
    graphs: list[KnowledgeGraph] = []

    def opened(**options) -> KnowledgeGraph:
        graphs.append(KnowledgeGraph(EndpointStore(server.url, graphs=[IRI]), SCHEMA, view=[IRI], **options))
        return graphs[-1]

    yield opened
    for graph in graphs:
        graph.close()


class TestWhichIndex:
    def test_few_names_without_a_graph_of_names_are_fetched(self, opened, tmp_path):
        graph = opened(cache=Cache(tmp_path))
        assert isinstance(graph.names, SqliteNames) and graph.names.count == COUNT - 3  # without letters and digits
        assert [match.entity.iri for match in graph.search("super bowl")] == ["http://e/bowl"]
        assert list(tmp_path.rglob("names-*.sqlite")), "kept for the next time"

    def test_many_names_without_a_graph_of_names_cannot_be_found(self, opened, monkeypatch):
        monkeypatch.setattr(selection, "MAX_LOCAL_NAMES", 10)
        graph = opened()
        assert isinstance(graph.names, UnindexedNames) and graph.names.count == COUNT
        for ask in (
            lambda: graph.search("super bowl"),
            lambda: find_mentions(graph, "Who won the Super Bowl?"),
            lambda: graph.names.exact(["super bowl"]),
            lambda: graph.names.loose(["superbowl"]),
            lambda: graph.names.words_with_prefix("bo"),
            lambda: graph.names.containing(["bowl"]),
            lambda: graph.names.initials_with_prefix("s"),
        ):
            with pytest.raises(NamesNotIndexed, match="kgqa virtuoso index"):
                ask()
        bowl = Entity("http://e/bowl")
        assert graph.names.names_of([bowl]) == {bowl: ["Super Bowl"]} and graph.names.labelled > 0

    def test_a_graph_of_older_names_is_used_where_there_are_too_many_to_fetch(
        self, server, opened, monkeypatch, tmp_path
    ):
        index_graph(server, opened().store, SCHEMA, IRI)
        graph = opened()
        assert isinstance(graph.names, ServerNames) and graph.notes == ()
        more = tmp_path / "more.nt"
        more.write_text(f'<http://e/new> <{LABEL}> "Brand New Bowl" .\n', encoding="utf-8")
        on_server(server, [more], SCHEMA, IRI).close()
        graph = opened()
        assert isinstance(graph.names, SqliteNames) and len(graph.search("bowl")) == 2
        monkeypatch.setattr(selection, "MAX_LOCAL_NAMES", 10)
        graph = opened()
        assert isinstance(graph.names, ServerNames) and len(graph.search("bowl")) == 1
        (note,) = graph.notes
        assert f"has {COUNT} names, the graph has {COUNT + 1}" in note and "kgqa virtuoso index" in note
        index_graph(server, opened().store, SCHEMA, IRI)
        graph = opened()
        assert isinstance(graph.names, ServerNames) and len(graph.search("bowl")) == 2 and graph.notes == ()

    def test_the_graph_of_names_is_of_these_graphs_and_these_predicates(self):
        one = names_graph_iri(SCHEMA, [Entity("http://a"), Entity("http://b")])
        assert one == names_graph_iri(SCHEMA, [Entity("http://b"), Entity("http://a")]) and is_names_graph(one)
        assert one != names_graph_iri(SCHEMA, [Entity("http://a")]) != names_graph_iri(bundled_schema("freebase"), [])
        assert not is_names_graph("http://freebase.com")

    def test_a_graph_of_names_of_an_older_version_is_not_used_and_goes_with_the_next_index(
        self, server, opened, tmp_path
    ):
        (old,) = outdated_graphs(SCHEMA, [Entity(IRI)])
        file = server.import_folder / "outdated.nt"
        file.write_text(f'<http://e/bowl> <{TEXTS["label"]}> "k4x7abcwsuper k4x7abcwbowl k4x7abcl2" .\n')
        assert server.load([file], old)[0].error is None
        server.sql(f"sparql clear graph <{names_graph_iri(SCHEMA, [Entity(IRI)])}>")
        graph = opened()
        assert isinstance(graph.names, SqliteNames)
        (note,) = graph.notes
        assert "older version" in note and "kgqa virtuoso index" in note and "kgqa virtuoso drop-names" in note
        index_graph(server, opened().store, SCHEMA, IRI)
        graph = opened()
        assert isinstance(graph.names, ServerNames) and graph.notes == () and not server.holds(old)

    def test_a_graph_of_names_that_was_dropped_and_made_again(self, server, opened):
        index_graph(server, opened().store, SCHEMA, IRI)
        (found,) = [found for found in names_graphs(server) if found.facts and found.facts.graphs == (IRI,)]
        drop_names_graph(server, found.iri)
        assert isinstance(opened().names, SqliteNames) and found.iri not in [left.iri for left in names_graphs(server)]
        index_graph(server, opened().store, SCHEMA, IRI)
        graph = opened()
        assert isinstance(graph.names, ServerNames)
        assert [match.entity.iri for match in graph.search("super bo")] == ["http://e/bowl"]


class TestWithinAQuestion:
    """Every query for names is within the limits of the question that needs them, and says so where they are too few."""

    ROWS = tuple([Entity(f"http://e/{n}"), Literal(f"Name {n}")] for n in range(2_000))

    def script(self, *, counting: float = 0.0, reading: float = 0.0):
        def answer(request: SparqlRequest) -> SparqlReply:
            if request.query.startswith("ASK"):
                return truth(False)
            if "?names" in request.query:
                labels = LABEL in request.query
                return scripted.number(len(self.ROWS) if labels else 0, seconds=counting)
            if "OFFSET" in request.query:
                return table(["subject", "name"], self.ROWS, seconds=reading)
            return scripted.number(7) if "COUNT" in request.query else table(["x"], [])

        return answer

    @pytest.fixture
    def asking(self, serve):
        """`asking(script, timeout=..., **budget) -> KnowledgeGraph` of one question."""
        graphs: list[KnowledgeGraph] = []

        def asking(script, *, timeout: float = 60.0, **budget) -> KnowledgeGraph:
            server = serve(script, server="Virtuoso/07.20.3229 (Linux) x86_64-pc-linux-gnu")
            store = EndpointStore(server.url, graphs=[IRI])
            graph = KnowledgeGraph(store, SCHEMA, view=[IRI], timeout=timeout)
            graphs.append(graph)
            graph.prepare()
            return graph.for_question(Trace(Budget(**budget)))

        yield asking
        for graph in graphs:
            graph.close()

    def test_a_count_that_takes_longer_than_a_query_may(self, asking):
        started = time.monotonic()
        graph = asking(self.script(counting=15), timeout=0.4)
        for _ in range(2):
            with pytest.raises(NamesNotIndexed, match="could be counted in time .*kgqa virtuoso index"):
                graph.search("name 7")
        assert time.monotonic() - started < 10

    def test_a_count_that_takes_longer_than_the_question_may(self, asking):
        started = time.monotonic()
        with pytest.raises((BudgetExhausted, NamesNotIndexed)):
            asking(self.script(counting=15), seconds=0.5).search("name 7")
        assert time.monotonic() - started < 10

    def test_names_that_take_longer_to_read_than_a_query_may(self, asking):
        graph = asking(self.script(reading=15), timeout=0.4)
        with pytest.raises(
            StoreTimeout, match="names of http.* could not be read in time.*kgqa graph info --graph http"
        ):
            graph.search("name 7")

    def test_names_that_take_longer_to_read_than_the_question_may(self, asking):
        graph = asking(self.script(reading=15), seconds=0.5)
        with pytest.raises((BudgetExhausted, StoreTimeout), match="kgqa graph info --graph http"):
            graph.search("name 7")

    def test_an_index_that_takes_longer_to_make_than_the_question_may(self, asking, monkeypatch):
        slow = threading.Event()
        monkeypatch.setattr(
            "kgqa.graph.names.sqlite_index.spellings", lambda name: {} if slow.wait(0.002) else {"key": "article"}
        )
        graph = asking(self.script(), seconds=1.0)
        with pytest.raises(
            BudgetExhausted, match="more than 1 seconds, while the index of names was being built.*kgqa graph info"
        ):
            graph.search("name 7")

    def test_a_question_waits_for_an_index_that_another_makes_no_longer_than_it_may(self, asking):
        graph = asking(self.script(reading=15), seconds=60.0)
        other = threading.Thread(target=took, args=(graph.search, "name 7"))
        other.start()
        hurried = graph.for_question(Trace(Budget(seconds=0.3)))
        started = time.monotonic()
        with pytest.raises(BudgetExhausted):
            while not hurried.search("name 7"):
                pass
        assert time.monotonic() - started < 10
        graph.store.close()
        other.join()

    def test_what_could_not_be_counted_is_not_counted_by_every_question(self, asking):
        counts: list[str] = []
        late = [True]

        def script(request: SparqlRequest) -> SparqlReply:
            if "?names" in request.query:
                counts.append(request.query)
                return self.script(counting=15 if late[-1] and LABEL not in request.query else 0)(request)
            return self.script()(request)

        graph = asking(script, timeout=0.4)
        for _ in range(4):
            with pytest.raises(NamesNotIndexed, match="could be counted in time"):
                graph.for_question(Trace(Budget())).search("name 7")
        assert len(counts) == 2, "labels, and aliases, which took too long"
        late.append(False)
        with pytest.raises(NamesNotIndexed):
            graph.for_question(Trace(Budget())).search("name 7")
        assert graph.tables.names_within(lambda: 5.0).count == len(self.ROWS), "with more time they are counted again"
        assert graph.for_question(Trace(Budget())).search("name 7")

    def test_what_could_not_be_counted_is_counted_again_after_a_while(self, asking, monkeypatch):
        scripts = [self.script(counting=15)]
        graph = asking(lambda request: scripts[-1](request), timeout=0.4)
        with pytest.raises(NamesNotIndexed, match="could be counted in time"):
            graph.search("name 7")
        scripts.append(self.script())
        monkeypatch.setattr("kgqa.graph.names.shared.UNCOUNTED_SECONDS", 0.0)
        graph = graph.for_question(Trace(Budget()))
        graph.timeout = 10.0
        assert graph.search("name 7")

    def test_other_tables_do_not_wait_for_the_names(self, asking):
        reading, released = threading.Event(), threading.Event()
        script = self.script()

        def slowly(request: SparqlRequest) -> SparqlReply:
            if "OFFSET" in request.query:
                reading.set()
                released.wait(30)
            return script(request)

        graph = asking(slowly)
        naming = threading.Thread(target=took, args=(graph.search, "name 7"))
        naming.start()
        assert reading.wait(20)
        other = threading.Thread(target=lambda: graph.tables.subject_relations, daemon=True)
        other.start()
        other.join(3)
        waits = other.is_alive()
        released.set()
        naming.join()
        assert not waits and graph.search("name 7")

    def test_what_is_asked_of_a_graph_of_names(self, server, opened):
        index_graph(server, opened().store, SCHEMA, IRI)
        graph = opened()
        assert isinstance(graph.names, ServerNames)
        spent = Trace(Budget(seconds=0.2))
        asked = graph.for_question(spent)
        while spent.elapsed() < 0.2:
            time.sleep(0.01)
        for look in (
            lambda: asked.search("super bowl"),
            lambda: asked.names.exact(["super bowl"]),
            lambda: asked.names.frequencies(["bowl"]),
            lambda: asked.names.containing(["bowl"]),
            lambda: asked.names.names_of([Entity("http://e/bowl")]),
        ):
            with pytest.raises(BudgetExhausted):
                look()
        assert graph.search("super bowl") == graph.for_question(Trace(Budget(seconds=60))).search("super bowl") != []


class TestDamagedCounts:
    """Bytes that were damaged on their way are not taken for names that are too many to count."""

    @pytest.mark.parametrize(
        "body",
        [
            b'{"head": {"vars": ["names"]}, "results": {"bindings": [{"names": {"type": "lite',
            b'{"head": {"vars": ["names"]}, "results": {"bindings": [{"names": {"type": "literal", "value": "1\xff"}}]}}',
            b'{"head": {"vars": ["names"]}, "results": {"bindings": [{"names": {"type": "literal", "value": "many"}}]}}',
            b'{"head": {"vars": ["names"]}, "results": {"bindings": [{"names": {"type": "uri", "value": "http://e/1"}}]}}',
            b'{"head": {"vars": ["names"]}, "results": {"bindings": [{}, {}]}}',
        ],
    )
    def test_it_says_so(self, serve, body):
        def answer(request: SparqlRequest) -> SparqlReply:
            if "?names" in request.query:
                return SparqlReply(body=body)
            return truth(False) if request.query.startswith("ASK") else scripted.number(7)

        with EndpointStore(serve(answer).url, graphs=[IRI]) as store:
            graph = KnowledgeGraph(store, SCHEMA, view=[IRI])
            with pytest.raises(StoreError) as raised:
                graph.search("bowl")
        assert not isinstance(raised.value, NamesNotIndexed)
        assert "more names than" not in str(raised.value) and "count" in str(raised.value).lower()


class TestBuilding:
    def build(self, graph: KnowledgeGraph, folder: Path, **options):
        nothing = {"clear": lambda iri: None, "load": lambda file, iri: None, "index": lambda iri, predicates: None}
        return build_names_graph(graph.store, graph.schema, graph.view, folder=folder, **{**nothing, **options})

    def test_files_come_in_order_and_are_taken_away(self, opened, tmp_path):
        loaded: list[list[str]] = []
        events, told = [], []

        def load(file: Path, iri: str) -> None:
            loaded.append(file.read_text(encoding="utf-8").splitlines())
            events.append("load")

        built = self.build(
            opened(),
            tmp_path,
            clear=lambda iri: events.append("clear"),
            load=load,
            index=lambda iri, predicates: events.append("index"),
            lines_per_file=100,
            progress=told.append,
        )
        assert events == ["clear", *["load"] * (len(loaded) - 1), "index", "load"]
        assert all(len(part) == 100 for part in loaded[:-2]) and sum(map(len, loaded)) == built.triples
        assert built.graph == names_graph_iri(SCHEMA, [Entity(IRI)])
        assert all(line.startswith(f"<{built.graph}>") for line in loaded[-1]), "counts come last"
        assert list(tmp_path.iterdir()) == []

    def test_what_breaks_off_leaves_no_file_and_no_counts(self, opened, tmp_path):
        loaded = []

        def load(file: Path, iri: str) -> None:
            loaded.append(file.read_text(encoding="utf-8"))
            raise ServerError("The disk is full.")

        with pytest.raises(ServerError, match="disk is full"):
            self.build(opened(), tmp_path, load=load)
        assert list(tmp_path.iterdir()) == [] and "#names>" not in "".join(loaded)

    def test_names_may_be_given(self, opened, tmp_path):
        loaded = []
        given = [("http://e/x", "Given Name", "label"), ("http://e/y z", "Bad", "label"), ("http://e/z", "!", "alias")]
        built = self.build(
            opened(), tmp_path, names=given, load=lambda file, iri: loaded.append(file.read_text(encoding="utf-8"))
        )
        assert built.names == 2 and loaded[0].count("#label>") == 1 and "<http://e/y z>" not in loaded[0]

    def test_a_graph_without_names(self, opened, tmp_path):
        with pytest.raises(StoreUnavailable, match="no name"):
            self.build(opened(), tmp_path, names=[])
        assert names_facts(opened().store, "urn:kgqa:names:none") is None


class TestReading:
    @pytest.fixture(scope="class")
    @classmethod
    def stingy(cls, prepared_folder, tmp_path_factory) -> Iterator[EndpointStore]:
        """A server that cuts results at 700 rows, with more names than that."""
        with running_server(copied(prepared_folder, tmp_path_factory.mktemp("stingy") / "s"), row_cap=700) as server:
            file = server.import_folder / "names.nt"
            file.write_text("\n".join(lines()) + "\n", encoding="utf-8")
            server.load([file], "http://g")
            with EndpointStore(server.url, graphs=["http://g"]) as store:
                yield store

    def test_pages_are_made_smaller_until_none_is_cut(self, stingy):
        found = list(read_names(stingy, SCHEMA, [Entity("http://g")]))
        assert len(found) == len(lines()) and len(set(found)) > 1500

    @pytest.mark.parametrize("rows", [7, 40, COUNT])
    def test_pages_of_any_size_add_up(self, opened, monkeypatch, rows):
        graph = opened()
        whole = sorted(read_names(graph.store, SCHEMA, graph.view))
        monkeypatch.setattr(name_reader, "PAGE_ROWS", rows)
        assert sorted(read_names(graph.store, SCHEMA, graph.view)) == whole

    def test_two_graphs_give_a_name_once(self, server, tmp_path):
        file = tmp_path / "again.nt"
        file.write_text("\n".join(table_lines()[:20]) + "\n", encoding="utf-8")
        with on_server(server, [file], SCHEMA, "http://names.test/again") as graph:
            alone = sorted(read_names(graph.store, SCHEMA, graph.view))
            twice = (*graph.view, *graph.view, Entity("http://names.test/none"))
            assert sorted(read_names(graph.store, SCHEMA, twice)) == alone and len(alone) == 20

    def test_a_server_that_cuts_the_smallest_pages(self, stingy, monkeypatch):
        monkeypatch.setattr(name_reader, "MIN_PAGE_ROWS", 1500)
        with pytest.raises(PartialResult, match="row cap"):
            list(read_names(stingy, SCHEMA, [Entity("http://g")]))
