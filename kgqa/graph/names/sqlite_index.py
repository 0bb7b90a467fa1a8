"""An index of names in SQLite, with its full-text search (FTS5).

The index is built from the triples with the schema's label and alias predicates, and cached under the fingerprint of
the graph. After edits of the graph, names are added to a copy of the index or removed from it, in this process only,
until the graph is published. A graph on a server may have its index on that server instead, see `server_names`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from kgqa.errors import StoreTimeout
from kgqa.graph.names.interface import MAX_NAMESAKES, MAX_SEARCH_CHARS, MAX_SEARCH_WORDS, LooseMatch, NameMatch
from kgqa.graph.names.name_reader import IndexedGraph, Limit, Name, background_limit, read_names
from kgqa.graph.names.spellings import spellings
from kgqa.model import Entity
from kgqa.text.hints import Command
from kgqa.text.words import clean, normalise
from kgqa.trace.trace import BudgetExhausted

VERSION = 3
FILE = f"names-{VERSION}.sqlite"
BATCH = 500
LAST_CHARACTER = "\U0010ffff"
CHECK_STEPS = 1_000
"""The time limit is checked each time SQLite has run this many instructions (some dozens of microseconds)."""


class SqliteNames:
    """An index of names (see `Names`) in a SQLite file or in memory.

    Args:
        is_own: whether no other process uses the file, so that names can be added and removed.

    Attributes:
        note: a message to the user if the index could not be cached, with the reason and what to do; else empty.
    """

    note = ""

    def __init__(self, connection: sqlite3.Connection, *, is_own: bool = False) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._is_own = is_own
        # the number of names with each number of words
        self._lengths = Counter(dict(connection.execute("SELECT words, COUNT(*) FROM names GROUP BY words")))
        self.labelled: int = connection.execute(
            "SELECT COUNT(DISTINCT iri) FROM names WHERE kind = 'label'"
        ).fetchone()[0]

    @property
    def count(self) -> int:
        return self._lengths.total()

    @property
    def longest(self) -> int:
        return max((+self._lengths).keys(), default=0)

    @property
    def of_iris(self) -> bool:
        """Whether the graph has no names, so that the index contains the words of IRIs instead."""
        return self._rows("SELECT kind FROM names LIMIT 1") == [("iri",)]

    @classmethod
    def open(cls, graph: IndexedGraph, *, limit: Limit = background_limit) -> SqliteNames:
        """Open the index of a graph from the cache, or build the index; in memory if the cache is not writable.

        Args:
            limit: time limit of each query, and of building the index.

        Raises:
            StoreError: the names cannot be read. BudgetExhausted: the question that needs the index has no time left.
        """
        folder = graph.folder
        if folder and (folder / FILE).is_file():
            try:
                file = (folder / FILE).absolute().as_uri()
                return cls(sqlite3.connect(f"{file}?mode=ro", uri=True, check_same_thread=False))
            except sqlite3.Error:
                _delete(folder / FILE)  # damaged
        graphs = [entity.iri for entity in graph.view]
        version = graph.store.version_of(graphs)
        try:
            index = cls._build(graph, limit, "")  # in a temporary file, which ends with the connection
        except sqlite3.Error:
            index = cls._build(graph, limit, ":memory:")
        # names that were read during an edit are not those of the cache folder's fingerprint
        if folder and graph.store.version_of(graphs) == version:
            index.note = index.save(folder)
        return index

    @classmethod
    def _build(cls, graph: IndexedGraph, limit: Limit, database: str) -> SqliteNames:
        connection = sqlite3.connect(database, check_same_thread=False)
        try:
            with _time_limit(connection, limit, graph.store.location):
                _fill_tables(connection, read_names(graph.store, graph.schema, graph.view, limit=limit))
            return cls(connection, is_own=True)
        except BaseException:
            connection.close()
            raise

    def within(self, limit: Limit) -> SqliteNames:
        return self

    def for_text(self, text: str) -> SqliteNames:
        return self

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def follow(self, added: Sequence[Name], removed: Sequence[Name]) -> bool:
        """Add and remove names; return False if the index must be rebuilt instead.

        The first change is made on a copy, because other processes use the file in the cache.
        """
        with self._lock:
            try:
                if not self._is_own:
                    copy = sqlite3.connect("", check_same_thread=False)  # on disk, and nowhere after its use
                    self._connection.backup(copy)
                    self._connection, self._is_own = copy, True
                self._connection.execute("PRAGMA journal_mode=MEMORY")  # all changes or none
                with self._connection:
                    for name in removed:
                        self._remove(*name)
                    for name in added:
                        self._add(*name)
            except sqlite3.Error:
                return False
        return self.count > 0  # without names, the index must contain the IRIs of the graph

    def _add(self, iri: str, name: str, kind: str) -> None:
        norm = normalise(name)
        if not norm:
            return
        self.labelled += kind == "label" and not self._has_label(iri)
        run = self._connection.execute
        row = run("INSERT INTO names VALUES (?, ?, ?, ?, ?)", (iri, name, kind, norm, _words(norm))).lastrowid
        run("INSERT INTO search(rowid, norm) VALUES (?, ?)", (row, norm))
        for key, how in spellings(name).items():
            run("INSERT INTO keys VALUES (?, ?, ?)", (key, row, how))
        for word in set(norm.split()):
            run("INSERT INTO words VALUES (?, 1) ON CONFLICT(word) DO UPDATE SET names = names + 1", (word,))
        self._lengths[_words(norm)] += 1

    def _remove(self, iri: str, name: str, kind: str) -> None:
        norm = normalise(name)
        run = self._connection.execute
        found = run("SELECT rowid FROM names WHERE iri = ? AND name = ? AND kind = ?", (iri, name, kind)).fetchone()
        if not found:  # a name without letters and digits
            return
        run("DELETE FROM names WHERE rowid = ?", found)
        run("INSERT INTO search(search, rowid, norm) VALUES ('delete', ?, ?)", (*found, norm))
        for key in spellings(name):
            run("DELETE FROM keys WHERE key = ? AND name = ?", (key, *found))
        for word in set(norm.split()):
            run("UPDATE words SET names = names - 1 WHERE word = ?", (word,))
            run("DELETE FROM words WHERE word = ? AND names < 1", (word,))
        self._lengths[_words(norm)] -= 1
        self.labelled -= kind == "label" and not self._has_label(iri)

    def _has_label(self, iri: str) -> bool:
        query = "SELECT 1 FROM names WHERE iri = ? AND kind = 'label' LIMIT 1"
        return self._connection.execute(query, (iri,)).fetchone() is not None

    def save(self, folder: Path) -> str:
        """Write the index into a cache folder that has none; do nothing if the folder is not writable.

        Returns:
            A message to the user if the index could not be written, with the reason and what to do; else "".
        """
        file = folder / FILE
        if file.is_file() or not _can_write(file):
            return ""
        temporary = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            with closing(sqlite3.connect(temporary)) as copy:
                copy.executescript("PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF;")
                with self._lock:
                    self._connection.backup(copy)
            os.replace(temporary, file)
            return ""
        except (sqlite3.Error, OSError) as problem:
            _delete(temporary)
            return (
                f"The index of names could not be written to {clean(str(folder))} ({clean(str(problem))[:200]}), so "
                "kgqa rebuilds it at each start. Free disk space there, or set cache.folder to another folder."
            )

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def _rows_of_each(self, query: str, values: Sequence[str]) -> Iterator[Any]:
        """Run a query for batches of values; its {} stands for the placeholders of a batch."""
        for start in range(0, len(values), BATCH):
            batch = values[start : start + BATCH]
            yield from self._rows(query.format(",".join("?" * len(batch))), batch)

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        found: dict[str, dict[str, NameMatch]] = {}
        query = "SELECT norm, iri, name, kind FROM names WHERE norm IN ({}) ORDER BY kind = 'alias', iri, name"
        for norm, iri, name, kind in self._rows_of_each(query, texts):
            found.setdefault(norm, {}).setdefault(iri, NameMatch(Entity(iri), name, kind, True))
        return {norm: list(matches.values())[:MAX_NAMESAKES] for norm, matches in found.items()}

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        found: dict[str, dict[str, LooseMatch]] = {}
        query = (
            "SELECT k.key, k.how, n.iri, n.name, n.kind FROM keys k JOIN names n ON n.rowid = k.name "
            "WHERE k.key IN ({}) ORDER BY n.kind = 'alias', n.iri, n.name"
        )
        for key, how, iri, name, kind in self._rows_of_each(query, texts):
            found.setdefault(key, {}).setdefault(iri, LooseMatch(NameMatch(Entity(iri), name, kind, False), how))
        return {key: list(matches.values())[:MAX_NAMESAKES] for key, matches in found.items()}

    def initials_with_prefix(self, prefix: str, *, limit: int = 50) -> list[NameMatch]:
        rows = self._rows(
            "SELECT n.iri, n.name, n.kind FROM keys k JOIN names n ON n.rowid = k.name "
            "WHERE k.key > ? AND k.key < ? AND k.how = 'initials' "
            "ORDER BY length(k.key), n.iri, n.kind = 'alias', n.name LIMIT ?",
            (prefix, prefix + LAST_CHARACTER, limit),
        )
        return [NameMatch(Entity(iri), name, kind, False) for iri, name, kind in rows]

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        wanted = list(dict.fromkeys(words))[:BATCH]
        return dict(self._rows_of_each("SELECT word, names FROM words WHERE word IN ({})", wanted))

    def similar_words(self, words: Sequence[str]) -> dict[str, dict[str, int]]:
        known = self.frequencies(words)
        return {
            word: self._words_with_prefix(word[: 4 if len(word) > 5 else 3], 500)
            | ({} if word in known else self._words_with_prefix(word[:1], 20_000))
            for word in words
        }

    def _words_with_prefix(self, prefix: str, limit: int) -> dict[str, int]:
        query = "SELECT word, names FROM words WHERE word >= ? AND word < ? ORDER BY names DESC, word LIMIT ?"
        return dict(self._rows(query, (prefix, prefix + LAST_CHARACTER, limit)))

    def containing(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        if not words:
            return []
        query = " OR ".join(f'"{word}"' for word in words[:MAX_SEARCH_WORDS])
        rows = self._rows(
            "SELECT n.iri, n.name, n.kind FROM search JOIN names n ON n.rowid = search.rowid "
            "WHERE search MATCH ? ORDER BY bm25(search), n.kind = 'alias', n.iri, n.name LIMIT ?",
            (query, limit),
        )
        return [NameMatch(Entity(iri), name, kind, False) for iri, name, kind in rows]

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        found: dict[Entity, dict[str, None]] = {entity: {} for entity in entities}
        query = "SELECT iri, name FROM names WHERE iri IN ({}) ORDER BY kind = 'alias', name"
        for iri, name in self._rows_of_each(query, [entity.iri for entity in found]):
            found[Entity(iri)][name] = None
        return {entity: list(names) for entity, names in found.items()}

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        words = normalise(text[:MAX_SEARCH_CHARS]).split()[:MAX_SEARCH_WORDS]
        if not words:
            return []
        quoted = [f'"{word}"' for word in words]
        for query in (" ".join([*quoted[:-1], quoted[-1] + "*"]), " OR ".join(quoted)):
            rows = self._rows(
                "SELECT n.iri, n.name, n.kind, n.norm = ? AS same FROM search JOIN names n ON n.rowid = search.rowid "
                "WHERE search MATCH ? ORDER BY same DESC, bm25(search), n.kind = 'alias', n.iri, n.name LIMIT ?",
                (" ".join(words), query, 10 * limit),
            )
            if rows:
                break
        best: dict[str, NameMatch] = {}
        for iri, name, kind, same in rows:
            best.setdefault(iri, NameMatch(Entity(iri), name, kind, bool(same)))
        return list(best.values())[:limit]


def _can_write(file: Path) -> bool:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(file.parent, os.W_OK)


def _words(norm: str) -> int:
    return norm.count(" ") + 1


def _delete(file: Path) -> None:
    with suppress(OSError):
        file.unlink(missing_ok=True)


@contextmanager
def _time_limit(connection: sqlite3.Connection, limit: Limit, location: str) -> Iterator[None]:
    """Stop building an index when the question that needs the index has no time left."""
    exhausted: list[BudgetExhausted] = []

    def check() -> int:
        try:
            limit()
        except BudgetExhausted as error:
            exhausted.append(error)
        return len(exhausted)

    info = Command("graph info", graph=clean(location))
    advice = f"Build the index beforehand, without a time limit: {info}"
    connection.set_progress_handler(check, CHECK_STEPS)
    try:
        yield
    except (BudgetExhausted, sqlite3.OperationalError) as error:
        if isinstance(error, sqlite3.OperationalError) and not exhausted:
            raise
        reason = exhausted[0] if exhausted else error
        raise BudgetExhausted(f"{reason}, while the index of names was being built. {advice}") from error
    except StoreTimeout as error:
        raise StoreTimeout(f"The names of {location} could not be read in time. {error} {advice}") from error
    finally:
        connection.set_progress_handler(None, 0)


def _fill_tables(connection: sqlite3.Connection, names: Iterator[Name]) -> None:
    # the tokenizer `ascii` splits normalised names only at spaces, whatever letters they have
    connection.executescript(
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
        "CREATE TABLE names (iri TEXT, name TEXT, kind TEXT, norm TEXT, words INTEGER);"
        "CREATE VIRTUAL TABLE search USING fts5(norm, content='names', tokenize='ascii');"
    )

    def rows() -> Iterator[tuple[str, str, str, str, int]]:
        for iri, name, kind in names:
            norm = normalise(name)
            if norm:
                yield iri, name, kind, norm, _words(norm)

    connection.executemany("INSERT INTO names VALUES (?, ?, ?, ?, ?)", rows())
    connection.executescript(
        "CREATE INDEX by_norm ON names(norm); CREATE INDEX by_iri ON names(iri);"
        "INSERT INTO search(rowid, norm) SELECT rowid, norm FROM names;"
        "CREATE TABLE keys (key TEXT, name INTEGER, how TEXT);"
        "CREATE TABLE words (word TEXT PRIMARY KEY, names INTEGER) WITHOUT ROWID;"
        "CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab('main', 'search', 'row');"
        "INSERT INTO words SELECT term, doc FROM temp.vocabulary; DROP TABLE temp.vocabulary;"
    )
    keys = (
        (key, number, how)
        for number, name in connection.execute("SELECT rowid, name FROM names")
        for key, how in spellings(name).items()
    )
    connection.executemany("INSERT INTO keys VALUES (?, ?, ?)", keys)
    connection.executescript("CREATE INDEX by_key ON keys(key);")
    connection.commit()
