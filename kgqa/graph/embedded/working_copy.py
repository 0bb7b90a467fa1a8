"""The working copy of a store that is open for writing: a generation that no other process reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO

from kgqa.errors import InvalidTerm, StoreIncomplete
from kgqa.graph.editing import terms
from kgqa.graph.embedded.folder import GraphFolder, disk_errors
from kgqa.graph.embedded.records import GraphHash, digests_of
from kgqa.graph.embedded.tsv import decode_term
from kgqa.graph.embedded.workers import Worker
from kgqa.graph.query.templates import render_term
from kgqa.graph.rdf.lines import stored_line
from kgqa.model import Entity, Triple
from kgqa.text.hints import Command

MAX_TRANSACTION = 50_000
"""Number of triples in the largest edit that is one transaction of the engine, which keeps it in memory."""
PART = 10_000
"""Number of triples in one of several requests to the worker."""


@dataclass(frozen=True)
class Change:
    """What an edit changes in one graph: the added and removed triples, by their N-Quads lines."""

    graph: str
    adds: dict[bytes, Triple]
    removes: dict[bytes, Triple]

    def make(self, worker: Worker) -> None:
        """Make the change. If the worker dies or an exception is raised, it may have been made; see `was_made`."""
        worker.call({"op": "edit", "adds": b"".join(self.adds).decode(), "removes": b"".join(self.removes).decode()})

    def make_on_copy(self, worker: Worker, folder: GraphFolder, locks: Sequence[BinaryIO]) -> int:
        """Make a change of any size in parts, on a copy of the worker's store, and return the copy's generation."""
        generation = folder.next_generation()
        with copied(folder, worker, generation):
            writer = Worker(folder.store_dir(generation), "write", locks)
            try:
                for lines in _parts([*self.removes]):
                    writer.call({"op": "edit", "adds": "", "removes": lines})
                for lines in _parts([*self.adds]):
                    writer.call({"op": "extend", "lines": lines})
            finally:
                writer.kill()
        return generation

    def was_made(self, worker: Worker) -> bool:
        """Return whether the store of a worker contains the change."""
        line = next(iter(self.adds or self.removes))
        return contained(worker, [line])[0] == (line in self.adds)

    def hash(self) -> GraphHash:
        """Return the hash of the added triples minus that of the removed ones."""
        return GraphHash.of(digests_of(self.adds)) - GraphHash.of(digests_of(self.removes))


def create_working_copy(folder: GraphFolder, published: int) -> int:
    """Create a generation made of hard links to the published one, and return its number.

    The caller holds the lock for writing. What a killed process has left is removed.

    Raises:
        StoreIncomplete: a load was interrupted, and must be resumed or discarded first.
        StoreUnavailable: the folder is not writable, or the disk is full.
    """
    if folder.journal_file.exists():
        raise StoreIncomplete(
            f"The last load into {folder.path} was interrupted. It must be resumed or discarded before the graph "
            "can be edited.",
            "Resume the load: ",
            Command("graph load", resume=True, into=folder.path),
        )
    with disk_errors(folder.path):
        folder.remove_unused(published)
        generation = folder.next_generation()
        try:
            folder.create_generation(generation, published)
        except OSError:
            folder.remove_generation(generation)
            raise
    return generation


@contextmanager
def copied(folder: GraphFolder, worker: Worker, generation: int) -> Iterator[None]:
    """Copy the store of the worker into a new generation, which is removed after an error.

    Raises:
        StoreUnavailable: the disk is full or not writable.
        StoreCrashed: the worker died.
    """
    try:
        with disk_errors(folder.path):
            folder.create_generation(generation)
            folder.store_dir(generation).rmdir()  # the engine creates it
            worker.call({"op": "copy", "target": str(folder.store_dir(generation))})
            yield
    except BaseException:
        folder.remove_generation(generation)
        raise


def plan_change(worker: Worker, graph: str, adds: dict[bytes, Triple], removes: dict[bytes, Triple]) -> Change:
    """Return what an edit has to change; a triple in both arguments is there afterwards."""
    lines = [*adds, *(line for line in removes if line not in adds)]
    present = {line for line, there in zip(lines, contained(worker, lines)) if there}
    return Change(
        graph,
        {line: triple for line, triple in adds.items() if line not in present},
        {line: triple for line, triple in removes.items() if line in present and line not in adds},
    )


def stored_triples(graph: str, triples: Iterable[Triple]) -> dict[bytes, Triple]:
    """Return triples by their N-Quads lines. Lines and triples have the form in which the engine stores them.

    Raises:
        InvalidTerm: a term is not valid RDF, or is a blank node.
    """
    end = f" {render_term(Entity(graph))} .\n" if graph else " .\n"
    stored = {}
    for triple in triples:
        subject, relation, object = map(render_term, terms(triple))
        written = f"{subject} {relation} {object}{end}"
        try:
            line = stored_line(written.encode())
        except (SyntaxError, ValueError) as error:
            raise InvalidTerm(
                f"{written[:200].rstrip()} is not valid RDF: {getattr(error, 'msg', '') or error}"
            ) from error
        stored[line] = triple
        if line != written.encode():
            value = decode_term(line.decode()[len(subject) + len(relation) + 2 : -len(end)])
            assert value is not None, "a line has an object"
            stored[line] = replace(triple, object=value)
    return stored


def contained(worker: Worker, lines: Sequence[bytes]) -> list[bool]:
    """Return for each line whether the store of a worker contains it."""
    return [bool(flag) for part in _parts(lines) for flag in worker.call({"op": "contained", "lines": part})]


def _parts(lines: Sequence[bytes]) -> Iterator[str]:
    return (b"".join(lines[start : start + PART]).decode() for start in range(0, len(lines), PART))
