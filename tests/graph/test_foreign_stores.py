"""Stores of other packages: opened by their entry point, refused if they break the protocol."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import pytest

from kgqa import ask
from kgqa.errors import KgqaError, LoadError, SettingsError, StoreError
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.foreign_stores import MEMBERS, check_store, is_foreign
from kgqa.graph.opening import open_graph, open_store
from kgqa.model import Entity, Literal, Triple
from kgqa.storage.cache import Cache
from kgqa.testing.rdflib_store import RdflibStore

LINES = '<http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> "Ann" .\n<http://e/a> <http://e/r> <http://e/b> .\n'
CODE = """
from kgqa.graph.store import Capabilities, Rows
from kgqa.model import Entity
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
    raise SystemExit("no licence")

class Odd(RdflibStore):
    # Breaks the protocol at the member that REST names.
    def __init__(self, rest, writable=False):
        super().__init__(rest)
        self.load(["graph.nt"])
        self.rest = rest
        if rest == "settings":
            self.settings = None
        if rest == "location":
            self.location = 3
        if rest == "capabilities":
            self.capabilities = {"updates": True}
        if rest == "identity":
            self.capabilities = Capabilities(updates=True, identity="/a folder/of mine: \\u00e9")

    def select(self, query, **options):
        found = super().select(query, **options)
        rows = {
            "width": [(*row, None) for row in found],
            "lists": [list(row) for row in found],
            "texts": [tuple(map(str, row)) for row in found],
            "blank": [tuple(Entity("_:b0") for _ in row) for row in found],
        }
        if self.rest == "boom":
            raise ValueError("boom")
        return Rows(found.variables, rows.get(self.rest, found.rows))

    def notice(self):
        return 5 if self.rest == "notice" else None

    def edits_since(self, version, graphs=()):
        return ["an edit"] if self.rest == "edits" else super().edits_since(version, graphs)

class Closing(RdflibStore):
    # Tells how it was closed.
    ends = []
    def __init__(self, rest, writable=False):
        super().__init__(rest)
        self.capabilities = Capabilities(updates=writable)
    def close(self):
        self.ends.append("closed")
    def __exit__(self, exception, *_):
        self.ends.append(exception)

class Plain:
    # A store without `__enter__` and `__exit__`.
    def __init__(self, rest, writable=False):
        self.inner = Closing(rest, writable)
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

