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

from kgqa.errors import StoreTimeout
from kgqa.graph.names.interface import MAX_NAMESAKES, MAX_SEARCH_CHARS, MAX_SEARCH_WORDS, LooseMatch, NameMatch
from kgqa.graph.names.name_reader import IndexedGraph, Limit, Name, background_limit, read_names
from kgqa.graph.names.spellings import spellings
from kgqa.model import Entity
from kgqa.trace import BudgetExhausted
from kgqa.words import clean, normalise

VERSION = 3
FILE = f"names-{VERSION}.sqlite"
ATTEMPTS = 2
BATCH = 500
LAST_CHARACTER = "\U0010ffff"
CHECK_STEPS = 1_000
"""The time limit is checked each time SQLite has run this many instructions (some dozens of microseconds)."""


class SqliteNames:
    """An index of names (see `Names`) in a SQLite file or in memory.

    Attributes:
        note: a message to the user if the index could not be cached, with the reason and what to do; else empty.
    """

    note = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._is_copy = False
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
        with self._lock:
            row = self._connection.execute("SELECT kind FROM names LIMIT 1").fetchone()
        return row is not None and row[0] == "iri"

    @classmethod
    def open(cls, graph: IndexedGraph, *, limit: Limit = background_limit) -> SqliteNames:
        """Open the index of a graph from the cache, or build the index; in memory if the cache is not writable.

        Args:
            limit: time limit of each query, and of building the index.

        Raises:
            StoreError: the names cannot be read. BudgetExhausted: the question that needs the index has no time left.
        """
        folder = graph.folder
        file = folder / FILE if folder else None
        if file and file.is_file():
            try:
                return cls(_read_only(file))
            except sqlite3.Error:
                _delete(file)  # damaged
        problem: Exception | None = None
        # a second attempt helps if another process cleared the cache during the first
        for _ in range(ATTEMPTS):
            if file is None or not _can_write(file):
                break
            try:
                return cls._build(graph, limit, file)
            except (sqlite3.Error, OSError) as error:
                problem = error
                if file.parent.is_dir():
                    break
        index = cls._build(graph, limit, None)
        if problem:
            index.note = (
                f"The index of names could not be written to {clean(str(folder))} ({clean(str(problem))[:200]}), so "
                "kgqa rebuilds it at each start. Free disk space there, or set cache.folder to another folder."
            )
        return index

    @classmethod
    def _build(cls, graph: IndexedGraph, limit: Limit, file: Path | None) -> SqliteNames:
        graphs = [entity.iri for entity in graph.view]
        version = graph.store.version_of(graphs)
        names = read_names(graph.store, graph.schema, graph.view, limit=limit)
        if file is None:
            connection = sqlite3.connect(":memory:", check_same_thread=False)
            connection.execute("PRAGMA temp_store=MEMORY")
        else:
            temporary = _temporary(file)
            _delete(temporary)
            connection = sqlite3.connect(temporary, check_same_thread=False)
        try:
            with _time_limit(connection, limit, graph.store.location):
                _fill_tables(connection, names)
            # names that were read during an edit are not those of the cache folder's fingerprint
            if file is not None and graph.store.version_of(graphs) == version:
                # if another process cleared the cache, the file is gone but can be read while it is open
                with suppress(FileNotFoundError):
                    os.replace(temporary, file)
            return cls(connection)
        except BaseException:
            connection.close()
            raise
        finally:
            if file is not None:
                _delete(temporary)

    def within(self, limit: Limit) -> SqliteNames:
        return self

    def for_text(self, text: str) -> SqliteNames:
        return self

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def follow(self, added: Sequence[Name], removed: Sequence[Name]) -> bool:
        """Add and remove names; return False if the index must be built anew instead.

        The first change is made on a copy, because other processes use the file in the cache.
        """
        with self._lock:
            try:
                if not self._is_copy:
                    copy = sqlite3.connect("", check_same_thread=False)  # on disk, and nowhere after its use
                    copy.execute("PRAGMA journal_mode=MEMORY")
                    self._connection.backup(copy)
                    self._connection, self._is_copy = copy, True
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

    def save(self, folder: Path) -> None:
        """Write the index into a cache folder that has none; do nothing if the folder is not writable."""
        file = folder / FILE
        if file.is_file() or not _can_write(file):
            return
        temporary = _temporary(file)
        try:
            with closing(sqlite3.connect(temporary)) as copy:
                copy.execute("PRAGMA synchronous=OFF")
                with self._lock:
                    self._connection.backup(copy)
            os.replace(temporary, file)
        except (sqlite3.Error, OSError):
            _delete(temporary)

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        found: dict[str, dict[str, NameMatch]] = {}
        with self._lock:
            for start in range(0, len(texts), BATCH):
                batch = list(texts[start : start + BATCH])
                placeholders = ",".join("?" * len(batch))
                rows = self._connection.execute(
                    f"SELECT norm, iri, name, kind FROM names WHERE norm IN ({placeholders}) "
                    "ORDER BY kind = 'alias', iri, name",
                    batch,
                )
                for norm, iri, name, kind in rows:
                    found.setdefault(norm, {}).setdefault(iri, NameMatch(Entity(iri), name, kind, True))
        return {norm: list(matches.values())[:MAX_NAMESAKES] for norm, matches in found.items()}

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        found: dict[str, dict[str, LooseMatch]] = {}
        with self._lock:
            for start in range(0, len(texts), BATCH):
                batch = list(texts[start : start + BATCH])
                placeholders = ",".join("?" * len(batch))
                rows = self._connection.execute(
                    "SELECT k.key, k.how, n.iri, n.name, n.kind FROM keys k JOIN names n ON n.rowid = k.name "
                    f"WHERE k.key IN ({placeholders}) ORDER BY n.kind = 'alias', n.iri, n.name",
                    batch,
                )
                for key, how, iri, name, kind in rows:
                    match = LooseMatch(NameMatch(Entity(iri), name, kind, False), how)
                    found.setdefault(key, {}).setdefault(iri, match)
        return {key: list(matches.values())[:MAX_NAMESAKES] for key, matches in found.items()}

    def initials_with_prefix(self, prefix: str, *, limit: int = 50) -> list[NameMatch]:
        with self._lock:
            rows = self._connection.execute(
                "SELECT n.iri, n.name, n.kind FROM keys k JOIN names n ON n.rowid = k.name "
                "WHERE k.key > ? AND k.key < ? AND k.how = 'initials' "
                "ORDER BY length(k.key), n.iri, n.kind = 'alias', n.name LIMIT ?",
                (prefix, prefix + LAST_CHARACTER, limit),
            ).fetchall()
        return [NameMatch(Entity(iri), name, kind, False) for iri, name, kind in rows]

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        wanted = list(dict.fromkeys(words))[:BATCH]
        with self._lock:
            placeholders = ",".join("?" * len(wanted))
            rows = self._connection.execute(f"SELECT word, names FROM words WHERE word IN ({placeholders})", wanted)
            return dict(rows.fetchall())

    def similar_words(self, words: Sequence[str]) -> dict[str, dict[str, int]]:
        known = self.frequencies(words)
        return {
            word: self._words_with_prefix(word[: 4 if len(word) > 5 else 3], 500)
            | ({} if word in known else self._words_with_prefix(word[:1], 20_000))
            for word in words
        }

    def _words_with_prefix(self, prefix: str, limit: int) -> dict[str, int]:
        with self._lock:
            rows = self._connection.execute(
                "SELECT word, names FROM words WHERE word >= ? AND word < ? ORDER BY names DESC, word LIMIT ?",
                (prefix, prefix + LAST_CHARACTER, limit),
            )
            return dict(rows.fetchall())

    def containing(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        if not words:
            return []
        query = " OR ".join(f'"{word}"' for word in words[:MAX_SEARCH_WORDS])
        with self._lock:
            rows = self._connection.execute(
                "SELECT n.iri, n.name, n.kind FROM search JOIN names n ON n.rowid = search.rowid "
                "WHERE search MATCH ? ORDER BY bm25(search), n.kind = 'alias', n.iri, n.name LIMIT ?",
                (query, limit),
            ).fetchall()
        return [NameMatch(Entity(iri), name, kind, False) for iri, name, kind in rows]

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        found: dict[Entity, list[str]] = {entity: [] for entity in entities}
        wanted = [entity.iri for entity in found]
        with self._lock:
            for start in range(0, len(wanted), BATCH):
                batch = wanted[start : start + BATCH]
                rows = self._connection.execute(
                    f"SELECT iri, name FROM names WHERE iri IN ({','.join('?' * len(batch))}) "
                    "ORDER BY kind = 'alias', name",
                    batch,
                )
                for iri, name in rows:
                    if name not in found[Entity(iri)]:
                        found[Entity(iri)].append(name)
        return found

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        words = normalise(text[:MAX_SEARCH_CHARS]).split()[:MAX_SEARCH_WORDS]
        if not words:
            return []
        quoted = [f'"{word}"' for word in words]
        for query in (" ".join([*quoted[:-1], quoted[-1] + "*"]), " OR ".join(quoted)):
            with self._lock:
                rows = self._connection.execute(
                    "SELECT n.iri, n.name, n.kind, n.norm = ? AS same "
                    "FROM search JOIN names n ON n.rowid = search.rowid "
                    "WHERE search MATCH ? ORDER BY same DESC, bm25(search), n.kind = 'alias', n.iri, n.name LIMIT ?",
                    (" ".join(words), query, 10 * limit),
                ).fetchall()
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


def _read_only(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)


def _temporary(file: Path) -> Path:
    return file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")


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

    advice = f"Build the index beforehand, without a time limit: kgqa graph info --graph {clean(location)}"
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
