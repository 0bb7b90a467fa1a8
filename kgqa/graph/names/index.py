"""The index of the names of a graph: finds entities by name, by near-identical names and by words of names.

The index is a SQLite database with full-text search (FTS5), built from the triples with the schema's label and alias
predicates, and cached under the fingerprint of the graph. After edits of the graph, names are added to a copy of the
index or removed from it, in this process only, until the graph is published.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from kgqa.errors import StoreTimeout
from kgqa.graph.editing import batches
from kgqa.graph.names.reading import Limit, Name, NameReader, background_limit, spellings
from kgqa.graph.tables.graph_reader import GraphReader
from kgqa.model import Entity
from kgqa.text.hints import Command
from kgqa.text.words import clean, normalise, sentence
from kgqa.trace.trace import BudgetExhausted

FILE = "names-5.sqlite"
MAX_SEARCH_CHARS = 1000
MAX_SEARCH_WORDS = 32
MAX_NAMESAKES = 200
"""The largest number of entities returned for one text.

In Freebase, some initials are shared by hundreds of thousands of entities."""
BATCH = 500
INSERTED = 2_000
"""Names per batch when an index is built; the time limit is checked before each batch."""
LAST_CHARACTER = "\U0010ffff"
# the tokenizer `ascii` splits normalised names only at spaces, whatever letters they have
TABLES = """
CREATE TABLE names (iri TEXT, name TEXT, kind TEXT, norm TEXT);
CREATE VIRTUAL TABLE search USING fts5(norm, content='names', tokenize='ascii');
CREATE TABLE keys (key TEXT, name INTEGER, how TEXT);
CREATE TABLE words (word TEXT PRIMARY KEY, names INTEGER) WITHOUT ROWID;
CREATE TABLE lengths (words INTEGER PRIMARY KEY, names INTEGER);
"""
_ADD = "INSERT INTO {} VALUES (?, ?) ON CONFLICT({}) DO UPDATE SET names = names + excluded.names"
INDEXES = "CREATE INDEX by_norm ON names(norm); CREATE INDEX by_iri ON names(iri); CREATE INDEX by_key ON keys(key);"


@dataclass(frozen=True, slots=True)
class NameMatch:
    """An entity found by name.

    Attributes:
        kind: `label` or `alias`.
        exact: whether the searched text equals the whole name.
        spellings: if the match is exact, all names of the entity that equal the searched text in normalised form.
    """

    entity: Entity
    name: str
    kind: str
    exact: bool
    spellings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LooseMatch:
    """A name that nearly equals a text, and how the two differ.

    `how` is the kind of difference: `article` (the text Bible finds The Bible), `bracket` (Alien finds Alien (film)),
    `comma` (Stockholm finds Stockholm, Sweden), `squeezed` (superbowl finds Super Bowl) or `initials` (uk finds United
    Kingdom).
    """

    match: NameMatch
    how: str


class NameIndex:
    """Finds entities by name. Thread-safe.

    Equally good matches are sorted: labels before aliases, then by the IRI of the entity.

    Args:
        connection: a database with the tables of the index.
        is_own: whether no other process uses the file, so that names can be added and removed.

    Attributes:
        note: a message to the user if the index could not be cached, with the reason and what to do; else empty.
        initials: whether initials of names are indexed.
        counted: whether the names were counted in time.
    """

    note = ""
    initials = True
    counted = True

    def __init__(self, connection: sqlite3.Connection, *, is_own: bool = True) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._is_own = is_own

    @classmethod
    def open(cls, graph: GraphReader, *, limit: Limit = background_limit) -> NameIndex:
        """Open the index of a graph from the cache, or build the index; in memory if the cache is not writable.

        Args:
            limit: time limit of each query, and of building the index.

        Raises:
            StoreError: the names cannot be read. BudgetExhausted: the question that needs the index has no time left.
        """
        folder = graph.folder
        if folder and (folder / FILE).is_file():
            with suppress(sqlite3.Error):
                uri = f"{(folder / FILE).absolute().as_uri()}?mode=ro"
                index = cls(sqlite3.connect(uri, uri=True, check_same_thread=False), is_own=False)
                index._rows("SELECT * FROM lengths")  # fails if the file is damaged
                return index
        version = graph.version()
        try:
            index = cls._build(graph, limit, "")  # in a temporary file, which ends with the connection
        except sqlite3.Error:
            index = cls._build(graph, limit, ":memory:")
        # names that were read during an edit are not those of the cache folder's fingerprint
        if folder and graph.version() == version:
            index.save(folder)
        return index

    @classmethod
    def _build(cls, graph: GraphReader, limit: Limit, database: str) -> NameIndex:
        index = cls(sqlite3.connect(database, check_same_thread=False))
        info = Command("graph info", graph=clean(graph.store.location))
        advice = f"Build the index beforehand, without a time limit: {info}"
        try:
            index._connection.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {TABLES}")
            index.insert(NameReader(graph.store, graph.schema, graph.view, limit).all(), limit)
            limit()
            index._connection.executescript(INDEXES)
            return index
        except (BudgetExhausted, StoreTimeout) as error:
            index.close()
            place = graph.store.location
            raise type(error)(f"The names of {place} could not be read in time: {sentence(error)} {advice}") from error

    def insert(self, names: Iterable[Name], limit: Limit = lambda: None) -> None:
        """Add names to the index; names without letters and digits are left out."""
        run = self._connection.executemany
        row = self._connection.execute("SELECT COALESCE(MAX(rowid), 0) FROM names").fetchone()[0] + 1
        usable = ((*name, norm) for name in names if (norm := normalise(name[1])))
        while batch := list(enumerate(islice(usable, INSERTED), row)):
            limit()
            row += len(batch)
            words = [norm.split() for _, (*_, norm) in batch]
            run(
                "INSERT INTO names(rowid, iri, name, kind, norm) VALUES (?, ?, ?, ?, ?)",
                ((number, *name) for number, name in batch),
            )
            run("INSERT INTO search(rowid, norm) VALUES (?, ?)", ((number, norm) for number, (*_, norm) in batch))
            run(
                "INSERT INTO keys VALUES (?, ?, ?)",
                (
                    (key, number, how)
                    for number, (_, name, *_) in batch
                    for key, how in spellings(name).items()
                    if self.initials or how != "initials"
                ),
            )
            counts = Counter(word for parts in words for word in set(parts))
            run(_ADD.format("words", "word"), counts.items())
            run(_ADD.format("lengths", "words"), Counter(map(len, words)).items())
        self._connection.commit()

    def follow(self, added: Sequence[Name], removed: Sequence[Name]) -> bool:
        """Add and remove names; return False if the index must be rebuilt instead, as one of IRIs must.

        The first change is made on a copy, because other processes use the file in the cache.
        """
        if self._rows("SELECT kind FROM names LIMIT 1") in ([], [("iri",)]):
            return False
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
                    self.insert(added)
            except sqlite3.Error:
                return False
        return self.count > 0  # without names, the index must contain the IRIs of the graph

    def _remove(self, iri: str, name: str, kind: str) -> None:
        run, norm = self._connection.execute, normalise(name)
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
        run("UPDATE lengths SET names = names - 1 WHERE words = ?", (len(norm.split()),))

    def save(self, folder: Path) -> None:
        """Write the index into a cache folder; do nothing if the folder is not writable."""
        file = folder / FILE
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            return
        temporary = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            with closing(sqlite3.connect(temporary)) as copy:
                copy.executescript("PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF;")
                with self._lock:
                    self._connection.backup(copy)
            os.replace(temporary, file)
        except (sqlite3.Error, OSError) as problem:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            self.note = (
                f"The index of names could not be written to {clean(str(folder))} ({clean(str(problem))[:200]}), so "
                "kgqa rebuilds it at each start. Free disk space there, or set cache.folder to another folder."
            )

    def close(self) -> None:
        """Release files and memory."""
        with self._lock:
            self._connection.close()

    def within(self, limit: Limit) -> NameIndex:
        """Return this index for one question, with `limit` as the time limit of each query to a server."""
        return self

    def for_text(self, text: str) -> NameIndex:
        """Return this index for the words of one text: a server also searches for the words as they are written."""
        return self

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, values).fetchall()

    def _rows_of_each(self, query: str, values: Sequence[str]) -> Iterator[Any]:
        """Run a query for batches of values; its {} stands for the placeholders of a batch."""
        for batch in batches(values, BATCH):
            yield from self._rows(query.format(",".join("?" * len(batch))), batch)

    # --- names that an index on a server reads before a lookup; this index has them all

    def _read_texts(self, texts: Sequence[str]) -> None: ...

    def _read_any(self, words: Sequence[str]) -> None: ...

    def _read_similar(self, words: Sequence[str]) -> None: ...

    def _read_beginning(self, words: Sequence[str]) -> None: ...

    # --- lookups

    @property
    def count(self) -> int:
        """The number of names."""
        return int(self._rows("SELECT COALESCE(SUM(names), 0) FROM lengths")[0][0])

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        """Find, for each normalised text, the entities with a label or alias whose normalised form equals the text.

        At most MAX_NAMESAKES entities are returned per text.
        """
        self._read_texts(texts)
        found: dict[str, dict[str, list[tuple[str, str]]]] = {}
        query = "SELECT norm, iri, name, kind FROM names WHERE norm IN ({}) ORDER BY kind = 'alias', iri, name"
        for norm, iri, name, kind in self._rows_of_each(query, texts):
            found.setdefault(norm, {}).setdefault(iri, []).append((name, kind))
        return {
            norm: [
                NameMatch(Entity(iri), *named[0], True, tuple(dict.fromkeys(name for name, _ in named)))
                for iri, named in islice(entities.items(), MAX_NAMESAKES)
            ]
            for norm, entities in found.items()
        }

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        """Find, for each normalised text, at most MAX_NAMESAKES entities with a near-identical name."""
        self._read_texts(texts)
        found: dict[str, dict[str, LooseMatch]] = {}
        query = (
            "SELECT k.key, k.how, n.iri, n.name, n.kind FROM keys k JOIN names n ON n.rowid = k.name "
            "WHERE k.key IN ({}) ORDER BY n.kind = 'alias', n.iri, n.name"
        )
        for key, how, iri, name, kind in self._rows_of_each(query, texts):
            found.setdefault(key, {}).setdefault(iri, LooseMatch(NameMatch(Entity(iri), name, kind, False), how))
        return {key: list(matches.values())[:MAX_NAMESAKES] for key, matches in found.items()}

    def initials_with_prefix(self, prefix: str, *, limit: int = 50) -> list[NameMatch]:
        """Find names whose initials begin with `prefix`, shortest first: `us` finds United States of America."""
        rows = self._rows(
            "SELECT n.iri, n.name, n.kind FROM keys k JOIN names n ON n.rowid = k.name "
            "WHERE k.key > ? AND k.key < ? AND k.how = 'initials' "
            "ORDER BY length(k.key), n.iri, n.kind = 'alias', n.name LIMIT ?",
            (prefix, prefix + LAST_CHARACTER, limit),
        )
        return [NameMatch(Entity(iri), name, kind, False) for iri, name, kind in rows]

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """Return the number of names that contain each of these normalised words; omit words that are in no name."""
        wanted = list(dict.fromkeys(words))[:BATCH]
        return dict(self._rows_of_each("SELECT word, names FROM words WHERE word IN ({})", wanted))

    def similar_words(self, words: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return, for each normalised word, words of names that may be another form of the word.

        For a word that no name contains, the result also has words that may be the correct spelling. Each word has the
        number of names that contain it, on a server at least some of them; frequent words come first.
        """
        self._read_similar(words)
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
        """Find names that contain any of these normalised words, best BM25 score first; an entity may occur twice."""
        if not words:
            return []
        words = words[:MAX_SEARCH_WORDS]
        self._read_any(words)
        query = " OR ".join(f'"{word}"' for word in words)
        rows = self._rows(
            "SELECT n.iri, n.name, n.kind FROM search JOIN names n ON n.rowid = search.rowid "
            "WHERE search MATCH ? ORDER BY bm25(search), n.kind = 'alias', n.iri, n.name LIMIT ?",
            (query, limit),
        )
        return [NameMatch(Entity(iri), name, kind, False) for iri, name, kind in rows]

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        """Return all labels and aliases of each of these entities, labels first."""
        found: dict[Entity, dict[str, None]] = {entity: {} for entity in entities}
        query = "SELECT iri, name FROM names WHERE iri IN ({}) ORDER BY kind = 'alias', name"
        for iri, name in self._rows_of_each(query, [entity.iri for entity in found]):
            found[Entity(iri)][name] = None
        return {entity: list(names) for entity, names in found.items()}

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        """Find entities whose name contains all words of a text; the last word may be the beginning of a longer one.

        If there are none, find entities whose name contains any of the words. Names that equal the whole text come
        first; the other names are sorted by BM25 score.
        """
        words = normalise(text[:MAX_SEARCH_CHARS]).split()[:MAX_SEARCH_WORDS]
        if not words:
            return []
        index = self.for_text(text[:MAX_SEARCH_CHARS])
        quoted = [f'"{word}"' for word in words]
        index._read_beginning(words)
        rows = index._matching(words, " ".join([*quoted[:-1], quoted[-1] + "*"]), limit)
        if not rows:
            index._read_any(words)
            rows = index._matching(words, " OR ".join(quoted), limit)
        best: dict[str, NameMatch] = {}
        for iri, name, kind, same in rows:
            best.setdefault(iri, NameMatch(Entity(iri), name, kind, bool(same)))
        return list(best.values())[:limit]

    def _matching(self, words: Sequence[str], query: str, limit: int) -> list[Any]:
        return self._rows(
            "SELECT n.iri, n.name, n.kind, n.norm = ? AS same FROM search JOIN names n ON n.rowid = search.rowid "
            "WHERE search MATCH ? ORDER BY same DESC, bm25(search), n.kind = 'alias', n.iri, n.name LIMIT ?",
            (" ".join(words), query, 10 * limit),
        )
