"""A store in memory on rdflib: written against the `Store` protocol alone, for tests and as an example of a store."""

from __future__ import annotations

import gzip
import hashlib
import itertools
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import rdflib
from rdflib.graph import ReadOnlyGraphAggregate
from rdflib.plugins.sparql.algebra import translateQuery, traverse
from rdflib.plugins.sparql.parserutils import CompValue

from kgqa.errors import InvalidTerm, LoadError, PartialResult, QueryRejected, StoreUnavailable
from kgqa.graph.editing import EditHistory, net_changes, terms
from kgqa.graph.endpoint.replies import canonical_text
from kgqa.graph.query.explain import parse_query
from kgqa.graph.query.text import render_term
from kgqa.graph.query.tokens import dataset_of, prepare_for_engine
from kgqa.graph.rdf.lines import GENID
from kgqa.graph.store import DEFAULT_MAX_ROWS, Capabilities, EditReport, LoadReport, OnError, Progress, Rows, Store
from kgqa.model import XSD_STRING, Entity, Literal, Triple, Value
from kgqa.text.hints import Command

DEFAULT = rdflib.graph.DATASET_DEFAULT_GRAPH_ID
_numbers = itertools.count()


class RdflibStore(Store):
    """An `rdflib.Dataset` as a store. Thread-safe, because queries run one at a time. They have no time limit.

    Args:
        location: text for messages.
    """

    location = "rdflib"
    capabilities = Capabilities(updates=True)

    def __init__(self, location: str = "rdflib") -> None:
        self.location = location
        self.capabilities = Capabilities(updates=True, identity=f"-rdflib{next(_numbers)}")
        self._data = rdflib.Dataset()
        self._history = EditHistory()
        self._lock = threading.RLock()
        self._closed = False

    @classmethod
    def open(cls, rest: str, *, writable: bool = False) -> RdflibStore:
        """Load an RDF file, for the location `rdflib:FILE`. This is an entry point of kgqa.

        Raises:
            LoadError: the file is missing, or cannot be read.
            StoreUnavailable: `writable` was given; the store could not save what is written.
        """
        if writable:
            raise StoreUnavailable(
                f"rdflib:{rest} is read into memory, so nothing can be written to it.",
                "Load the file into a graph folder: ",
                Command("graph load", "FILE", into="FOLDER"),
            )
        store = cls(f"rdflib:{rest}")
        store.load([rest])
        return store

    def triples_of(self, graphs: Sequence[str] = ()) -> int | None:
        with self._lock:
            return len({triple for graph in self._graphs(graphs) for triple in graph})

    def fingerprint_of(self, graphs: Sequence[str] = ()) -> str:
        with self._lock:
            lines = {" ".join(term.n3() for term in triple) for graph in self._graphs(graphs) for triple in graph}
        sums = sum(int.from_bytes(hashlib.blake2b(line.encode(), digest_size=16).digest()) for line in lines)
        return f"{sums % 2**128:032x}"

    def version_of(self, graphs: Sequence[str] = ()) -> str:
        return self._history.version_of(graphs or ("",))

    def edits_since(self, version: str, graphs: Sequence[str] = ()) -> list[EditReport] | None:
        return self._history.since(version, graphs or ("",))

    def responds(self, seconds: float) -> bool:
        return not self._closed

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        with self._lock:
            result: Any = self._run(query, "SELECT")
            rows = [tuple(None if term is None else _value(term) for term in row) for row in result]
        limit = DEFAULT_MAX_ROWS if max_rows is None else max_rows
        if len(rows) > limit:
            raise PartialResult(f"The result has more than {limit:,} rows. Narrow the query.")
        return Rows(tuple(map(str, result.vars or ())), rows)

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        with self._lock:
            return bool(self._run(query, "ASK").askAnswer)

    def edit(self, graph: str, adds: Iterable[Triple], removes: Iterable[Triple] = ()) -> EditReport:
        self._check_open()
        with self._lock:
            target = self._graphs([graph] if graph else ())[0]
            wanted = {triple: _terms(triple) for triple in adds}
            unwanted = {triple: _terms(triple) for triple in removes}
            known = {**wanted, **unwanted}
            added, removed = net_changes(
                wanted, unwanted, present=lambda triples: {each for each in triples if known[each] in target}
            )
            for triple in removed:
                target.remove(known[triple])
            for triple in added:
                target.add(known[triple])
            return self._history.add(graph, added, removed)

    def load(
        self,
        files: Iterable[str | Path],
        *,
        on_error: OnError = "fail",
        progress: Callable[[Progress], None] | None = None,
    ) -> LoadReport:
        started, paths = time.monotonic(), [Path(file) for file in files]
        quads = [quad for path in paths for quad in _quads(path)]
        self._check_open()
        with self._lock:
            before = len(self._data)
            for *triple, graph in quads:
                self._graphs([graph] if graph else ())[0].add(tuple(triple))
            self._history.forget()
            total = len(self._data)
        seconds = round(time.monotonic() - started, 3)
        return LoadReport(len(paths), len(quads), total - before, total, 0, (), self.fingerprint_of(), seconds)

    def close(self) -> None:
        self._closed = True

    def _graphs(self, graphs: Sequence[str]) -> list[rdflib.Graph]:
        return [self._data.graph(rdflib.URIRef(iri)) for iri in graphs] or [self._data.graph(DEFAULT)]

    def _run(self, query: str, kind: str) -> rdflib.query.Result:
        self._check_open()
        query = prepare_for_engine(query)
        # rdflib drops a filter that is the constant false, and resolves \\u after an escaped backslash
        query = query.replace("FILTER(false)", "FILTER(1 = 2)").replace("\\\\", "\\u005C\\u005C")
        graphs = dataset_of(query) or ()
        for iri in graphs:
            query = query.replace(f"FROM <{iri}>", "")  # the view has these graphs
        view = self._data if not graphs else ReadOnlyGraphAggregate(self._graphs(graphs))
        try:
            result = (view if len(graphs) != 1 else self._graphs(graphs)[0]).query(_prepared(query))
        except Exception as error:  # the parser and the algebra of rdflib raise many kinds of errors
            raise QueryRejected(f"rdflib cannot run the query: {str(error)[:200]}") from error
        if result.type != kind:
            raise QueryRejected(f"Expected a query of the kind {kind}, not {result.type}.")
        return result

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(f"{self.location} has been closed. Open it again.")


