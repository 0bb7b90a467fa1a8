"""Factories of small graphs in either kind of store."""

from __future__ import annotations

import itertools
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyoxigraph

from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.options import Access, Profile
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


class GraphFactory:
    """A factory of graphs in one kind of store; `close` closes all of them.

    Each has `make_from_files`, which loads RDF files, and `open`, which loads lines and opens the graph by its folder
    or URL, as a user does.
    """

    kind: str

    def __init__(self) -> None:
        self._stores: list[Store] = []
        self._written: Any = None

    def make(self, lines: Iterable[str], schema: str | Schema = "freebase", **options) -> KnowledgeGraph:
        """Load N-Triples or N-Quads lines in bulk; quads keep the names of their graphs."""
        return self.make_from_files([self._file(lines)], schema, **options)

    def reopen(self, graph: KnowledgeGraph, *, view: Sequence[str] | None = None, **options) -> KnowledgeGraph:
        """Open the same data again; `view` names other graphs of it."""
        names = [entity.iri for entity in graph.view] if view is None else view
        return KnowledgeGraph(graph.store, graph.schema, view=names, **options)

    def write_facts(self, facts: Iterable[Fact]) -> tuple[Any, str]:
        """Write a few facts to a new named graph of a store that is shared."""
        # an empty graph does not exist, so one noise triple creates it
        name = f"http://e/graph{next(_numbers)}"
        self._open_for_writing(name)
        self._written.edit(name, [Triple(*fact) for fact in (*facts, NOISE)])
        return self._written, name

    def state(self) -> object:
        """Return the triples of the graph that `write_facts` wrote and the sizes of all other graphs."""
        return sorted(self._written.select("SELECT ?g ?s ?p ?o WHERE { GRAPH ?g { ?s ?p ?o } }"), key=repr)

    def close(self) -> None:
        for store in (*self._stores, self._written):
            if store is not None:
                store.close()


class EmbeddedGraphFactory(GraphFactory):
    """A factory of graph folders; `write_facts` writes to one shared store."""

    kind = "embedded"

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def _file(self, lines: Iterable[str]) -> Path:
        self._folder.mkdir(exist_ok=True)
        file = self._folder / f"data{next(_numbers)}.nq"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file

    def _load(self, files: Sequence[Path]) -> Path:
        folder = self._folder / f"graph{next(_numbers)}"
        with in_process_loads():
            load_graph(folder, files)
        return folder

    def make_from_files(self, files: Sequence[Path], schema: str | Schema, **options) -> KnowledgeGraph:
        self._stores.append(EmbeddedStore(self._load(files), workers=1))
        return KnowledgeGraph(self._stores[-1], _schema(schema), **options)

    def open(self, lines: Iterable[str], **options) -> KnowledgeGraph:
        graph = open_graph(self._load([self._file(lines)]), **options)
        self._stores.append(graph.store)
        return graph

    def _open_for_writing(self, name: str) -> None:
        self._written = self._written or EmbeddedStore(self._folder / "written", writable=True, create=True)


class RdflibGraphFactory(EmbeddedGraphFactory):
    """A factory of stores in memory on rdflib; `write_facts` writes to one shared store."""

    kind = "rdflib"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        # the entry point, which an older installation of kgqa lacks
        info = folder / "rdflib_store-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rdflib-store\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[kgqa.stores]\nrdflib = kgqa.testing.rdflib_store:RdflibStore.open\n")
        sys.path.append(str(folder))

    def make_from_files(self, files: Sequence[Path], schema: str | Schema, **options) -> KnowledgeGraph:
        store = RdflibStore()
        store.load(files)
        return KnowledgeGraph(store, _schema(schema), **options)

    def open(self, lines: Iterable[str], **options) -> KnowledgeGraph:
        return open_graph(f"rdflib:{self._file(lines)}", **options)

    def _open_for_writing(self, name: str) -> None:
        self._written = self._written or RdflibStore()

    def close(self) -> None:
        sys.path.remove(str(self._folder))
        super().close()


class VirtuosoGraphFactory(GraphFactory):
    """A factory of named graphs on a server that other tests share; `profile` is an argument of EndpointStore."""

    kind = "virtuoso"

    def __init__(self, server: Server, *, url: str | None = None, profile: str | Profile = "auto") -> None:
        super().__init__()
        self._server = server
        self._profile = profile
        self.url = url or server.url
        self._login: Access | None = None

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

    def store(self) -> EndpointStore:
        """Open a connection to the server."""
        self._stores.append(EndpointStore(self.url, profile=self._profile))
        return self._stores[-1]

    def make(self, lines: Iterable[str], schema: str | Schema = "freebase", **options) -> KnowledgeGraph:
        own = self._load(lines)[0]
        return KnowledgeGraph(self.store(), _schema(schema), view=[own], **options)

    def make_from_files(self, files: Sequence[Path], schema: str | Schema, **options) -> KnowledgeGraph:
        own = f"http://e/graph{next(_numbers)}"
        copies = [self._server.import_folder / f"test{next(_numbers)}-{file.name}" for file in files]
        for file, copy in zip(files, copies):
            shutil.copyfile(file, copy)
        self._load_files(copies, own)
        return KnowledgeGraph(self.store(), _schema(schema), view=[own], **options)

    def open(self, lines: Iterable[str], **options) -> KnowledgeGraph:
        graph = open_graph(self.url, view=self._load(lines)[:1], **options)
        self._stores.append(graph.store)
        return graph

    def _open_for_writing(self, name: str) -> None:
        if self._written is not None:
            self._written.close()  # there may be hundreds of stores, each with its own connections
        self._written = EndpointStore(self.url, writable=name, access=self.access(), profile=self._profile)

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
        name = self._written.writable
        with EndpointStore(self._server.url) as store:
            return sorted(store.select(f"SELECT ?s ?p ?o FROM <{name}> WHERE {{ ?s ?p ?o }}"), key=repr), self.sizes()

    def sizes(self) -> dict[Entity, str]:
        """Return the number of triples of every graph of the server."""
        with EndpointStore(self._server.url) as store:
            rows = store.select("SELECT ?g (COUNT(*) AS ?n) WHERE { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g")
        return {graph: count.value for graph, count in rows}


def _schema(schema: str | Schema) -> Schema:
    return bundled_schema(schema) if isinstance(schema, str) else schema


def _graph_of(line: str) -> tuple[str, str]:
    """Split a line into the triple and the name of its graph, empty if it has none."""
    (quad,) = pyoxigraph.parse(line, format=pyoxigraph.RdfFormat.N_QUADS)
    if isinstance(quad.graph_name, pyoxigraph.DefaultGraph):
        return line, ""
    return f"{quad.triple} .", quad.graph_name.value
