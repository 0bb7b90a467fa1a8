"""Factories of small graphs in either kind of store."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import pyoxigraph

from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.access import Access
from kgqa.graph.endpoint.profiles import Profile
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.graph.store import Store
from kgqa.model import Entity, Triple, Value
from kgqa.schema import Schema, bundled_schema
from kgqa.testing.rdflib_store import RdflibStore
from kgqa.virtuoso.graph_loading import index_graph
from kgqa.virtuoso.server import Server
from tests.graph.in_process_loads import in_process_loads

KINDS = ("embedded", "rdflib", "virtuoso")
SEE_ALSO = Entity("http://www.w3.org/2000/01/rdf-schema#seeAlso")
_numbers = itertools.count()
Fact = tuple[Entity, str, Value]
NOISE: Fact = (Entity("http://e/n0"), SEE_ALSO.iri, Entity("http://e/n0"))


class GraphFactory(Protocol):
    """A factory of graphs in one kind of store; `close` closes all of them."""

    kind: str

    def make(self, lines: Iterable[str], schema: str | Schema = "freebase", **options) -> KnowledgeGraph:
        """Load N-Triples or N-Quads lines in bulk; quads keep the names of their graphs."""
        ...

    def make_from_files(self, files: Sequence[Path], schema: str | Schema, **options) -> KnowledgeGraph:
        """Load RDF files."""
        ...

    def reopen(self, graph: KnowledgeGraph, *, view: Sequence[str] | None = None, **options) -> KnowledgeGraph:
        """Open the same data again; `view` names other graphs of it."""
        ...

    def open(self, lines: Iterable[str], **options) -> KnowledgeGraph:
        """Load lines and open the graph by its folder or URL, as a user does."""
        ...

    def write_facts(self, facts: Iterable[Fact]) -> tuple[Store, str]:
        """Replace the content of a shared named graph by a few facts."""
        ...

    def state(self) -> object:
        """Return the triples of the graph that `write_facts` wrote and the sizes of all other graphs."""
        ...

    def close(self) -> None: ...


class EmbeddedGraphFactory:
    """A factory of graph folders; `write_facts` writes to one shared store."""

    kind = "embedded"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stores: list[Store] = []
        self._written: EmbeddedStore | None = None

    def _load(self, lines: Iterable[str]) -> Path:
        base = self._folder / f"graph{next(_numbers)}"
        base.mkdir(parents=True)
        (base / "data.nq").write_text("\n".join(lines) + "\n", encoding="utf-8")
        with in_process_loads():
            load_graph(base / "g", [base / "data.nq"])
        return base / "g"

    def make(self, lines: Iterable[str], schema: str | Schema = "freebase", **options) -> KnowledgeGraph:
        return self._graph(self._load(lines), schema, **options)

    def make_from_files(self, files: Sequence[Path], schema: str | Schema, **options) -> KnowledgeGraph:
        folder = self._folder / f"graph{next(_numbers)}"
        with in_process_loads():
            load_graph(folder, files)
        return self._graph(folder, schema, **options)

    def _graph(self, folder: Path, schema: str | Schema, **options) -> KnowledgeGraph:
        self._stores.append(EmbeddedStore(folder, workers=1))
        return KnowledgeGraph(self._stores[-1], _schema(schema), **options)

    def reopen(self, graph: KnowledgeGraph, *, view: Sequence[str] | None = None, **options) -> KnowledgeGraph:
        names = [entity.iri for entity in graph.view] if view is None else view
        return KnowledgeGraph(graph.store, graph.schema, view=names, **options)

    def open(self, lines: Iterable[str], **options) -> KnowledgeGraph:
        graph = open_graph(self._load(lines), **options)
        self._stores.append(graph.store)
        return graph

    def write_facts(self, facts: Iterable[Fact]) -> tuple[Store, str]:
        if self._written is None:
            self._written = EmbeddedStore(self._folder / "written", writable=True, create=True)
            self._stores.append(self._written)
        name, triples = _insertion(facts)
        self._written.edit(name, triples)
        return self._written, name

    def state(self) -> object:
        assert self._written is not None
        named = self._written.select("SELECT ?g ?s ?p ?o WHERE { GRAPH ?g { ?s ?p ?o } }")
        return sorted([*named, *self._written.select("SELECT ?s ?p ?o WHERE { ?s ?p ?o }")], key=repr)

    def close(self) -> None:
        for store in self._stores:
            store.close()


class RdflibGraphFactory:
    """A factory of stores in memory on rdflib; `write_facts` writes to one shared store."""

    kind = "rdflib"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written = RdflibStore()
        # the entry point, which an older installation of kgqa lacks
        info = folder / "rdflib_store-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rdflib-store\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[kgqa.stores]\nrdflib = kgqa.testing.rdflib_store:RdflibStore.open\n")
        sys.path.append(str(folder))

    def make(self, lines: Iterable[str], schema: str | Schema = "freebase", **options) -> KnowledgeGraph:
        file = self._folder / f"data{next(_numbers)}.nq"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return self.make_from_files([file], schema, **options)

    def make_from_files(self, files: Sequence[Path], schema: str | Schema, **options) -> KnowledgeGraph:
        store = RdflibStore()
        store.load(files)
        return KnowledgeGraph(store, _schema(schema), **options)

    def reopen(self, graph: KnowledgeGraph, *, view: Sequence[str] | None = None, **options) -> KnowledgeGraph:
        names = [entity.iri for entity in graph.view] if view is None else view
        return KnowledgeGraph(graph.store, graph.schema, view=names, **options)

    def open(self, lines: Iterable[str], **options) -> KnowledgeGraph:
        file = self._folder / f"data{next(_numbers)}.nq"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return open_graph(f"rdflib:{file}", **options)

    def write_facts(self, facts: Iterable[Fact]) -> tuple[Store, str]:
        name, triples = _insertion(facts)
        self._written.edit(name, triples)
        return self._written, name

    def state(self) -> object:
        return sorted(self._written.select("SELECT ?g ?s ?p ?o WHERE { GRAPH ?g { ?s ?p ?o } }"), key=repr)

    def close(self) -> None:
        sys.path.remove(str(self._folder))
        self._written.close()


class VirtuosoGraphFactory:
    """A factory of named graphs on a server that other tests share; `profile` is an argument of EndpointStore."""

    kind = "virtuoso"

    def __init__(self, server: Server, *, url: str | None = None, profile: str | Profile = "auto") -> None:
        self._server = server
        self._profile = profile
        self.url = url or server.url
        self._login: Access | None = None
        self._written: EndpointStore | None = None
        self._stores: list[Store] = []

    def _load(self, lines: Iterable[str]) -> tuple[str, ...]:
        """Load lines, those without a graph into a new one; return the names of all graphs."""
        own = f"http://e/graph{next(_numbers)}"
        parts: dict[str, list[str]] = {own: []}
        for line in lines:
            triple, name = _graph_of(line)
            parts.setdefault(name or own, []).append(triple)
        for name, triples in parts.items():
            file = self._server.import_folder / f"test{next(_numbers)}.nt"
            file.write_text("\n".join(triples) + "\n", encoding="utf-8")
            self._load_files([file], name)
        return tuple(parts)

    def _load_files(self, files: Sequence[Path], name: str) -> None:
        """Load files of the import folder and delete them."""
        self._server.load(files, name)
        for file in files:
            file.unlink()

    def store(self, *names: str) -> EndpointStore:
        """Open a connection to these graphs."""
        self._stores.append(EndpointStore(self.url, profile=self._profile))
        return self._stores[-1]

    def make(self, lines: Iterable[str], schema: str | Schema = "freebase", **options) -> KnowledgeGraph:
        own = self._load(lines)[0]
        return KnowledgeGraph(self.store(own), _schema(schema), view=[own], **options)

    def make_from_files(self, files: Sequence[Path], schema: str | Schema, **options) -> KnowledgeGraph:
        own = f"http://e/graph{next(_numbers)}"
        copies = [self._server.import_folder / f"test{next(_numbers)}-{file.name}" for file in files]
        for file, copy in zip(files, copies):
            shutil.copyfile(file, copy)
        self._load_files(copies, own)
        return KnowledgeGraph(self.store(own), _schema(schema), view=[own], **options)

    def reopen(self, graph: KnowledgeGraph, *, view: Sequence[str] | None = None, **options) -> KnowledgeGraph:
        names = [entity.iri for entity in graph.view] if view is None else view
        return KnowledgeGraph(self.store(*names), graph.schema, view=names, **options)

    def open(self, lines: Iterable[str], **options) -> KnowledgeGraph:
        graph = open_graph(self.url, view=self._load(lines)[:1], **options)
        self._stores.append(graph.store)
        return graph

    def write_facts(self, facts: Iterable[Fact]) -> tuple[Store, str]:
        if self._written is not None:
            self._written.close()  # there may be hundreds of stores, each with its own connections
        name, triples = _insertion(facts)
        self._written = EndpointStore(self.url, writable=name, access=self.access(), profile=self._profile)
        self._written.edit(name, triples)
        return self._written, name

    def index_names(self, graph: KnowledgeGraph) -> None:
        """Build the name graph, so that search and linking use the server's index."""
        assert index_graph(self._server, graph.store, graph.schema, graph.view[0].iri)

    def access(self) -> Access:
        """Return the login of a user who may write."""
        if self._login is None:
            file = self._server.allow_updates("tests")
            self._login = Access(user="tests", password=file.read_text(encoding="utf-8").strip())
        return self._login

    def state(self) -> object:
        assert self._written is not None
        name = self._written.writable
        with EndpointStore(self._server.url) as store:
            return sorted(store.select(f"SELECT ?s ?p ?o FROM <{name}> WHERE {{ ?s ?p ?o }}"), key=repr), self.sizes()

    def sizes(self) -> dict[Entity, str]:
        """Return the number of triples of every graph of the server."""
        with EndpointStore(self._server.url) as store:
            rows = store.select("SELECT ?g (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g")
        return {graph: count.value for graph, count in rows}

    def close(self) -> None:
        for store in (*self._stores, self._written):
            if store is not None:
                store.close()


def _schema(schema: str | Schema) -> Schema:
    return bundled_schema(schema) if isinstance(schema, str) else schema


def _insertion(facts: Iterable[Fact]) -> tuple[str, list[Triple]]:
    # an empty graph does not exist, so one noise triple creates it
    facts = [*facts, NOISE]
    return f"http://e/graph{next(_numbers)}", [Triple(*fact) for fact in facts]


def _graph_of(line: str) -> tuple[str, str]:
    """Split a line into the triple and the name of its graph, empty if it has none."""
    (quad,) = pyoxigraph.parse(line, format=pyoxigraph.RdfFormat.N_QUADS)
    if isinstance(quad.graph_name, pyoxigraph.DefaultGraph):
        return line, ""
    return f"{quad.triple} .", quad.graph_name.value
