"""Stores of other packages, opened by their entry point."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kgqa.errors import KgqaError
from kgqa.graph.opening import is_foreign, open_graph
from kgqa.model import Entity, Literal, Triple

LINES = '<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Ann" .\n<http://e/a> <http://e/r> <http://e/b> .\n'
CODE = """
from kgqa.graph.store import Capabilities
from kgqa.testing.rdflib_store import RdflibStore

class Failing(RdflibStore):
    def __init__(self, rest, writable=False):
        super().__init__(rest)
        self.load(["graph.nt"])
    def select(self, query, **options):
        raise ValueError("boom")

class Closing(RdflibStore):
    # Tells how it was closed.
    ends = []
    def __init__(self, rest, writable=False):
        super().__init__(rest)
        self.capabilities = Capabilities(updates=writable, identity="/a folder/of mine: \\u00e9")
    def __exit__(self, exception, *_):
        self.ends.append(exception)

def unopened(rest, writable=False):
    raise ValueError("no licence")

open = RdflibStore.open
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with stores that is found as if it were installed."""
    names = {"memory": "open", "failing": "Failing", "unopened": "unopened", "closing": "Closing"}
    info = tmp_path / "brought_stores-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brought-stores\nVersion: 1\n")
    points = [f"{name} = brought_stores:{code}" for name, code in names.items()]
    (info / "entry_points.txt").write_text("\n".join(["[kgqa.stores]", *points, "gone = no_such_module:x"]) + "\n")
    (tmp_path / "brought_stores.py").write_text(CODE)
    (tmp_path / "graph.nt").write_text(LINES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("brought_stores", None)


def test_graph_of_a_foreign_store(package):
    with open_graph(f"memory:{package / 'graph.nt'}") as graph:
        assert graph.schema.name == "rdfs" and graph.store.triples_of() == 2
        assert [match.entity for match in graph.search("ann")] == [Entity("http://e/a")]
        before = graph.tables.relations
        graph.store.edit("", [Triple(Entity("http://e/a"), "http://e/new", Literal("x"))])
        assert set(graph.tables.relations) - set(before) == {"http://e/new"}


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("gone:x", "no_such_module"),
        ("unknown:x", "no installed package has a store named unknown .*memory"),
        ("memory:/no/such/file.nt", "cannot be read"),
    ],
)
def test_store_that_cannot_be_opened(package, location, message):
    with pytest.raises(KgqaError, match=message):
        open_graph(location)


def test_folders_and_addresses_are_not_foreign(package):
    (package / "a1:b").mkdir()
    (package / "memory:graph.nt").mkdir()
    assert not is_foreign("a1:b") and not is_foreign("graph") and not is_foreign("HTTPS://e/sparql")
    assert is_foreign("rdflib:file.ttl") and is_foreign("unknown:b")
    assert is_foreign("memory:graph.nt"), "a folder does not hide a store"
    assert not is_foreign("./memory:graph.nt") and not is_foreign(Path("memory:graph.nt"))


def test_graphs_that_cannot_be_opened_for_writing(package):
    for location, message in (
        (None, "The demo graph cannot be changed"),
        ("http://127.0.0.1:1/sparql", "name the graph to write to"),
        ("rdflib:graph.nt", "read into memory"),
    ):
        with pytest.raises(KgqaError, match=message):
            open_graph(location, writable=True)