def _prepared(query: str) -> Any:
    """Parse a query, and let joins with a pattern of triples look up each row; rdflib compares all rows otherwise."""
    prepared = translateQuery(parse_query(query))

    def improve(node: Any) -> None:
        if isinstance(node, CompValue) and node.name == "Join" and node.p2.name == "BGP":
            node["lazy"] = True

    traverse(prepared.algebra, visitPost=improve)
    return prepared


def _terms(triple: Triple) -> tuple[Any, ...]:
    found = []
    for term in terms(triple):
        render_term(term)  # raises InvalidTerm
        found.append(rdflib.URIRef(term.iri) if isinstance(term, Entity) else _canonical(term))
    return tuple(found)


def _canonical(value: Literal) -> rdflib.Literal:
    """Write a literal as kgqa's other stores do: `xsd:string` without datatype, numbers in their shortest form."""
    if value.language:
        return rdflib.Literal(value.value, lang=value.language.lower())
    text = canonical_text(value.value, value.datatype)
    if value.datatype == str(rdflib.XSD.decimal) and re.fullmatch(r"[+-]?[0-9]*\.?[0-9]+", text):
        text = format(Decimal(text).normalize(), "f")
    datatype = None if value.datatype == XSD_STRING else rdflib.URIRef(value.datatype)
    return rdflib.Literal(text, datatype=datatype, normalize=False)


def _quads(path: Path) -> Iterator[tuple[Any, Any, Any, str]]:
    """Read an RDF file, with IRIs in place of blank nodes. pyoxigraph reads more IRIs than the parsers of rdflib."""
    numbers: dict[str, int] = {}
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix
    try:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        tag = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        with opener(path, "rb") as file:
            for quad in ox.parse(file, format=ox.RdfFormat.from_extension(suffix[1:])):
                graph = "" if isinstance(quad.graph_name, ox.DefaultGraph) else quad.graph_name.value
                triple = [
                    ox.NamedNode(f"{GENID}{tag}:{numbers.setdefault(term.value, len(numbers))}")
                    if isinstance(term, ox.BlankNode)
                    else term
                    for term in (quad.subject, quad.predicate, quad.object)
                ]
                yield *map(_term, triple), graph
    except (OSError, SyntaxError, ValueError, TypeError) as error:
        raise LoadError(f"{path} cannot be read: {str(error)[:200]}", "Give the path of an RDF file.") from error


def _term(term: Any) -> Any:
    if isinstance(term, ox.NamedNode):
        return rdflib.URIRef(term.value)
    return _canonical(Literal(term.value, term.datatype.value, term.language or ""))


def _value(term: Any) -> Value:
    if isinstance(term, rdflib.URIRef):
        return Entity(str(term))
    if isinstance(term, rdflib.BNode):
        return Entity(f"_:{term}")
    if not isinstance(term, rdflib.Literal):
        raise InvalidTerm(f"{str(term)[:80]!r} is not an RDF term.")
    if term.language:
        return Literal(str(term), language=term.language)
    datatype = str(term.datatype or rdflib.XSD.string)
    return Literal(canonical_text(str(term), datatype), datatype)
