"""Loads a Freebase dump into a Virtuoso server run by kgqa; an interrupted load can be resumed.

The dump is cleaned in groups of chunk files; while the server loads one group, kgqa cleans the next group. The journal
records each group that is on disk, and a resumed load begins with the first group that is not recorded.
"""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kgqa.errors import LoadError, ServerError
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.upload import target_graph
from kgqa.schema import bundled_schema
from kgqa.storage.cache import Cache
from kgqa.text.words import clean, counted
from kgqa.virtuoso.bulk.journal import load_lock, open_journal
from kgqa.virtuoso.bulk.loader import LOADERS, BulkLoad, Group, check_token, count_triples
from kgqa.virtuoso.bulk.name_graph import index_graph
from kgqa.virtuoso.freebase.cleaning import CleanedGroup, Cleaner
from kgqa.virtuoso.freebase.judge import OTHER_LANGUAGE
from kgqa.virtuoso.freebase.reader import identity
from kgqa.virtuoso.freebase.rules import NOISE
from kgqa.virtuoso.freebase.tally import Tally
from kgqa.virtuoso.freebase.journal import NAME, FreebaseJournal, LoadOptions
from kgqa.virtuoso.server.server import Server

REFUSED_BY_SERVER = "refused by the server"
# reasons for dropping a line that depend on the options of the load
OPTIONAL_DROP_REASONS = (NOISE, OTHER_LANGUAGE)
INDEX_QUERY_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class FreebaseProgress:
    """Progress of loading a dump.

    Attributes:
        stage: the current activity.
        bytes_read: number of bytes of the dump that have been read.
        groups_done: number of groups that are loaded and on disk.
    """

    stage: Literal["waiting", "cleaning", "loading", "indexing"]
    bytes_read: int
    groups_done: int


@dataclass(frozen=True, slots=True)
class FreebaseReport:
    """The result of loading a dump.

    Attributes:
        tally: counts of all lines in the dump.
        triples: number of triples in the graph after the load.
        names: number of these triples that are names or aliases.
        seconds: duration of each stage and of the whole load (`total`), in seconds; `cleaning` and `loading` overlap.
    """

    graph_iri: str
    tally: Tally
    triples: int
    names: int
    seconds: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        return {
            "graph_iri": self.graph_iri,
            "triples": self.triples,
            "names": self.names,
            **self.tally.as_json(),
            "seconds": {stage: round(seconds, 3) for stage, seconds in self.seconds.items()},
        }


def load_dump(
    server: Server,
    dump: Path,
    *,
    options: LoadOptions | None = None,
    resume: bool = False,
    restart: bool = False,
    workers: int | None = None,
    loaders: int = LOADERS,
    progress: Callable[[FreebaseProgress], None] | None = None,
) -> FreebaseReport:
    """Clean a dump, load it, and index its names.

    Args:
        server: a running server.
        dump: file with lines `<s> <p> <o> .`, as text or gzip.
        options: what to load; None for the defaults or, with `resume`, for the options of the interrupted load.
        resume: continue an interrupted load.
        restart: discard an interrupted load, but keep its triples. Without `resume` and `restart`, an interrupted load
            is an error.
        workers: number of cleaning processes, at most four; None for one per core.
        loaders: number of chunk files that the server reads at the same time.
        progress: called several times per second.

    Raises:
        LoadError: the dump cannot be read or is damaged, or the disk is full; there is no load that `resume` could
            continue, or there is an interrupted load but neither `resume` nor `restart` is given.
        ServerError: the server does not run, crashed, or rejects too many lines. Recorded groups stay loaded.
        KeyboardInterrupt: Ctrl-C was pressed and the current group is loaded; the exception's argument tells the user
            how to resume.
    """
    if server.status().state not in ("running", "loading"):
        raise ServerError(
            f"The server in {server.folder.path} is not running.",
            f"Start it: kgqa virtuoso start{server.folder.folder_option}",
        )
    with load_lock(server.folder):
        journal = open_journal(
            server.folder,
            NAME,
            FreebaseJournal,
            resume=resume,
            restart=restart,
            described=lambda journal: f"of {journal.dump} was interrupted after {_lines_done(journal)}",
            start=f"Start one: kgqa freebase load {dump}",
        )
        if journal is None:
            options = options or LoadOptions()
            journal = FreebaseJournal(str(dump.absolute()), identity(dump), options, options.cleaning().digest)
        else:
            journal.check(dump, options)
            check_token(server, journal.token, journal.groups_done)
        # raises an error before a load of many hours if the graph IRI is invalid or used by the server itself
        with EndpointStore(server.url, writable=journal.options.graph_iri, profile="virtuoso") as store:
            target_graph(store)
        return _DumpLoad(server, dump, journal, resume, workers, loaders, progress or (lambda step: None)).run()


def _lines_done(journal: FreebaseJournal) -> str:
    groups = "1 group" if journal.groups_done == 1 else f"{journal.groups_done:,} groups"
    return f"{counted(journal.tally.lines, 'line')} ({groups})"


