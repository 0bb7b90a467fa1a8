"""Stores of other packages: opened by their entry point, refused if they break the protocol."""

from __future__ import annotations

import sys

import pytest

from kgqa.errors import KgqaError, LoadError, SettingsError, StoreError
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.foreign_stores import MEMBERS, check_store, is_foreign
from kgqa.graph.opening import open_graph
from kgqa.model import Entity, Literal, Triple
from kgqa.testing.rdflib_store import RdflibStore

LINES = '<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Ann" .\n<http://e/a> <http://e/r> <http://e/b> .\n'
CODE = """
from kgqa.testing.rdflib_store import RdflibStore

class Lacking:
    location = "lacking"
    def __init__(self, rest, writable=False):
        pass
    def select(self, query):
        raise ValueError("boom")

class Failing(RdflibStore):
    def __init__(self, rest, writable=False):
        super().__init__()
        self.rest = rest
    def select(self, query, *, timeout=None, max_rows=None, fresh=False):
        if self.rest == "wrong":
            return [("a", "b")]
        raise ValueError("boom")

class OldSelect(RdflibStore):
    def __init__(self, rest, writable=False):
        super().__init__()
    def select(self, query, *, timeout=None):
        return super().select(query)

def unopened(rest, writable=False):
    raise RuntimeError("no licence")

open = RdflibStore.open
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with stores that is found as if it were installed."""
    names = {"memory": "open", "lacking": "Lacking", "failing": "Failing", "old": "OldSelect", "unopened": "unopened"}
    info = tmp_path / "brought_stores-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-stores\nVersion: 1\n")
    points = [f"{name} = brought_stores:{code}" for name, code in names.items()]
    (info / "entry_points.txt").write_text("\n".join(["[kgqa.stores]", *points, "gone = no_such_module:x"]) + "\n")
    (tmp_path / "brought_stores.py").write_text(CODE)
    (tmp_path / "graph.nt").write_text(LINES)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("brought_stores", None)


def test_graph_of_a_foreign_store(package):
    with open_graph(f"memory:{package / 'graph.nt'}") as graph:
        assert graph.schema.name == "rdfs" and graph.store.triples_of() == 2
        assert [match.entity for match in graph.search("ann")] == [Entity("http://e/a")]
        before = graph.relations
        graph.store.edit("", [Triple(Entity("http://e/a"), "http://e/new", Literal("x"))])
        assert set(graph.relations) - set(before) == {"http://e/new"}


@pytest.mark.parametrize(
    ("location", "error", "message"),
    [
        ("lacking:x", SettingsError, "lacking lacks capabilities, settings, triples_of"),
        ("old:x", SettingsError, "select of the store old must accept the arguments query, timeout, max_rows, fresh"),
        ("failing:x", StoreError, "failing failed at select: boom"),
        ("failing:wrong", StoreError, "failed at select: it returned a list"),
        ("unopened:x", StoreError, "no licence"),
        ("gone:x", SettingsError, "no_such_module"),
        ("unknown:x", SettingsError, "no installed package has a store named unknown .*memory"),
        ("memory:/no/such/file.nt", LoadError, "cannot be read"),
    ],
)
def test_broken_stores_give_a_clear_error(package, location, error, message):
    with pytest.raises(KgqaError, match=message) as caught, open_graph(location, schema="rdfs") as graph:
        graph.exists(Entity("http://e/a"))
        graph.labels([Entity("http://e/a")])
    assert isinstance(caught.value, error)


def test_folders_and_addresses_are_not_foreign(tmp_path):
    (tmp_path / "a:b").mkdir()
    assert not is_foreign(tmp_path / "a:b") and not is_foreign("graph") and not is_foreign("HTTPS://e/sparql")
    assert is_foreign("rdflib:file.ttl")


def test_our_stores_keep_the_protocol(new_store):
    check_store(new_store([]), "embedded")
    check_store(EndpointStore("http://127.0.0.1:1/sparql", profile="generic"), "endpoint")
    check_store(RdflibStore(), "rdflib")
    assert {"edit", "edits_since", "capabilities", "close"} <= set(MEMBERS)
