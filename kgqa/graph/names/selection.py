"""Selects the index of names to use for a graph; `UnindexedNames` if none is possible."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any, NoReturn, cast

from kgqa.errors import NamesNotIndexed, PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.names.full_text import MAX_WORD_LETTERS, FullText
from kgqa.graph.names.interface import Names
from kgqa.graph.names.name_reader import EntityNameReader, IndexedGraph, Limit, background_limit, count_names
from kgqa.graph.names.server_names import ServerNames
from kgqa.graph.names.sqlite_index import SqliteNames
from kgqa.graph.store import Row, Store
from kgqa.model import Entity, Literal
from kgqa.schema import Schema
from kgqa.text.hints import Command, Hint, Option

CHOOSE_TOPIC = Hint(Command("ask", topic="ID"), client=Option("topic", "ID"))


class UnindexedNames:
    """Implements `Names` without an index: returns the names of an entity, but cannot find entities by name.

    Args:
        count: the number of names; None if counting took too long.

    Raises:
        NamesNotIndexed: raised by all methods that find entities by name.
    """

    longest = 0

    def __init__(self, store: Store, schema: Schema, view: Sequence[Entity], *, count: int | None) -> None:
        self.count = 1 if count is None else count
        self.counted = count is not None
        self._reader = EntityNameReader(store, schema, view)
        many = "more names than could be counted in time" if count is None else f"{count:,} names"
        self._message = f"{store.location} has {many} but no full-text index of them."
        self._hint = Hint("Build an index: kgqa virtuoso index")
        if count == 0:
            self._message = f"{store.location} has no triples with the label predicates of the schema {schema.name}."
            use = "Use a schema that lists the graph's label predicates under [names] label: "
            self._hint = Hint(use, Command("ask", schema="FILE"))

    def within(self, limit: Limit) -> UnindexedNames:
        bound = copy.copy(self)
        bound._reader = self._reader.within(limit)
        return bound

    def for_text(self, text: str) -> UnindexedNames:
        return self

    @property
    def labelled(self) -> int:
        return self._reader.labelled

    def _refuse(self, *values: Any, **options: Any) -> NoReturn:
        raise NamesNotIndexed(self._message, self._hint, ". Until then, choose the question's topic: ", CHOOSE_TOPIC)

    exact = loose = initials_with_prefix = frequencies = similar_words = containing = search = _refuse

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        return self._reader.names_of(entities)

    def close(self) -> None:
        """Do nothing: no files are open."""


MAX_LOCAL_NAMES = 3_000_000
"""The largest number of names read from a server into a local index. So many take some minutes and about a gigabyte."""
COUNT_MAX_AGE = 86_400.0
CHECK_SECONDS = 20.0
CHECK_SHARE = 0.25
"""Time limits for the search for an index and for a count that is not needed: in seconds, and as a share of a query's
limit."""
TOO_SLOW_MAX_AGE = 3_600.0
"""Seconds until a count that took too long is repeated."""
SAMPLED, SEARCHED = 10, 5
"""To find out whether a server's full-text index has the names, SAMPLED names are read at each of some places, and the
SEARCHED longest of them are searched."""
FIRST_PLACES = (0, 1_000, 100_000)
PLACES = 8
"""Number of evenly spread places in a graph of at most MAX_LOCAL_NAMES names; a server reaches later ones slowly."""
MAX_PHRASE_WORDS = 8


def open_names(graph: IndexedGraph, *, limit: Limit = background_limit) -> tuple[Names, str]:
    """Open the index of names of a graph.

    A graph in a folder has an index in SQLite. A graph on a server uses the first of these that is possible:

    1. the server's full-text index, if it contains the names;
    2. an index in SQLite, if the data has at most MAX_LOCAL_NAMES names;
    3. `UnindexedNames`, whose error messages tell the user how to build an index.

    Args:
        limit: time limit of each query.

    Returns:
        The index, and a note to show to the user; the note is empty if there is nothing to say.

    Raises:
        StoreError: the names cannot be counted or read. BudgetExhausted: the question has no time left.
    """
    store = graph.store
    if not store.capabilities.remote:
        index = SqliteNames.open(graph, limit=limit)
        return index, index.note
    endpoint = cast(EndpointStore, store)
    reader = EntityNameReader(store, graph.schema, graph.view)
    count = None
    checking = reader.within(_check_limit(limit))
    if store.capabilities.full_text == "virtuoso" and _is_indexed(checking, FIRST_PLACES):
        count = _count(endpoint, graph, _check_limit(limit), optional=True)
        known = MAX_LOCAL_NAMES + 1 if count is None else count
        if known > MAX_LOCAL_NAMES or _is_indexed(checking, range(0, known, max(1, known // PLACES))):
            return ServerNames(reader, count=known, languages=graph.schema.languages), ""
    count = _count(endpoint, graph, limit) if count is None else count
    if count is not None and count <= MAX_LOCAL_NAMES:
        try:
            index = SqliteNames.open(graph, limit=limit)
            return index, index.note
        except (StoreTimeout, PartialResult):
            if count:
                raise
            # a graph without names: the index would contain all its IRIs, however many there are
    return UnindexedNames(store, graph.schema, graph.view, count=count), ""


def _is_indexed(reader: EntityNameReader, places: Sequence[int]) -> bool:
    """Return whether the server's full-text index finds some names of each predicate of names, from some places.

    A server may have indexed a part of the names only: Virtuoso indexes literals of updates after a while, even without
    a rule for an index, but no literals that are loaded in bulk.
    """
    phrases: dict[Row, list[str]] = {}
    sample = {"predicates": reader.predicates, "limit": SAMPLED, "offsets": places}
    try:
        for *place, name in reader.select("sample", fresh=True, view=reader.view, **sample):
            if isinstance(name, Literal):
                words = name.value.split()[:MAX_PHRASE_WORDS]
                if words and all(word.isalpha() and len(word) <= MAX_WORD_LETTERS for word in words):
                    phrases.setdefault(tuple(place), []).append(" ".join(words))
        searched = [phrase for found in phrases.values() for phrase in sorted(found, key=len)[-SEARCHED:]]
        return bool(searched) and FullText(reader).finds_all(searched)
    except (QueryRejected, StoreTimeout):
        return False


def _check_limit(limit: Limit) -> Limit:
    return lambda: CHECK_SECONDS if (left := limit()) is None else min(CHECK_SECONDS, CHECK_SHARE * left)


def _count(store: EndpointStore, graph: IndexedGraph, limit: Limit, *, optional: bool = False) -> int | None:
    """Count the names; return None if counting takes too long.

    The count is saved, and counted again when the graph's fingerprint changes.

    Args:
        optional: whether the caller can do without the count.

    Raises:
        StoreError: the server sent no complete result for the count.
    """
    graphs = [entity.iri for entity in graph.view]
    fingerprint = store.fingerprint_of(graphs)
    if (known := _load_number(store, graphs, "names", fingerprint, COUNT_MAX_AGE)) is not None:
        return known
    if optional and _load_number(store, graphs, "names too slow", fingerprint, TOO_SLOW_MAX_AGE) is not None:
        return None
    try:
        count = count_names(store, graph.schema, graph.view, limit=limit)
    except StoreTimeout:
        if optional and fingerprint:
            store.save_fact("names too slow", graphs, json.dumps([fingerprint, 0]))
        return None
    except PartialResult as error:  # the message does not say that names were counted
        raise PartialResult(f"The names of {store.location} could not be counted. {error}") from error
    if fingerprint:
        store.save_fact("names", graphs, json.dumps([fingerprint, count]))
    return count


def _load_number(
    store: EndpointStore, graphs: Sequence[str], name: str, fingerprint: str, max_age: float
) -> int | None:
    """Load the number that was saved under `name` for this view of a server; None if the fingerprint differs."""
    try:
        saved_for, number = json.loads(store.load_fact(name, graphs, max_age=max_age) or "null")
        return int(number) if fingerprint and saved_for == fingerprint else None
    except (TypeError, ValueError):
        return None  # nothing is saved, or a different version of kgqa saved it in a different format
