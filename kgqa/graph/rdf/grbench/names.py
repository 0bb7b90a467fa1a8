"""IRIs of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from kgqa.graph.rdf.grbench.edge_sides import hashes_of, is_member
from kgqa.graph.rdf.grbench.scan import Scan
from kgqa.graph.rdf.grbench.terms import BASE, local, locals_of


class NodeNames:
    """The IRIs of the nodes of a graph: `urn:grbench:GRAPH/ID`, or GRAPH/TYPE/ID for ids that several types have."""

    def __init__(self, scan: Scan, graph: str) -> None:
        self._scan = scan
        self._base = f"{BASE}{graph}/"
        self._unique = not len(scan.clashing)

    def subject(self, type_: str, ident: str) -> tuple[str, bool]:
        """Return the IRI of a node, and whether its id is that of nodes of several types."""
        shared = not self._unique and bool(is_member(hashes_of([ident]), self._scan.clashing)[0])
        return f"<{self._base}{local(type_) + '/' if shared else ''}{local(ident)}>", shared

    def objects(self, type_: str, ids: Sequence[str]) -> list[str]:
        """Return the IRIs of nodes of a type; ids that several types have get none if no type is given."""
        if self._unique:
            return [f"<{self._base}{each}>" for each in locals_of(ids)]
        found = []
        for each in ids:
            iri, shared = self.subject(type_, each)
            found.append("" if shared and not type_ else iri)
        return found