open = RdflibStore.open
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with stores that is found as if it were installed."""
    names = {"memory": "open", "lacking": "Lacking", "failing": "Failing", "old": "OldSelect", "unopened": "unopened"}
    names |= {"odd": "Odd", "closing": "Closing", "plain": "Plain"}
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
        before = graph.relations
        graph.store.edit("", [Triple(Entity("http://e/a"), "http://e/new", Literal("x"))])
        assert set(graph.relations) - set(before) == {"http://e/new"}


@pytest.mark.parametrize(
    ("location", "error", "message"),
    [
        ("lacking:x", SettingsError, "lacking lacks capabilities, settings, triples_of"),
        ("old:x", SettingsError, "select of the store old must accept the arguments query, timeout, max_rows, fresh"),
        ("failing:x", StoreError, "failing failed at select: ValueError: boom"),
        ("failing:wrong", StoreError, "member select of the store failing returned a list"),
        ("unopened:x", StoreError, "no licence"),
        ("gone:x", SettingsError, "no_such_module"),
        ("unknown:x", SettingsError, "no installed package has a store named unknown .*memory"),
        ("odd:settings", StoreError, "member settings of the store odd returned a NoneType"),
        ("odd:location", StoreError, "location of the store odd returned a int"),
        ("odd:capabilities", StoreError, "capabilities of the store odd returned a dict"),
        ("odd:width", StoreError, "select of the store odd returned a row that is not a tuple of"),
        ("odd:lists", StoreError, "a row that is not a tuple"),
        ("odd:texts", StoreError, "a str as a value"),
        ("odd:blank", StoreError, "blank node _:b0; it must replace blank nodes by IRIs"),
        ("odd:notice", StoreError, "notice of the store odd returned a int"),
        ("odd:edits", StoreError, "edits_since of the store odd returned a list with something else"),
        ("memory:/no/such/file.nt", LoadError, "cannot be read"),
    ],
)
def test_broken_stores_give_a_clear_error(package, location, error, message):
    with pytest.raises(KgqaError, match=message) as caught, open_graph(location, schema="rdfs") as graph:
        graph.exists(Entity("http://e/a"))
        graph.labels([Entity("http://e/a")])
        graph.store.notice()
        graph.store.edits_since("0")
    assert isinstance(caught.value, error)


def test_folders_and_addresses_are_not_foreign(package):
    (package / "a1:b").mkdir()
    (package / "memory:graph.nt").mkdir()
    assert not is_foreign("a1:b") and not is_foreign("graph") and not is_foreign("HTTPS://e/sparql")
    assert is_foreign("rdflib:file.ttl") and is_foreign("unknown:b")
    assert is_foreign("memory:graph.nt"), "a folder does not hide a store"
    assert not is_foreign("./memory:graph.nt") and not is_foreign(Path("memory:graph.nt"))


def test_identity_is_any_text(package):
    cache = Cache(package / "cache")
    for _ in range(2):
        with open_graph("odd:identity", schema="rdfs", cache=cache) as graph:
            assert graph.search("ann")[0].entity == Entity("http://e/a") and graph.relations
    assert len(list((package / "cache" / "graphs").iterdir())) == 1


def test_failing_query_of_a_question_is_named(package):
    for location in ("odd:boom", "odd:width"):
        found = ask("Who is Ann?", graph=location, schema="rdfs", embeddings="off")
        assert found.status == "failed" and "store odd" in found.reason, found.reason


def test_blank_nodes_of_a_file_become_the_same_iris(package):
    (package / "blank.ttl").write_text('[] <http://e/r> _:x . _:x <http://e/r> [ <http://e/s> "1" ] .')
    found = []
    for _ in range(2):
        with open_store("memory:blank.ttl") as store:
            store.load(["blank.ttl"])
            found.append(set(store.select("SELECT * WHERE { ?s ?p ?o }")))
    assert found[0] == found[1] and len(found[0]) == 3


def test_with_statement_closes_a_store(package):
    import brought_stores

    ends = brought_stores.Closing.ends
    with open_store("plain:x", writable=True) as store:
        assert store.capabilities.updates
    with open_graph("plain:x"), suppress(KeyError), open_graph("closing:x") as graph:
        assert not graph.store.capabilities.updates
        raise KeyError
    assert ends == ["closed", KeyError, "closed"]
    with open_graph("closing:x", writable=True) as graph:
        assert graph.store.capabilities.updates
    assert ends[3:] == [None]


def test_exception_in_a_with_statement_discards_edits(package):
    triples = [Triple(Entity("http://e/a"), "http://e/r", Entity(f"http://e/{number}")) for number in range(2)]
    with open_store("folder", create=True, writable=True) as store:
        store.edit("", triples[:1])
    with suppress(KeyError), open_graph("folder", schema="rdfs", writable=True) as graph:
        graph.store.edit("", triples[1:])
        raise KeyError
    with open_graph("folder", schema="rdfs") as graph:
        assert graph.store.triples_of() == 1
        assert not graph.exists(Entity("http://e/1"))


def test_graphs_that_cannot_be_opened_for_writing(package):
    for location, message in (
        (None, "The demo graph cannot be changed"),
        ("http://127.0.0.1:1/sparql", "name the graph to write to"),
        ("rdflib:graph.nt", "read into memory"),
    ):
        with pytest.raises(KgqaError, match=message):
            open_graph(location, writable=True)


def test_our_stores_keep_the_protocol(new_store):
    check_store(new_store([]), "embedded")
    check_store(EndpointStore("http://127.0.0.1:1/sparql", profile="generic"), "endpoint")
    check_store(RdflibStore(), "rdflib")
    assert {"edit", "edits_since", "capabilities", "close"} <= set(MEMBERS)
