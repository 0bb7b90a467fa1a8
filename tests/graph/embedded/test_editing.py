"""Editing of the embedded store: canonical terms, hashes, publishing, and what other processes see."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import signal
import threading

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from kgqa.errors import StoreBusy, StoreCrashed, StoreIncomplete
from kgqa.graph.embedded import records
from kgqa.graph.embedded import store as store_module
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.records import MAX_GRAPHS, GraphHash, GraphMeta
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.embedded.workers import Worker
from kgqa.model import Entity, Literal, Triple
from kgqa.storage.loading import parse_json
from tests.conftest import SOAK
from tests.graph.edits import triples

XSD = "http://www.w3.org/2001/XMLSchema#"
G, H = "http://e/g", "http://e/h"
LINES = [f"<http://e/{n}> <http://e/p> <http://e/{n + 1}> ." for n in range(5)]
QUADS = [f"<http://e/{n}> <http://e/p> <http://e/x> <{G}> ." for n in range(3)]
ALL = "SELECT ?s ?p ?o { ?s ?p ?o }"


def numbered(*numbers: int) -> list[Triple]:
    return [Triple(Entity(f"http://e/new{n}"), "http://e/p", Literal(f"value {n}")) for n in numbers]


def assert_published_alike(load, folder: GraphFolder) -> None:
    """Check that the folder's hashes equal those of a graph loaded from the same triples."""
    file = folder.path.parent / "alike.nq"
    ox.Store.read_only(str(folder.store_dir(folder.current()))).dump(str(file), format=ox.RdfFormat.N_QUADS)
    assert folder.meta().graphs == GraphFolder(load(file)).meta().graphs


class TestEdits:
    @pytest.mark.parametrize(
        "values",
        [
            ('"007"^^xsd:integer', '"+5"^^xsd:integer', '"1.50"^^xsd:decimal', '"1.0E0"^^xsd:double', '"1.50"^^xsd:float'),
            ('"1"^^xsd:boolean', '"2020-01-01T00:00:00+00:00"^^xsd:dateTime', '"P1Y0M"^^xsd:duration', '"02020"^^xsd:gYear'),
            ('"a"@EN-GB', '"a\\tb\\u007F\\u0001"', '"a\u2028b\\\\u0041"', '"x"^^<http://E/t>', "<http://e/%7Ex>", "<http://E/B#>"),
        ],
        ids=["numbers", "other values", "texts"],
    )  # fmt: skip
    def test_an_edit_equals_a_load(self, new_store, load, values):
        full = [re.sub(r"xsd:(\w+)", rf"<{XSD}\1>", value) for value in values]
        lines = [f"<http://e/x> <http://e/v{n}> {value} ." for n, value in enumerate(full)]
        store = new_store(LINES, writable=True)
        before = store.fingerprint_of()
        assert len(store.edit("", triples(lines)).added) == len(lines)
        assert store.edit("", triples(lines)).added == ()
        store.publish()
        assert_published_alike(load, store.folder)
        assert store.folder.meta().fingerprint == GraphFolder(load([*LINES, *lines])).meta().fingerprint
        assert len(store.edit("", [], triples(lines)).removed) == len(lines)
        assert store.fingerprint_of() == before

    def test_queries_take_turns_with_a_loop_of_edits(self, new_store):
        store, done = new_store(LINES, writable=True), threading.Event()

        def edit_again_and_again() -> None:
            for number in itertools.takewhile(lambda _: not done.is_set(), itertools.count()):
                store.edit("", numbered(number))

        writer = threading.Thread(target=edit_again_and_again)
        writer.start()
        try:
            for _ in range(20):
                assert store.ask("ASK { ?s ?p ?o }", timeout=0.5)
        finally:
            done.set()
            writer.join()

    def test_an_emptied_graph_is_gone(self, new_store):
        store = new_store([*LINES, *QUADS], writable=True)
        store.edit(G, [], triples([line.replace(f" <{G}>", "") for line in QUADS]))
        assert store.select("SELECT ?g { GRAPH ?g {} }").rows == [] and store.triples_of([G]) == 0

    def test_a_large_edit_is_made_in_parts_and_completely_or_not_at_all(self, new_store, load, monkeypatch):
        store, requests = new_store([*LINES, *QUADS], writable=True), []
        monkeypatch.setattr(store_module, "MAX_TRANSACTION", 2)
        monkeypatch.setattr(records, "PART", 2)
        made, call, before = numbered(*range(5)), Worker.call, store.fingerprint_of()

        def killed_once(worker: Worker, request: dict, **options: object) -> memoryview:
            requests.append(request)
            if request["op"] == "extend" and sum(each["op"] == "extend" for each in requests) == 2:
                os.kill(worker.pid, signal.SIGKILL)
            return call(worker, request, **options)

        monkeypatch.setattr(Worker, "call", killed_once)
        with pytest.raises(StoreCrashed):
            store.edit("", made, triples(LINES))
        assert store.fingerprint_of() == before and len(store.select(ALL)) == 5
        assert store.edit("", made, triples(LINES)).added == tuple(made)
        assert len(store.edit(G, [], triples([line.replace(f" <{G}>", "") for line in QUADS])).removed) == 3
        assert store.select("SELECT ?g { GRAPH ?g {} }").rows == []
        assert len(store.select(ALL)) == store.triples_of() == 5
        lines = [request.get(key, "").count("\n") for request in requests for key in ("adds", "removes", "lines")]
        assert max(lines) == 2
        store.publish()
        assert_published_alike(load, store.folder)
        assert len(list(store.folder.path.glob("gen-*"))) == 2, "the published generation and its working copy"


