"""Loads a dump of Freebase into a server of one's own: cleaned in groups of chunk files, one group being loaded while
the next one is cleaned, each noted when it is on disk, so that an interrupted load goes on with the first that is not.
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kgqa.cache import Cache
from kgqa.errors import KgqaError, LoadError, ServerError
from kgqa.graph.endpoint.options import EndpointOptions
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.endpoint.upload import target_graph
from kgqa.schema import bundled_schema
from kgqa.virtuoso.bulk import load_token
from kgqa.virtuoso.bulk.background import BackgroundLoad
from kgqa.virtuoso.bulk.load_journal import only_load
from kgqa.virtuoso.bulk.name_graph import index_graph
from kgqa.virtuoso.bulk.refused import refused_lines
from kgqa.virtuoso.freebase.cleaning import Advance, Cleaner, Group
from kgqa.virtuoso.freebase.dump.judge import OTHER_LANGUAGE
from kgqa.virtuoso.freebase.dump.rules import NOISE
from kgqa.virtuoso.freebase.dump.tally import Tally
from kgqa.virtuoso.freebase.journal import NAME, FreebaseJournal, LoadOptions, forget
from kgqa.virtuoso.server.server import Server
from kgqa.words import clean, sentence

REFUSED_BY_SERVER = "refused by the server"
# reasons that the user can choose not to drop lines for
CHOSEN = (NOISE, OTHER_LANGUAGE)
LOADERS = 2
POLL_SECONDS = 0.2
ORPHAN_SECONDS = 3600.0
INDEX_QUERY_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Step:
    """How far a load is: what is being done, bytes of the dump read from its beginning, groups that are on disk, lines
    judged of the group being cleaned.
    """

    stage: Literal["waiting", "cleaning", "loading", "indexing"]
    bytes_read: int
    groups_done: int
    lines: int = 0


@dataclass(frozen=True, slots=True)
class FreebaseReport:
    """What came of a load: the counts of all lines, the triples now in the graph, the names and aliases among them,
    and seconds by stage (`cleaning` and `loading` overlap) and in `total`.
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
    progress: Callable[[Step], None] | None = None,
) -> FreebaseReport:
    """Clean a dump, load it, and index its names.

    Args:
        dump: `<s> <p> <o> .` lines, as text or gzip.
        options: what to load; None for the defaults or, to resume, for what was begun.
        resume: go on with an interrupted load. restart: forget it and begin anew. Without either, an interrupted load
            is an error. What is in the graph already stays, and does no harm.
        workers: processes that clean; None for one a core, at most four.
        loaders: chunk files the server reads at the same time.
        progress: is called several times a second.

    Raises:
        LoadError: the dump cannot be read or is damaged, the disk is full, there is an interrupted load or none.
        ServerError: the server does not run, died, or refuses too much. In all cases what is noted stays loaded.
        KeyboardInterrupt: Ctrl-C, after the group that was being loaded; its argument says how to go on.
    """
    if server.status().state not in ("running", "loading"):
        raise ServerError(
            f"The server in {server.folder.path} does not run. Start it: kgqa virtuoso start{server.folder.option}"
        )
    with only_load(server.folder):
        journal = _begun(server, dump, options, resume, restart)
        _check_graph(server, journal.options.graph_iri)
        load = _Load(server, dump, journal, workers, loaders, progress or (lambda step: None))
        try:
            return load.run()
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_how_far(journal, server)) from None
        except KgqaError as error:
            if load.nothing_in and not (resume and journal.groups_done == 0):
                # there is nothing to go on with, and nothing is in the way of another attempt
                forget(server.folder)
                raise
            raise type(error)(f"{sentence(error)} {_how_far(journal, server)}") from error


def _check_graph(server: Server, graph_iri: str) -> None:
    """Refuse a graph that could not be asked about or belongs to the server, before hours go into it."""
    with EndpointStore(server.url, writable=graph_iri, profile="virtuoso") as store:
        target_graph(store)


