"""The working copy of a store that is open for writing: a generation that no other process reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kgqa.errors import InvalidTerm, StoreError, StoreIncomplete
from kgqa.graph.editing import terms
from kgqa.graph.embedded.folder import GraphFolder, disk_errors
from kgqa.graph.embedded.graph_hashes import GraphHash, digests_of
from kgqa.graph.embedded.records import GraphMeta
from kgqa.graph.embedded.tsv import decode_term
from kgqa.graph.embedded.workers import Worker
from kgqa.graph.query.templates import render_term
from kgqa.graph.rdf.lines import stored_line
from kgqa.model import Entity, Triple
from kgqa.text.hints import Command

MAX_TRANSACTION = 50_000
"""Number of triples in the largest edit that is one transaction of the engine, which keeps it in memory.

Larger edits are made in parts on a copy of the working copy, which then takes its place."""
PART = 10_000
"""Number of triples sent to the worker in one request."""


@dataclass(frozen=True)
class Change:
    """What an edit changes in one graph: the added and removed triples, by their N-Quads lines."""

    graph: str
    adds: dict[bytes, Triple]
    removes: dict[bytes, Triple]

    def __len__(self) -> int:
        return len(self.adds) + len(self.removes)

    def was_applied(self, worker: Worker) -> bool:
        """Return whether the store of a worker contains the change."""
        line = next(iter(self.adds or self.removes))
        return contained(worker, [line])[0] == (line in self.adds)


class WorkingCopy:
    """A generation made of hard links to the published one, with its hashes and the changes that are not published.

    The caller holds the lock for writing. Workers that are passed have the store of this generation open.

    Args:
        folder: the graph folder.
        published: the record of the published generation.

    Raises:
        StoreIncomplete: a load was interrupted, and must be resumed or discarded first.
        StoreUnavailable: the folder is not writable, or the disk is full.
    """

    def __init__(self, folder: GraphFolder, published: GraphMeta) -> None:
        if folder.journal_file.exists() and not folder.is_journal_published():
            raise StoreIncomplete(
                f"The last load into {folder.path} was interrupted. It must be resumed or discarded before the graph "
                "can be edited.",
                "Resume the load: ",
                Command("graph load", resume=True, into=folder.path),
            )
        self.folder = folder
        self.published = published
        self.notice = folder.unpublished.notice(published.generation)
        self.hashes = published.hashes
        self.is_published = True
        """Whether nothing was edited since the last publication."""
        with disk_errors(folder.path):
            folder.finish_publishing({published.generation})
            self.generation = folder.next_generation()
            try:
                folder.create_generation(self.generation, published.generation)
            except OSError:
                folder.remove_generation(self.generation)
                raise

    def plan(self, worker: Worker, graph: str, adds: Iterable[Triple], removes: Iterable[Triple]) -> Change:
        """Return what an edit has to change. Raises InvalidTerm."""
        wanted, unwanted = stored_triples(graph, adds), stored_triples(graph, removes)
        for line in wanted.keys() & unwanted.keys():
            del unwanted[line]
        adding, removing = (dict(zip(lines, contained(worker, [*lines]))) for lines in (wanted, unwanted))
        return Change(
            graph,
            {line: triple for line, triple in wanted.items() if not adding[line]},
            {line: triple for line, triple in unwanted.items() if removing[line]},
        )

    def apply(self, worker: Worker, change: Change, start: Callable[[Path], Worker]) -> None:
        """Make a change. If the worker dies or an exception is raised, it may have been made; see `was_applied`.

        Args:
            start: starts a worker that has the engine's files in a folder open for writing.
        """
        with disk_errors(self.folder.path):
            if len(change) > MAX_TRANSACTION:
                self._apply_to_copy(worker, change, start)
            else:
                worker.call(_request(change.adds, change.removes, drops=self._empties(change)))

    def _apply_to_copy(self, worker: Worker, change: Change, start: Callable[[Path], Worker]) -> None:
        """Make a large change in parts, on a copy which then becomes the working copy. The worker is killed."""
        with self._copied(worker) as generation:
            writer = start(self.folder.store_dir(generation))
            try:
                for part in _parts([*change.removes]):
                    writer.call(_request((), part))
                for part in _parts([*change.adds]):
                    writer.call(_request(part, (), bulk=True))
                if self._empties(change):
                    writer.call(_request((), [next(iter(change.removes))], drops=True))
            finally:
                writer.kill()
        worker.kill()
        old, self.generation = self.generation, generation
        self.folder.remove_generation(old)

    def record(self, change: Change) -> GraphHash:
        """Record a change that has been made, and return the hash of its graph."""
        added, removed = (GraphHash.of(digests_of(lines)) for lines in (change.adds, change.removes))
        self.is_published = False
        self.hashes = self.hashes.plus({change.graph: added - removed})
        return self.hashes.view([change.graph] if change.graph else [])

    def publish(self, worker: Worker) -> None:
        """Publish the triples as a new generation. After an error, nothing is published.

        Raises:
            StoreUnavailable: the disk is full or not writable.
            StoreCrashed: the worker died.
        """
        log, generation = self.folder.unpublished, 0
        try:
            with disk_errors(self.folder.path):
                log.append_publishing()
                with self._copied(worker) as generation:
                    self.folder.sync(generation)
                    self.folder.publish(
                        self.published.with_hashes(generation, self.hashes), keep={generation, self.generation}
                    )
        finally:
            if self.folder.current_generation() == generation:  # even if what follows the publication was interrupted
                self.published = self.folder.meta()
                self.is_published = True
            else:
                log.drop_last()

    def remove(self) -> None:
        """Remove the working copy. The log of unpublished edits remains if there are any."""
        self.folder.remove_generation(self.generation)

    def _empties(self, change: Change) -> bool:
        """Return whether a change removes the last triple of a named graph, which the engine would keep as empty."""
        if not change.graph or self.hashes.key(change.graph) != change.graph:
            return False
        return self.hashes.view([change.graph]).triples + len(change.adds) == len(change.removes)

    @contextmanager
    def _copied(self, worker: Worker) -> Iterator[int]:
        """Copy the store of the worker into a new generation, which is removed after an error."""
        generation = self.folder.next_generation()
        try:
            target = self.folder.create_copy_target(generation)
            worker.call({"op": "copy", "target": str(target)})
            yield generation
        except BaseException:
            with suppress(StoreError):
                self.folder.remove_generation(generation)
            raise


def stored_triples(graph: str, triples: Iterable[Triple]) -> dict[bytes, Triple]:
    """Return triples by their N-Quads lines. Lines and triples have the form in which the engine stores them.

    Raises:
        InvalidTerm: a term is not valid RDF, or is a blank node.
    """
    end = f" {render_term(Entity(graph))} .\n" if graph else " .\n"
    found = {}
    for triple in triples:
        subject, relation, object = map(render_term, terms(triple))
        written = f"{subject} {relation} {object}{end}"
        try:
            line = stored_line(written.encode())
        except (SyntaxError, ValueError) as error:
            raise InvalidTerm(
                f"{written[:200].rstrip()} is not valid RDF: {getattr(error, 'msg', '') or error}"
            ) from error
        if line != written.encode():
            stored = decode_term(line.decode()[len(subject) + len(relation) + 2 : -len(end)])
            assert stored is not None, "a line has an object"
            found[line] = replace(triple, object=stored)
        else:
            found[line] = triple
    return found


def contained(worker: Worker, lines: Sequence[bytes]) -> list[bool]:
    """Return for each line whether the store of a worker contains it."""
    return [
        flag == 1
        for part in _parts(lines)
        for flag in worker.call({"op": "contained", "lines": b"".join(part).decode()})
    ]


def _parts(lines: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (lines[start : start + PART] for start in range(0, len(lines), PART))


def _request(
    adds: Iterable[bytes], removes: Iterable[bytes], *, bulk: bool = False, drops: bool = False
) -> dict[str, object]:
    lines = {"adds": b"".join(adds).decode(), "removes": b"".join(removes).decode()}
    return {"op": "edit", **lines, "bulk": bulk, "drop": drops}