class TestPublishing:
    def test_others_see_edits_when_they_are_published(self, new_store):
        store = new_store(LINES, writable=True)
        with EmbeddedStore(store.folder.path, workers=1) as reader:
            version = reader.version_of()
            store.edit("", numbered(1))
            assert len(store.select(ALL)) == 6 and not reader.refresh()
            store.publish()
            with EmbeddedStore(store.folder.path, workers=1) as later:
                assert len(later.select(ALL)) == later.triples_of() == 6
                assert later.fingerprint_of() == store.fingerprint_of() != reader.fingerprint_of()
                assert later.capabilities.identity == reader.capabilities.identity
            assert len(reader.select(ALL)) == reader.triples_of() == 5
            assert reader.refresh() and not reader.refresh()
            assert len(reader.select(ALL)) == reader.triples_of() == 6
            assert reader.version_of() != version and reader.edits_since(version) is None

    def test_exception_in_a_with_statement_discards(self, load):
        folder = load(LINES)
        with pytest.raises(ZeroDivisionError), EmbeddedStore(folder, writable=True) as store:
            store.edit("", numbered(1))
            store.publish()
            store.edit("", numbered(2))
            raise ZeroDivisionError
        with EmbeddedStore(folder, workers=1) as reader:
            assert len(reader.select(ALL)) == 6 and not reader.notice()

    def test_load_after_edits_counts_new_triples(self, load):
        folder = load([*LINES, *QUADS])
        with EmbeddedStore(folder, writable=True) as store:
            store.edit("", numbered(1), triples(LINES[:1]))
            store.edit(G, numbered(2))
        (folder.parent / "more.nq").write_text(
            "\n".join([*LINES, *QUADS]) + '\n<http://e/new1> <http://e/p> "value 1" .\n'
        )
        report = load_graph(folder, [folder.parent / "more.nq"])
        assert (report.added, report.triples) == (1, 10)
        assert_published_alike(load, GraphFolder(folder))


class TestOneWriter:
    def test_second_writer_is_refused_at_once(self, new_store):
        store = new_store(LINES, writable=True)
        folder, file = store.folder.path, store.folder.path.parent / "lines1.nq"
        for write in (lambda: EmbeddedStore(folder, writable=True), lambda: load_graph(folder, [file])):
            with pytest.raises(StoreBusy, match=rf"Another process \({os.getpid()}\) is writing"):
                write()
        with EmbeddedStore(folder, workers=1) as reader:
            assert reader.triples_of() == 5

    def test_interrupted_load_must_be_resolved_first(self, load):
        folder = load(LINES)
        (folder / "gen-2").mkdir()
        (folder / "gen-2" / "loading.json").write_text("{}")
        with pytest.raises(StoreIncomplete, match="resumed or discarded.*resume"):
            EmbeddedStore(folder, writable=True)
        assert (folder / "gen-2" / "loading.json").exists()


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["", G, H]), st.sets(st.integers(0, 12), max_size=6), st.sets(st.integers(0, 12), max_size=6)
    ),
    max_size=8,
)


@pytest.mark.soak
@settings(max_examples=30 if SOAK else 3, deadline=None)
@given(OPERATIONS)
def test_any_sequence_of_edits_equals_a_load(tmp_path_factory, operations):
    base = tmp_path_factory.mktemp("edits")
    state: dict[str, set[int]] = {"": set(), G: set(), H: set()}
    with EmbeddedStore(base / "g", writable=True, create=True) as store:
        for number, (graph, adds, removes) in enumerate(operations):
            report = store.edit(graph, numbered(*adds), numbered(*removes))
            assert set(report.removed) == set(numbered(*(state[graph] & removes - adds)))
            assert set(report.added) == set(numbered(*(adds - state[graph])))
            state[graph] = state[graph] - removes | adds
            if number % 3 == 2:
                store.publish()
        lines = []
        for graph, numbers in state.items():
            end = f"<{graph}> ." if graph else "."
            lines += [f'<http://e/new{n}> <http://e/p> "value {n}" {end}' for n in numbers]
            assert store.triples_of([graph] if graph else []) == len(numbers)
    (base / "lines.nq").write_text("".join(f"{line}\n" for line in lines))
    load_graph(base / "alike", [base / "lines.nq"])
    assert GraphFolder(base / "g").meta().graphs == GraphFolder(base / "alike").meta().graphs
    shutil.rmtree(base)


class TestHashes:
    LINES = st.sets(st.integers(0, 99).map(lambda n: b"<http://e/s> <http://e/p> <http://e/%d> .\n" % n))

    def test_many_named_graphs_are_hashed_together(self):
        one = GraphHash(1, "5".zfill(64))
        empty = GraphMeta(1, "0" * 32)
        few = empty.changed({f"http://e/{n}": one for n in range(MAX_GRAPHS)} | {"http://e/empty": GraphHash()})
        assert few.view(["http://e/1"]) == one and few.view(["http://e/empty"]) == GraphHash()
        many = few.changed({"": one})
        assert many.view() == one and many.view(["http://e/1"]).triples == MAX_GRAPHS
        later = many.changed({"http://e/other": one})
        assert later.view(["http://e/1"]).triples == MAX_GRAPHS + 1 and later.triples == MAX_GRAPHS + 2
        assert parse_json(json.dumps(to_builtins(later)), GraphMeta) == later