def _begun(server: Server, dump: Path, options: LoadOptions | None, resume: bool, restart: bool) -> FreebaseJournal:
    journal = None if restart else FreebaseJournal.read(server.folder)
    if resume:
        if journal is None:
            raise LoadError(f"There is no interrupted load to go on with. Begin one: kgqa freebase load {dump}")
        journal.check(dump, options)
        load_token.check(server, journal.token, journal.groups_done)
        return journal
    if journal is not None:
        raise LoadError(
            f"A load of {journal.dump} was interrupted; {_done(journal)}. Go on with --resume, or begin anew with --restart."
        )
    return FreebaseJournal.begin(dump, options or LoadOptions())


def _done(journal: FreebaseJournal) -> str:
    groups = "1 group" if journal.groups_done == 1 else f"{journal.groups_done:,} groups"
    return f"{journal.tally.lines:,} of its lines are done ({groups})"


def _how_far(journal: FreebaseJournal, server: Server) -> str:
    if not journal.groups_done:
        return f"Nothing of it is in yet. Go on: kgqa freebase load {shlex.quote(journal.dump)} --resume{server.folder.option}"
    return (
        f"What was done is safe: {_done(journal)} and in <{journal.options.graph_iri}> for good. Go on: "
        f"kgqa freebase load {shlex.quote(journal.dump)} --resume{server.folder.option}"
    )


def _nothing_kept(dump: Path, tally: Tally) -> str:
    """What to say of a dump with not a line to load: most likely the file is something else."""
    if not tally.lines:
        return f"{dump} is empty. Fetch it again, or check the path."
    by_choice = sum(count for reason, count in tally.dropped.items() if reason.startswith(CHOSEN))
    if by_choice:
        return (
            f"Nothing of {dump} is left to load: {by_choice:,} of its {tally.lines:,} lines are noise or in other "
            f"languages. Keep more of it: --languages, --keep-noise"
        )
    _, first = min(example for shown in tally.examples.values() for example in shown)
    return (
        f"{dump} is no dump of Freebase: not one of its {tally.lines:,} lines is a triple. The first one is: "
        f"{clean(first)[:100]!r}. Fetch it again, or check the path."
    )


