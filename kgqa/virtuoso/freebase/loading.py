"""Loads a Freebase dump into a Virtuoso server run by kgqa; an interrupted load can be resumed.

The dump is cleaned in groups of chunk files; while the server loads one group, kgqa cleans the next group.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kgqa.errors import LoadError
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore, open_endpoint
from kgqa.graph.endpoint.upload import target_graph
from kgqa.schema import bundled_schema
from kgqa.storage.cache import Cache
from kgqa.text.hints import Option
from kgqa.text.words import clean, counted
from kgqa.virtuoso.freebase.blocks import Tally
from kgqa.virtuoso.freebase.cleaning import LINES_PER_CHUNK, clean_groups
from kgqa.virtuoso.freebase.judge import Cleaning
from kgqa.virtuoso.graph_loading import index_graph
from kgqa.virtuoso.loads import (
    LOADERS,
    Journal,
    chunk_folder,
    load_groups,
    load_lock,
    open_journal,
)
from kgqa.virtuoso.server import Server

NAME = "freebase-load"
GRAPH_IRI = "http://freebase.com"
INDEX_QUERY_SECONDS = 600.0


class FreebaseProgress(NamedTuple):
    """Progress of loading a dump: the current activity, bytes of the dump that have been read, groups on disk."""

    stage: Literal["cleaning", "loading", "indexing"]
    bytes_read: int
    groups_done: int


@dataclass(frozen=True, slots=True)
class FreebaseReport:
    """The result of loading a dump.

    Attributes:
        tally: counts of all lines in the dump.
        triples: number of triples in the graph after the load.
        names: number of these triples that are names or aliases.
        seconds: duration of this run.
    """

    graph_iri: str
    tally: Tally
    triples: int
    names: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return {
            "graph_iri": self.graph_iri,
            "triples": self.triples,
            "names": self.names,
            **self.tally.as_json(),
            "seconds": round(self.seconds, 3),
        }


@dataclass(kw_only=True)
class FreebaseJournal(Journal):
    """The state of loading a dump: its path and size in bytes, the options, and the counts of the recorded groups."""

    dump: str
    size: int
    cleaning: Cleaning
    lines_per_chunk: int
    tally: Tally = field(default_factory=Tally)


def load_dump(
    server: Server,
    dump: Path,
    *,
    graph_iri: str = GRAPH_IRI,
    cleaning: Cleaning = Cleaning(),  # noqa: B008  immutable
    lines_per_chunk: int = LINES_PER_CHUNK,
    resume: bool = False,
    restart: bool = False,
    workers: int | None = None,
    loaders: int = LOADERS,
    progress: Callable[[FreebaseProgress], None] = lambda progress: None,
) -> FreebaseReport:
    """Clean a dump, load it, and index its names.

    Args:
        server: a running server.
        dump: file with lines `<s> <p> <o> .`, as text or gzip.
        graph_iri: the graph to load into.
        cleaning: which lines are loaded.
        lines_per_chunk: number of lines of the dump per chunk file; four chunk files are loaded at a time.
        resume: continue an interrupted load with its own graph and options; the three above are ignored.
        restart: discard an interrupted load, but keep its triples. Without `resume` and `restart`, an interrupted load
            is an error.
        workers: number of cleaning processes, at most four; None for one per core.
        loaders: number of chunk files that the server reads at the same time.
        progress: called several times per second.

    Raises:
        LoadError: the dump cannot be read or is damaged, or the disk is full; there is no load that `resume` could
            continue, or there is an interrupted load but neither `resume` nor `restart` is given.
        ServerError: the server does not run, crashed, or rejects a line. Recorded groups stay loaded.
        KeyboardInterrupt: Ctrl-C was pressed and the current group is loaded; the exception's argument tells the user
            how to resume.
    """
    started, bytes_read = time.monotonic(), 0
    server.sql("select 1")  # raises an error if the server does not run
    size = dump.stat().st_size if dump.exists() else 0
    with load_lock(server.folder) as lock, chunk_folder(server, NAME) as folder:
        journal = open_journal(server, NAME, FreebaseJournal, resume=resume, restart=restart) or FreebaseJournal(
            graph=graph_iri, dump=str(dump.absolute()), size=size, cleaning=cleaning, lines_per_chunk=lines_per_chunk
        )
        if size != journal.size:
            raise LoadError(
                f"{dump} is not the dump of the interrupted load.",
                f"Give {journal.dump} to resume, or discard the interrupted load: ",
                Option("restart", True),
            )
        # raises an error before a load of many hours if the graph IRI is invalid or used by the server itself
        with EndpointStore(server.url, writable=journal.graph, profile="virtuoso") as store:
            target_graph(store, store.writable)

        def report(stage: Literal["cleaning", "loading", "indexing"]) -> None:
            progress(FreebaseProgress(stage, bytes_read, journal.groups))

        def cleaned(_: int, position: int) -> None:
            nonlocal bytes_read
            bytes_read = position
            report("cleaning")

        load_groups(
            server,
            NAME,
            journal,
            clean_groups(
                dump,
                journal.cleaning,
                folder,
                lines_per_chunk=journal.lines_per_chunk,
                workers=workers,
                first_group=journal.groups,
                progress=cleaned,
            ),
            lock=lock,
            record=journal.tally.add,
            describe=lambda: (
                f"{counted(journal.tally.lines, 'line')} ({counted(journal.groups, 'group')}) are loaded into "
                f"<{journal.graph}>. Resume: kgqa freebase load {shlex.quote(journal.dump)} --resume"
                f"{server.folder.folder_option}"
            ),
            loaders=loaders,
            waiting=lambda files_done: report("loading"),
        )
    report("indexing")
    tally, graph = journal.tally, journal.graph
    if not tally.kept:
        examples = [example["text"] for shown in tally.examples.values() for example in shown]
        first = f"; one of them is: {clean(examples[0])[:100]!r}" if examples else ""
        raise LoadError(
            f"{dump} has no line to load among its {counted(tally.lines, 'line')}{first}.",
            "Check the path, or keep more lines: ",
            Option("languages", "all"),
            " ",
            Option("keep-noise", True),
        )
    with open_endpoint(server.url, EndpointOptions(), cache=Cache.default(), timeout=INDEX_QUERY_SECONDS) as store:
        store.invalidate()  # cached results are outdated after the load
        names = index_graph(server, store, bundled_schema("freebase"), graph)
    return FreebaseReport(graph, tally, server.triples_of(graph), names, time.monotonic() - started)
