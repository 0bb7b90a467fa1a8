"""Bulk loading of RDF files into a new generation of a graph folder. Runs in a worker process.

A load is one transaction over all its files, recorded in a journal. The engine loads the lines in segments. After each
segment, the journal records the position in the file; an interrupted load is resumed there.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import pyoxigraph as ox

from kgqa.errors import LoadError
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.graph_hashes import Digests, digests_of, distinct_hashes
from kgqa.graph.embedded.records import Generation, GraphSettings, SchemaName
from kgqa.graph.rdf.files import FileJob, LineSource, MalformedLines, file_job, open_lines, staged_file
from kgqa.graph.rdf.lines import lines_by_graph
from kgqa.graph.store import OnError
from kgqa.schema import usable_prefixes
from kgqa.storage.atomic_files import write_json
from kgqa.storage.loading import parse_json, read_bytes
from kgqa.text.hints import Command

__all__ = ["FileJob", "Journal", "file_job", "run_load"]
SEGMENT_BYTES = 64 << 20


@dataclass
class Journal:
    """The state of a load, stored in loading.json."""

    generation: Generation
    base: Generation | None
    on_error: OnError
    files: list[FileJob]
    schema: SchemaName
    settings: GraphSettings

    def save(self, folder: GraphFolder) -> None:
        """Write the journal atomically."""
        write_json(folder.journal_file, asdict(self))

    @classmethod
    def read(cls, folder: GraphFolder) -> Journal:
        """Read the journal. Raises LoadError if the journal is missing or damaged."""
        try:
            journal: Journal = parse_json(read_bytes(folder.journal_file), Journal)
        except FileNotFoundError:
            raise LoadError(f"There is no interrupted load at {folder.path} to resume.") from None
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise LoadError(
                f"{folder.journal_file} is damaged ({why}).",
                "Start the load again: ",
                Command("graph load", "FILE", restart=True, into=folder.path),
            ) from error
        for job in journal.files:
            job.prefixes = usable_prefixes(job.prefixes)
        return journal


def run_load(
    folder: GraphFolder,
    journal: Journal,
    report: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Run the load that the journal describes: create a complete generation, but do not publish it.

    Args:
        report: called regularly with the fields of `store.Progress`.

    Returns:
        The `lines`, `malformed`, `examples` and `empty` of `store.LoadReport`, as `graphs` the fields of the
        `GraphHash` of each graph's new triples, and as `prefixes` those that each file declares.

    Raises:
        LoadError: a file is malformed or cut short; the caller discards the generation.
    """
    store = ox.Store(str(folder.store_dir(journal.generation)))
    load = _Load(store, folder, journal, report)
    for job in journal.files:
        load.file(job)
    report({"file": "", "bytes_done": 0, "bytes_total": 0, "lines": load.lines, "stage": "finishing"})
    store.flush()
    store.optimize()
    new = distinct_hashes(load.digests)
    return {
        "lines": load.lines,
        "malformed": load.malformed.count,
        "empty": load.empty,
        "examples": [asdict(example) for example in load.malformed.examples],
        "prefixes": [job.prefixes for job in journal.files],
        "graphs": {graph: [hash.triples, hash.sum] for graph, hash in new.items()},
    }


class _Load:
    """Checks and hashes the lines of one file after another, and loads them into the engine in segments."""

    def __init__(
        self, store: ox.Store, folder: GraphFolder, journal: Journal, report: Callable[[dict[str, Any]], None]
    ) -> None:
        self.lines = 0
        self.empty: list[str] = []
        self.digests: list[tuple[str, Digests]] = []
        """Those of the lines that the graph did not have before the load, by graph and block."""
        self.malformed = MalformedLines(journal.on_error)
        self._store = store
        self._folder = folder
        self._journal = journal
        self._report = report
        self._base = None if journal.base is None else ox.Store.read_only(str(folder.store_dir(journal.base)))
        self._triples = 0

    def file(self, job: FileJob) -> None:
        """Load one file."""
        staging = self._folder.path / f"gen-{self._journal.generation}"

        def on_staging(bytes_done: int, lines: int) -> None:
            self._report_progress(job, bytes_done, self.lines + lines, "reading")

        with open_lines(job, staging, on_staging) as source:
            lines, digests, malformed = self.lines, len(self.digests), copy.deepcopy(self.malformed)
            try:
                self._feed(source, strict=False)
            except SyntaxError:
                # the engine is stricter than the quick check: start over, and check each line with the engine's parser
                self.lines, self.malformed, job.lines_done = lines, malformed, 0
                del self.digests[digests:]
                self._feed(source, strict=True)
        if not self._triples:
            self.empty.append(job.name)
        staged_file(job, staging).unlink(missing_ok=True)
        job.done = True
        self._journal.save(self._folder)

    def _feed(self, source: LineSource, *, strict: bool) -> None:
        """Hash the new triples of a file, and load the blocks that are not loaded yet."""
        self._triples = 0
        job, done_before = source.job, source.job.lines_done
        segment: list[bytes] = []
        size = end = 0
        for block in source.blocks(lambda line, message: self.malformed.add(job.name, line, message), strict=strict):
            quads = source.format == ox.RdfFormat.N_QUADS
            new = self._new_lines(block.lines)
            for graph, lines in (lines_by_graph(new) if quads else {"": new}).items():
                self.digests.append((graph, digests_of(lines)))
            self._triples += len(block.lines)
            self.lines += block.end - block.first
            end = block.end
            self._report_progress(job, source.bytes_done, self.lines, "loading")
            # a segment ends at the end of a block, so each block was loaded completely or not at all
            if block.lines and block.end > done_before:
                segment.append(b"".join(block.lines))
                size += len(segment[-1])
            if size >= SEGMENT_BYTES:
                self._load(segment, job, end)
                segment, size = [], 0
        self._load(segment, job, end)

    def _load(self, segment: list[bytes], job: FileJob, end: int) -> None:
        self._store.bulk_load(b"".join(segment), format=ox.RdfFormat.N_QUADS)
        job.lines_done = max(job.lines_done, end)
        self._journal.save(self._folder)

    def _new_lines(self, lines: list[bytes]) -> list[bytes]:
        """Return the lines that the graph did not have before the load."""
        if self._base is None:
            return lines
        quads = ox.parse(b"".join(lines), format=ox.RdfFormat.N_QUADS)
        return [line for line, quad in zip(lines, quads) if quad not in self._base]

    def _report_progress(self, job: FileJob, bytes_done: int, lines: int, stage: str) -> None:
        self._report(
            {"file": job.name, "bytes_done": bytes_done, "bytes_total": job.size, "lines": lines, "stage": stage}
        )