def _no_lines_message(dump: Path, tally: Tally) -> str:
    """Return the error message for a dump without a line to load; most likely the file is not a dump."""
    if not tally.lines:
        return f"{dump} is empty. Download it again, or check the path."
    by_options = sum(count for reason, count in tally.dropped.items() if reason.startswith(OPTIONAL_DROP_REASONS))
    if by_options:
        return (
            f"{dump} has no line to load; noise or in other languages: {by_options:,} of "
            f"{counted(tally.lines, 'line')}. Keep more lines with --languages or --keep-noise."
        )
    first = min((example["line"], example["text"]) for shown in tally.examples.values() for example in shown)[1]
    return (
        f"{dump} is not a Freebase dump: none of its {counted(tally.lines, 'line')} is a triple. The first line is: "
        f"{clean(first)[:100]!r}. Download it again, or check the path."
    )


class _DumpLoad(BulkLoad[CleanedGroup, FreebaseReport]):
    """Loads the groups that a journal does not record as loaded, and indexes the names."""

    def __init__(
        self,
        server: Server,
        dump: Path,
        journal: FreebaseJournal,
        resumed: bool,
        workers: int | None,
        loaders: int,
        progress: Callable[[FreebaseProgress], None],
    ) -> None:
        super().__init__(server, NAME, journal.options.graph_iri, journal, loaders)
        self._dump = dump
        self._journal = journal
        self._resumed = resumed
        self._workers = workers
        self._progress = progress
        self._bytes_read = journal.place.byte if journal.place else 0
        self._sent = False
        self._since = time.monotonic()

    @property
    def _nothing_loaded(self) -> bool:
        """Whether no line has been sent to the server, in this run or in earlier recorded runs of this load."""
        return not self._sent and self._journal.tally.kept == 0

    def is_resumable(self) -> bool:
        # if nothing was loaded, the next attempt should need neither --resume nor --restart
        return not self._nothing_loaded or (self._resumed and self._journal.groups_done == 0)

    def progress_text(self) -> str:
        journal = self._journal
        command = f"kgqa freebase load {shlex.quote(journal.dump)} --resume{self.server.folder.folder_option}"
        if not journal.groups_done:
            return f"Nothing is loaded yet. Resume: {command}"
        return f"{_lines_done(journal)} are loaded into <{journal.options.graph_iri}>. Resume: {command}"

    def groups(self) -> Generator[Group[CleanedGroup]]:
        journal = self._journal
        if journal.place is None:
            return
        with Cleaner(
            self._dump,
            journal.options.cleaning(),
            self.folder,
            journal.options.lines_per_chunk,
            workers=self._workers,
            first_group=journal.groups_done,
            place=journal.place,
        ) as cleaner:
            for number in itertools.count(journal.groups_done):
                started = time.monotonic()
                cleaner.start(number)
                cleaned = cleaner.wait(number, progress=self._report_cleaning)
                self._add_seconds("cleaning", time.monotonic() - started)
                self._sent = self._sent or any(file.stat().st_size for file in cleaned.files)
                yield Group(list(cleaned.files), cleaned, number + 1)
                if cleaned.place is None:
                    return

    def waiting(self, group: Group[CleanedGroup] | None) -> None:
        self._report("loading" if group else "waiting")

    def loaded(self, group: Group[CleanedGroup]) -> None:
        tally = group.content.tally
        for line, message in (item for lines in group.rejected.values() for item in lines.items()):
            tally.add(Tally(kept=-1, dropped={REFUSED_BY_SERVER: 1}))
            tally.show(REFUSED_BY_SERVER, 0, f"{message}: ".encode() + line.rstrip(b"\n"))

    def recorded(self, group: Group[CleanedGroup]) -> None:
        journal = self._journal
        journal.tally.add(group.content.tally)
        journal.groups_done, journal.place = group.done, group.content.place
        self._add_seconds("loading", group.seconds)
        self._add_total()
        self.save()

    def finish(self) -> FreebaseReport:
        if self._nothing_loaded:
            raise LoadError(_no_lines_message(self._dump, self._journal.tally))
        self._report("indexing")
        started, schema, graph = time.monotonic(), bundled_schema("freebase"), self._journal.options.graph_iri
        with EndpointOptions().open(self.server.url, cache=Cache.default(), timeout=INDEX_QUERY_SECONDS) as store:
            store.invalidate()  # cached results are outdated after the load
            names = index_graph(self.server, store, schema, graph)
        triples = count_triples(self.server, graph)
        self._add_seconds("indexing", time.monotonic() - started)
        self._add_total()
        return FreebaseReport(graph, self._journal.tally, triples, names, dict(self._journal.seconds))

    def _add_seconds(self, stage: str, seconds: float) -> None:
        self._journal.seconds[stage] = self._journal.seconds.get(stage, 0.0) + seconds

    def _add_total(self) -> None:
        now = time.monotonic()
        self._add_seconds("total", now - self._since)
        self._since = now

    def _report_cleaning(self, group: int, bytes_read: int) -> None:
        self._bytes_read = max(self._bytes_read, bytes_read)
        self._report("cleaning")

    def _report(self, stage: Literal["waiting", "cleaning", "loading", "indexing"]) -> None:
        self._progress(FreebaseProgress(stage, self._bytes_read, self._journal.groups_done))