class _Load:
    """Carries out what a journal says is left to do."""

    def __init__(
        self,
        server: Server,
        dump: Path,
        journal: FreebaseJournal,
        workers: int | None,
        loaders: int,
        progress: Callable[[Step], None],
    ) -> None:
        self._server = server
        self._dump = dump
        self._journal = journal
        self._workers = workers
        self._loaders = loaders
        self._progress = progress
        self._folder = server.import_folder / NAME
        self._bytes_read = journal.place.byte if journal.place else 0
        self._under_way: _Loading | None = None
        self._sent = False

    @property
    def nothing_in(self) -> bool:
        """Whether neither this run nor an earlier one that was noted gave the server any line."""
        return not self._sent and self._journal.tally.kept == 0

    def run(self) -> FreebaseReport:
        begun = time.monotonic()
        self._wait_for_orphans()
        self._journal.save(self._server.folder)
        try:
            if self._journal.place is not None:
                self._load_groups()
        finally:
            self._spend("total", time.monotonic() - begun)
            self._journal.save(self._server.folder)
            shutil.rmtree(self._folder, ignore_errors=True)
        if self.nothing_in:
            raise LoadError(_nothing_kept(self._dump, self._journal.tally))
        report = self._index()
        with EndpointOptions().open(self._server.url, cache=Cache.default(), timeout=INDEX_QUERY_SECONDS) as store:
            store.invalidate()  # what kgqa has kept of the graph is of before
        forget(self._server.folder)
        load_token.forget(self._server, self._journal.token)
        return report

    def _wait_for_orphans(self) -> None:
        """A kgqa that was killed may have left the server loading: its chunk files must stay until that ends."""
        deadline = time.monotonic() + ORPHAN_SECONDS
        while self._server.status().state == "loading":
            if time.monotonic() > deadline:
                raise ServerError(
                    "The server is still loading what an earlier process gave it. Wait until that ends: kgqa virtuoso status"
                )
            self._tell("waiting")
            time.sleep(POLL_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _load_groups(self) -> None:
        journal = self._journal
        assert journal.place is not None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LoadError(f"{self._folder} cannot be made ({error.strerror}). Give room and permission.") from error
        cleaner = Cleaner(
            self._dump,
            journal.options.cleaning(),
            self._folder,
            journal.options.lines_per_chunk,
            workers=self._workers,
            first_group=journal.groups_done,
            place=journal.place,
        )
        number, begun = journal.groups_done, time.monotonic()
        try:
            with cleaner:
                cleaner.start(number)
                while True:
                    group = cleaner.wait(number, advance=self._advanced)
                    cleaned = time.monotonic()
                    self._settle()  # the files of the last group have to go before the next ones come
                    files = [file for file in group.files if file.stat().st_size]
                    self._sent = self._sent or bool(files)
                    load = BackgroundLoad(self._server, files, journal.options.graph_iri, loaders=self._loaders)
                    self._under_way = _Loading(group, load, cleaned - begun)
                    if group.place is None:
                        break
                    number, begun = number + 1, time.monotonic()
                    cleaner.start(number)
            self._settle()
        except BaseException:
            # what the server is at will soon be loaded; a second Ctrl-C does not wait for it
            self._settle()
            raise

    def _settle(self) -> None:
        """Wait for the group being loaded, note that it is on disk, and remove its files."""
        loading = self._under_way
        if loading is None:
            return
        self._tell("loading")
        while not loading.load.ended(POLL_SECONDS):
            self._tell("loading")
        self._under_way = None
        tally, journal, results = loading.group.tally, self._journal, loading.load.results()
        for result in results:
            if result.error is None:
                result.file.unlink()  # halves of the others are written next, and files are few
        for result in results:
            if result.error is not None:
                self._find_refused(result.file, tally)
        load_token.note(self._server, journal.token, loading.group.number + 1)
        journal.tally.add(tally)
        journal.groups_done, journal.place = loading.group.number + 1, loading.group.place
        self._spend("cleaning", loading.cleaning_seconds)
        self._spend("loading", loading.load.seconds)
        journal.save(self._server.folder)
        for file in loading.group.files:
            file.unlink(missing_ok=True)

    def _find_refused(self, file: Path, tally: Tally) -> None:
        """Find the lines of a file that the server refuses, and load the others."""
        for line, message in refused_lines(self._server, file, self._journal.options.graph_iri).items():
            tally.kept -= 1
            tally.drop(REFUSED_BY_SERVER)
            tally.show(REFUSED_BY_SERVER, 0, f"{message}: ".encode() + line.rstrip(b"\n"))

    def _index(self) -> FreebaseReport:
        self._tell("indexing")
        begun, schema, graph = time.monotonic(), bundled_schema("freebase"), self._journal.options.graph_iri
        with EndpointStore(self._server.url, graphs=(graph,), timeout=INDEX_QUERY_SECONDS) as store:
            names = index_graph(self._server, store, schema, graph)
        triples = self._count("G = iri_to_id(?, 0)", graph)
        self._spend("indexing", time.monotonic() - begun)
        self._spend("total", time.monotonic() - begun)
        return FreebaseReport(graph, self._journal.tally, triples, names, dict(self._journal.seconds))

    def _count(self, condition: str, *iris: str) -> int:
        return int(self._server.sql(f"select count(*) from DB.DBA.RDF_QUAD where {condition}", iris)[0][0])

    def _spend(self, stage: str, seconds: float) -> None:
        self._journal.seconds[stage] = self._journal.seconds.get(stage, 0.0) + seconds

    def _advanced(self, advance: Advance) -> None:
        self._bytes_read = max(self._bytes_read, advance.bytes_read)
        self._tell("cleaning", advance.lines)

    def _tell(self, stage: Literal["waiting", "cleaning", "loading", "indexing"], lines: int = 0) -> None:
        self._progress(Step(stage, self._bytes_read, self._journal.groups_done, lines))


@dataclass
class _Loading:
    """A group that the server loads, and how long its cleaning took."""

    group: Group
    load: BackgroundLoad
    cleaning_seconds: float
