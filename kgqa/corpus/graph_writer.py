"""Brings the graphs of a corpus up to the log of its edits, in a graph folder or on a server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from kgqa.corpus.difference import Difference, difference, with_changed_texts
from kgqa.corpus.editing.standing import Standing, computed_standing, keep_standing, standing_of
from kgqa.corpus.folder import CorpusFolder, writing
from kgqa.corpus.rdf.beside import beside_quads
from kgqa.corpus.rdf.edit_triples import edit_texts
from kgqa.corpus.rdf.terms import triple_of
from kgqa.corpus.rdf.triples import community_texts, quad_blocks, quad_lines
from kgqa.corpus.rdf.vocabulary import SEQ
from kgqa.corpus.storage.database import Database
from kgqa.graph.editing import batches, terms
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import discard_interrupted, load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.upload import BATCH_CHARS, BATCH_TRIPLES, UPDATE_SECONDS
from kgqa.graph.query.text import render
from kgqa.graph.store import Store, count_value
from kgqa.model import Entity
from kgqa.storage.loading import parse_json

_WRITTEN = "graph written"
"""The key under which the database keeps what a graph folder contains: the number of an edit and a fingerprint."""
_TARGET = "graph target"
"""The key under which the database keeps up to which edit the graphs on a server are being written."""
_PART = 50_000
BulkLoad = Callable[[Path], None]
"""Loads a file of N-Quads into a server."""


class GraphWriter:
    """Writes the graphs of a corpus. Each step may be repeated after a crash.

    Args:
        folder: The folder of the corpus.
        database: Its database, open for writing.
        store: The server that holds the graphs, open for writing to them; None for the graph folder.
        bulk_load: How to load a file of N-Quads into the server; None to send updates.
    """

    def __init__(
        self,
        folder: CorpusFolder,
        database: Database,
        *,
        store: EndpointStore | None = None,
        bulk_load: BulkLoad | None = None,
    ) -> None:
        self._folder = folder
        self._database = database
        self._server = store
        self._bulk_load = bulk_load
        self._embedded: EmbeddedStore | None = None
        self._standing: Standing | None = None
        self._at: int | None = None
        """The number of the last edit that the graphs contain, if it is known."""

    def catch_up(self, step: Callable[[str], None] = lambda name: None) -> bool:
        """Write what the graphs lack, and publish it. Return whether anything was written.

        Args:
            step: called after each step with its name.
        """
        database, wrote = self._database, False
        if self._at is None:
            self._at = self._position()
        last, target = database.seq, int(database.build.state(_TARGET) or 0)
        if self._at < last:
            wrote = True
            if self._server and self._at < target < last:
                self._write(target, step)  # first, what a process that was killed may have written in part
            self._write(last, step)
        elif not self._folder.file.url and not GraphFolder(self._folder.graph).exists():
            wrote = True
            self._write_all(last, step)
        change = database.communities.change()
        if change:
            wrote = True
            self._edit(
                "communities",
                (text for each in change.adds for text in community_texts(each)),
                (text for each in change.removes for text in community_texts(each)),
            )
            step("communities")
        if wrote:
            self._publish(step)
        return wrote

    def rebuild(self, step: Callable[[str], None] = lambda name: None) -> None:
        """Write the graphs anew from the database."""
        self._clear()
        self.catch_up(step)

    @property
    def store(self) -> Store:
        """The store, open for writing."""
        if self._server:
            return self._server
        if self._embedded is None:
            self._embedded = EmbeddedStore(self._folder.graph, writable=True)
        return self._embedded

    def close(self) -> None:
        """Close the graph folder; what was not published is discarded. A server that was passed is left open."""
        self._at = None
        self._close_folder()

    def _close_folder(self) -> None:
        store, self._embedded = self._embedded, None
        if store:
            store.close(publish=False)

    # --- where the graphs are

    def _position(self) -> int:
        """Return the number of the last edit that the graphs contain; 0 if they have to be written anew."""
        if not self._server:
            graph = GraphFolder(self._folder.graph)
            if graph.journal_file.exists():
                discard_interrupted(graph.path)
            if not graph.exists():
                return 0
            known = _recorded(self._database.build.state(_WRITTEN))
            if known and known[1] == graph.meta().fingerprint:
                return known[0]
        found = graph_position(self.store, self._folder.graphs["edits"], self._database)
        if found is None:
            self._clear()
            return 0
        self._record(found)
        return found

    def _clear(self) -> None:
        self._at = 0
        self._database.communities.forget_graph()
        if self._server:
            for graph in self._folder.graphs.values():
                self._server.update("clear_graph", graph=graph)
            return
        self._close_folder()
        if self._folder.graph.exists():
            shutil.rmtree(self._folder.graph)

    # --- writing

    def _write(self, until: int, step: Callable[[str], None]) -> None:
        assert self._at is not None
        if self._server:
            self._database.build.put_state(_TARGET, str(until))
            step("target")
        if not self._at:
            self._write_all(until, step)
        else:
            self._standing = computed_standing(self._database, until)
            change = with_changed_texts(
                difference(self._database, self._at, until),
                standing_of(self._database, self._at).texts(),
                self._standing.texts(),
            )
            self._write_difference(change, self._at, until, step)
        self._at = until

    def _write_difference(self, change: Difference, after: int, until: int, step: Callable[[str], None]) -> None:
        for view in sorted(change.adds.keys() | change.removes.keys()):
            self._edit(view, change.adds.get(view, ()), change.removes.get(view, ()))
            step(view)
        self._edit("edits", self._edits(after, until), ())
        step("edits")

    def _edit(self, view: str, adds: Iterable[str], removes: Iterable[str]) -> None:
        self.store.edit(self._folder.graphs[view], map(triple_of, adds), map(triple_of, removes))

    def _edits(self, after: int, until: int) -> Iterator[str]:
        """Yield the triples of edits, the last edit last."""
        for edit in self._database.edits(after, until):
            additions, removals = self._database.counts(edit)
            yield from edit_texts(edit, additions=additions, removals=removals)

    def _write_all(self, until: int, step: Callable[[str], None]) -> None:
        """Write all graphs, which are empty or were written in part."""
        snapshot = self._database.snapshots.all(until)
        more = [("communities", community_texts(each)) for each in self._database.communities.all()]
        self._standing = computed_standing(self._database, until)
        more += [(view, sorted(texts)) for view, texts in self._standing.texts().items()]
        if not self._server:
            more.append(("edits", list(self._edits(0, until))))
        base, file = self._folder.base, self._folder.staging
        file.unlink(missing_ok=True)
        try:
            with writing(file), open(file, "xb") as output:
                output.writelines(quad_blocks(snapshot, base=base))
                output.writelines(quad_lines(more, base=base))
                beside = self._folder.file.beside
                if beside and not self._server:
                    output.writelines(beside_quads(beside, base=base))
            step("file")
            self._load(file)
        finally:
            file.unlink(missing_ok=True)
        step("load")
        if self._server:
            self._edit("edits", self._edits(0, until), ())
            step("edits")
        self._database.communities.confirm()

    def _load(self, file: Path) -> None:
        if not self._server:
            self._close_folder()
            load_graph(self._folder.graph, [file], format="nq", restart=True, schema="corpus")
        elif self._bulk_load:
            self._bulk_load(file)
        else:
            self._send(self._server, file)

    def _send(self, server: EndpointStore, file: Path) -> None:
        """Send the quads of a file to the server, one graph after another."""
        for graph in self._folder.graphs.values():
            end = f" <{graph}> .\n"
            with open(file, encoding="utf-8", newline="\n") as lines:
                texts = (line.removesuffix(end) for line in lines if line.endswith(end))
                while part := [triple_of(text) for text in islice(texts, _PART)]:
                    for batch in batches(part, BATCH_TRIPLES, BATCH_CHARS):
                        server.update(
                            "insert_triples", graph=graph, triples=list(map(terms, batch)), timeout=UPDATE_SECONDS
                        )

    def _publish(self, step: Callable[[str], None]) -> None:
        if self._embedded:
            self._embedded.publish()
        step("publish")
        self._database.communities.confirm()
        if self._standing is not None and self._at is not None:
            keep_standing(self._database, self._at, self._standing)
        self._record(self._at)

    def _record(self, at: int | None) -> None:
        """Keep what the graph folder contains, so that it need not be opened to know that."""
        if not self._server:
            fingerprint = GraphFolder(self._folder.graph).meta().fingerprint
            self._database.build.put_state(_WRITTEN, json.dumps([at, fingerprint]))


def graph_position(store: Store, graph: str, database: Database) -> int | None:
    """Return the number of the last edit that a graph of edits contains; None if it belongs to another log."""
    rows = list(store.select(render("last_edit", view=(Entity(graph),), number=Entity(SEQ)), fresh=True))
    if not rows:
        return 0
    edit, number = rows[0][0], count_value(rows[0][1])
    known = database.edit(edit.iri) if isinstance(edit, Entity) else None
    return number if known is not None and known.seq == number else None


def published_seq(folder: CorpusFolder, database: Database) -> int | None:
    """Return the number of the last edit that the graph folder contains; None if this is not known."""
    known, graph = _recorded(database.build.state(_WRITTEN)), GraphFolder(folder.graph)
    if folder.file.url or known is None or not graph.exists() or graph.meta().fingerprint != known[1]:
        return None
    return known[0]


def _recorded(text: str) -> tuple[int, str] | None:
    """Read a stored number and fingerprint; None if there is none."""
    with suppress(ValueError):
        known: tuple[int, str] = parse_json(text, tuple[int, str])
        return known
    return None
