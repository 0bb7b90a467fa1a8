"""Opens the index of names of a graph once for all questions, and changes it after edits of the graph."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.editing import ATTEMPTS
from kgqa.graph.names.index import NameIndex
from kgqa.graph.names.reading import Limit, Name, NameReader, background_limit
from kgqa.graph.names.server_index import FullText, ServerIndex, is_searchable
from kgqa.graph.store import Row
from kgqa.graph.tables.graph_reader import GraphReader
from kgqa.model import Entity, Literal, Triple
from kgqa.storage.atomic_files import replace_file
from kgqa.text.hints import Command, Hint, Option

LONGEST_WAIT = 600.0
UNCOUNTED_SECONDS = 120.0
"""Seconds after a failed count of names during which it is not repeated."""
CHOOSE_TOPIC = Hint(Command("ask", topic="ID"), client=Option("topic", "ID"))
COUNT_FILE = "names-count.json"
MAX_LOCAL_NAMES = 3_000_000
"""The largest number of names read from a server into a local index. So many take some minutes and about a gigabyte."""
CHECK_SECONDS = 20.0
CHECK_SHARE = 0.25
"""Time limits for the search for an index and for a count that is not needed: in seconds, and as a share of a query's
limit."""
SAMPLED, SEARCHED = 10, 5
"""To find out whether a server's full-text index has the names, SAMPLED names are read at each of some places, and the
SEARCHED longest of them are searched."""
FIRST_PLACES = (0, 1_000, 100_000)
PLACES = 8
"""Number of evenly spread places in a graph of at most MAX_LOCAL_NAMES names; a server reaches later ones slowly."""
MAX_PHRASE_WORDS = 8


class GraphNames:
    """Opens the index of names on first use, and changes it after edits of the graph. Thread-safe."""

    def __init__(self, graph: GraphReader) -> None:
        self._graph = graph
        # not the lock of the other tables, which questions need while the index is opened, which may take minutes
        self._opening = threading.Lock()
        self._known: tuple[str, NameIndex] | None = None
        self._opened = 0.0

    @property
    def note(self) -> str:
        """A message to the user about the index; empty if there is nothing to say."""
        return self._known[1].note if self._known else ""

    def within(self, limit: Limit = background_limit) -> NameIndex:
        """Return the index of names, and open it if necessary, within the time that `limit` allows.

        Raises:
            BudgetExhausted: the question has no more time.
            StoreError: the names cannot be read.
        """
        if (names := self._current()) is not None:
            return names
        # another question may be opening the index
        while not self._opening.acquire(timeout=min(limit() or LONGEST_WAIT, LONGEST_WAIT)):
            pass
        try:
            for _ in range(ATTEMPTS):
                if self._known:
                    self._follow(*self._known)
                if (current := self._current()) is not None:
                    return current
                version = self._graph.version()
                if self._known and self._known[0] != version:
                    names = self._known[1]  # edits go on, and a new index would not be newer
                    continue
                names, self._opened = open_names(self._graph, limit=limit), time.monotonic()
                if self._graph.version() == version:
                    self._known = (version, names)
                    break
            assert names is not None
            return names
        finally:
            self._opening.release()

    def save(self, folder: Path) -> None:
        """Write the index, if it is open, up to date and not on a server, into a folder that has none."""
        with self._opening:
            if self._known and self._known[0] == self._graph.version():
                self._known[1].save(folder)

    def close(self) -> None:
        """Close the index."""
        with self._opening:
            if self._known:
                self._known[1].close()
            self._known = None

    def _current(self) -> NameIndex | None:
        """Return the index if it is open and up to date, and its names were counted or the count failed recently."""
        if self._known is None or self._known[0] != self._graph.version().removesuffix("+"):
            return None
        recent = time.monotonic() - self._opened < UNCOUNTED_SECONDS
        return self._known[1] if self._known[1].counted or recent else None

    def _follow(self, version: str, names: NameIndex) -> None:
        """Change the open index by the edits since a version, or else forget it.

        A forgotten index is not closed, because other questions may be using it.
        """
        self._known = None
        changes = self._graph.changes_since(version)
        if changes and names.follow(self._names_in(changes.added), self._names_in(changes.removed)):
            self._known = (changes.version, names)

    def _names_in(self, triples: tuple[Triple, ...]) -> list[Name]:
        reader = NameReader(self._graph.store, self._graph.schema, self._graph.view)
        rows = [(each.subject, Entity(each.relation), each.object) for each in triples if each.relation in reader.kinds]
        return reader.names(rows)


def open_names(graph: GraphReader, *, limit: Limit = background_limit) -> NameIndex:
    """Open the index of names of a graph.

    A local graph has an index in SQLite. A graph on a server uses the first of these that is possible:

    1. the server's full-text index, if it contains the names;
    2. an index in SQLite, if the data has at most MAX_LOCAL_NAMES names;
    3. an index that only knows the names of given entities, and says how to build a full-text index.

    Args:
        limit: time limit of each query.

    Raises:
        StoreError: the names cannot be counted or read. BudgetExhausted: the question has no time left.
    """
    store, schema = graph.store, graph.schema
    if not store.capabilities.remote:
        return NameIndex.open(graph, limit=limit)
    reader, count = FullText(store, schema, graph.view, limit), None
    checking = reader.within(lambda: min(CHECK_SECONDS, CHECK_SHARE * (limit() or math.inf)))
    if store.capabilities.full_text == "virtuoso" and _is_indexed(checking, FIRST_PLACES):
        count = _count(graph, checking, optional=True)
        names = MAX_LOCAL_NAMES + 1 if count is None else count
        if names > MAX_LOCAL_NAMES or _is_indexed(checking, range(0, names, max(1, names // PLACES))):
            return ServerIndex(reader.within(lambda: None), names=names, languages=schema.languages)
    count = _count(graph, reader) if count is None else count
    if count is not None and count <= MAX_LOCAL_NAMES:
        try:
            return NameIndex.open(graph, limit=limit)
        except (StoreTimeout, PartialResult):
            if count:
                raise
            # a graph without names: the index would contain all its IRIs, however many there are
    many = "more names than could be counted in time" if count is None else f"{count:,} names"
    message = f"{store.location} has {many} but no full-text index of them."
    hints: tuple[Hint, ...] = (Hint("Build an index: kgqa virtuoso index"),)
    if count == 0:
        message = f"{store.location} has no triples with the label predicates of the schema {schema.name}."
        use = "Use a schema that lists the graph's label predicates under [names] label: "
        hints = (Hint(use, Command("ask", schema="FILE")),)
    missing = (message, *hints, ". Until then, choose the question's topic: ", CHOOSE_TOPIC)
    return ServerIndex(reader.within(lambda: None), names=count, missing=missing)


def _is_indexed(reader: FullText, places: Sequence[int]) -> bool:
    """Return whether the server's full-text index finds some names of each predicate of names, from some places.

    A server may have indexed a part of the names only: Virtuoso indexes literals of updates after a while, even without
    a rule for an index, but no literals that are loaded in bulk.
    """
    phrases: dict[Row, list[str]] = {}
    try:
        for *place, name in reader.select("names_sample", limit=SAMPLED, offsets=places):
            if isinstance(name, Literal):
                words = name.value.split()[:MAX_PHRASE_WORDS]
                if words and all(word.isalpha() and is_searchable(word) for word in words):
                    phrases.setdefault(tuple(place), []).append(" ".join(words))
        searched = [[phrase] for found in phrases.values() for phrase in sorted(found, key=len)[-SEARCHED:]]
        return bool(searched) and all(reader.counts(searched, limit=1))
    except (QueryRejected, StoreTimeout):
        return False


def _count(graph: GraphReader, reader: NameReader, *, optional: bool = False) -> int | None:
    """Count the names; return None if counting takes too long.

    The result is kept in the cache folder of the graph, which changes with its fingerprint.

    Args:
        optional: whether the caller can do without the count; a count that took too long is then not repeated.

    Raises:
        StoreError: the server sent no complete result for the count.
    """
    file = graph.folder / COUNT_FILE if graph.folder else None
    if file:
        with suppress(OSError, ValueError):
            known: int | None = json.loads(file.read_text())
            if known is not None or optional:
                return known
    count = None
    with suppress(StoreTimeout):
        count = reader.count()
    if file and (optional or count is not None):
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, [json.dumps(count).encode()], sync=False)
    return count
