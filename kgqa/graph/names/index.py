"""An index of names and aliases: mentions to entities, and `kgqa graph search`. Here in SQLite's full-text search.

Built from the label and alias predicates of the schema, and kept in the cache by the graph's fingerprint. Graphs on a
server may have theirs there, see `remote_names`; both give the same matches in the same order.
"""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kgqa.errors import StoreTimeout
from kgqa.graph.names.reading import IndexedGraph, Limit, Name, no_question, read_names
from kgqa.model import Entity
from kgqa.trace import BudgetExhausted
from kgqa.words import clean, normalise

MAX_QUERY_CHARS = 1000
VERSION = 3
ATTEMPTS = 2
PROGRESS_STEPS = 1_000
"""Steps of SQLite's machine, some dozens of microseconds, after which the time is looked at while an index is made."""
MIN_SQUEEZED = 5
MAX_INITIALS = 5
MAX_NAMESAKES = 200
"""Entities that one text may lead to: in all of Freebase hundreds of thousands have some initials."""
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_SMALL_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "at",
        "by",
        "de",
        "del",
        "der",
        "des",
        "di",
        "du",
        "for",
        "from",
        "in",
        "la",
        "le",
        "of",
        "on",
        "or",
        "the",
        "to",
        "van",
        "von",
        "with",
    ]
)


@dataclass(frozen=True, slots=True)
class NameMatch:
    """An entity found by name. `kind` is `label` or `alias`; `exact`: the whole name equals the text."""

    entity: Entity
    name: str
    kind: str
    exact: bool


@dataclass(frozen=True, slots=True)
class LooseMatch:
    """A name that is almost a text. `how`: `article` (Bible for The Bible), `bracket` (Alien for Alien (film)),
    `comma` (Stockholm for Stockholm, Sweden), `squeezed` (superbowl for Super Bowl), `initials` (uk).
    """

    match: NameMatch
    how: str


def loose_keys(name: str) -> dict[str, str]:
    """What else a name may be written as, normalised, and how that differs from it; see `LooseMatch`."""
    norm = normalise(name)
    found: dict[str, str] = {}
    without_article = re.sub(r"^(?:the|an?) (?=.)", "", norm)
    bare = normalise(_BRACKETS.sub("", name))
    for key, how in (
        (without_article, "article"),
        (bare, "bracket"),
        (normalise(name.split(",")[0]) if "," in name else "", "comma"),
        (norm.replace(" ", "") if len(norm) > MIN_SQUEEZED else "", "squeezed"),
        (initials_of(norm), "initials"),
    ):
        if key and key != norm:
            found.setdefault(key, how)
    return found


def initials_of(norm: str) -> str:
    """The initials of a normalised name without its small words; empty for names of one word, or of very many."""
    words = [word for word in norm.split() if word not in _SMALL_WORDS]
    return "".join(word[0] for word in words) if 2 <= len(words) <= MAX_INITIALS else ""


class Names(Protocol):
    """Finds entities by name. Thread-safe.

    `count` is the number of names, `labelled` that of entities with a label, `longest` the most words in a name. Of
    matches that are equally good labels come before aliases, then entities by their IRIs.
    """

    count: int
    labelled: int
    longest: int

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        """For each normalised text, the first MAX_NAMESAKES entities whose normalised name or alias it is."""
        ...

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        """For each normalised text, the first MAX_NAMESAKES entities one of whose names it is but for a trifle, see
        `LooseMatch`.
        """
        ...

    def initials_from(self, beginning: str, *, limit: int = 50) -> list[NameMatch]:
        """Names whose initials begin so, the shortest first: `us` for United States of America."""
        ...

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        """In how many names each of these normalised words stands; those in none are left out."""
        ...

    def words_from(self, beginning: str, *, limit: int = 500) -> dict[str, int]:
        """Words of names that begin so, and in how many names each stands; the most frequent ones."""
        ...

    def holding(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        """Names that hold any of these normalised words, best first by BM25; an entity as often as its names do."""
        ...

    def names_of(self, entities: Sequence[Entity]) -> dict[Entity, list[str]]:
        """All labels and aliases of each of these entities, labels first."""
        ...

    def search(self, text: str, *, limit: int = 20) -> list[NameMatch]:
        """Entities whose name holds all words of `text`, the last one perhaps begun only; else any of the words.

        Best first: whole name equal, then BM25.
        """
        ...

    def within(self, limit: Limit) -> Names:
        """The same names for one question: each query to a server within `limit`."""
        ...

    def close(self) -> None:
        """Let go of files and memory."""
        ...


class NameIndex:
    """An index in a SQLite file, or in memory. See `Names`.

    Attributes:
        note: why it could not be kept in the cache, and what to do; empty where it could.
    """

    note = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self.count: int = connection.execute("SELECT COUNT(*) FROM names").fetchone()[0]
        self.labelled: int = connection.execute(
            "SELECT COUNT(DISTINCT iri) FROM names WHERE kind = 'label'"
        ).fetchone()[0]
        self.longest: int = connection.execute("SELECT COALESCE(MAX(words), 0) FROM names").fetchone()[0]

    @classmethod
    def open(cls, graph: IndexedGraph, *, limit: Limit = no_question) -> NameIndex:
        """The index of a graph: from the cache, or built now; in memory where the cache cannot keep it.

        Args:
            limit: of each query, and of building it.

        Raises:
            StoreError: the names cannot be read. BudgetExhausted: the question that needs it has no more time.
        """
        folder = graph.folder
        file = folder / f"names-{VERSION}.sqlite" if folder else None
        if file and file.is_file():
            try:
                return cls(_read_only(file))
            except sqlite3.Error:
                _remove(file)  # damaged: built anew
        problem: Exception | None = None
        # a second time where another process cleared the cache meanwhile
        for _ in range(ATTEMPTS):
            if file is None or not _can_write(file):
                break
            try:
                return cls._built(graph, limit, file)
            except (sqlite3.Error, OSError) as error:
                problem = error
                if file.parent.is_dir():
                    break
        index = cls._built(graph, limit, None)
        if problem:
            index.note = (
                f"The index of names could not be written to {clean(str(folder))} ({clean(str(problem))[:200]}): it is in "
                "memory, and made again the next time. Make room there, or choose another cache: cache.folder"
            )
        return index

    @classmethod
    def _built(cls, graph: IndexedGraph, limit: Limit, file: Path | None) -> NameIndex:
        names = read_names(graph.store, graph.schema, graph.view, limit=limit)
        if file is None:
            connection = sqlite3.connect(":memory:", check_same_thread=False)
            connection.execute("PRAGMA temp_store=MEMORY")
        else:
            temporary = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
            _remove(temporary)
            connection = sqlite3.connect(temporary, check_same_thread=False)
        try:
            with _stopping(connection, limit, graph.store.location):
                _fill(connection, names)
            if file is not None:
                try:
                    os.replace(temporary, file)
                except FileNotFoundError:
                    pass  # the cache was cleared meanwhile: what is open stays readable
            return cls(connection)
        except BaseException:
            connection.close()
            raise
        finally:
            if file is not None:
                _remove(temporary)

    def within(self, limit: Limit) -> NameIndex:
        return self

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def exact(self, texts: Sequence[str]) -> dict[str, list[NameMatch]]:
        found: dict[str, dict[str, NameMatch]] = {}
        with self._lock:
            for start in range(0, len(texts), 500):
                batch = list(texts[start : start + 500])
                marks = ",".join("?" * len(batch))
                rows = self._connection.execute(
                    f"SELECT norm, iri, name, kind FROM names WHERE norm IN ({marks}) "
                    "ORDER BY kind = 'alias', iri, name",
                    batch,
                )
                for norm, iri, name, kind in rows:
                    found.setdefault(norm, {}).setdefault(iri, NameMatch(Entity(iri), name, kind, True))
        return {norm: list(matches.values())[:MAX_NAMESAKES] for norm, matches in found.items()}

    def loose(self, texts: Sequence[str]) -> dict[str, list[LooseMatch]]:
        found: dict[str, dict[str, LooseMatch]] = {}
        with self._lock:
            for start in range(0, len(texts), 500):
                batch = list(texts[start : start + 500])
                marks = ",".join("?" * len(batch))
                rows = self._connection.execute(
                    "SELECT k.key, k.how, n.iri, n.name, n.kind FROM keys k JOIN names n ON n.rowid = k.name "
                    f"WHERE k.key IN ({marks}) ORDER BY n.kind = 'alias', n.iri, n.name",
                    batch,
                )
                for key, how, iri, name, kind in rows:
                    match = LooseMatch(NameMatch(Entity(iri), name, kind, False), how)
                    found.setdefault(key, {}).setdefault(iri, match)
        return {key: list(matches.values())[:MAX_NAMESAKES] for key, matches in found.items()}

    def initials_from(self, beginning: str, *, limit: int = 50) -> list[NameMatch]:
        with self._lock:
            rows = self._connection.execute(
                "SELECT n.iri, n.name, n.kind FROM keys k JOIN names n ON n.rowid = k.name "
                "WHERE k.key > ? AND k.key < ? AND k.how = 'initials' "
                "ORDER BY length(k.key), n.iri, n.kind = 'alias', n.name LIMIT ?",
                (beginning, beginning + "\U0010ffff", limit),
            ).fetchall()
        return [NameMatch(Entity(iri), name, kind, False) for iri, name, kind in rows]

    def frequencies(self, words: Sequence[str]) -> dict[str, int]:
        wanted = list(dict.fromkeys(words))[:500]
        with self._lock:
            marks = ",".join("?" * len(wanted))
            rows = self._connection.execute(f"SELECT word, names FROM words WHERE word IN ({marks})", wanted)
            return {word: names for word, names in rows}

    def words_from(self, beginning: str, *, limit: int = 500) -> dict[str, int]:
        with self._lock:
            rows = self._connection.execute(
                "SELECT word, names FROM words WHERE word >= ? AND word < ? ORDER BY names DESC, word LIMIT ?",
                (beginning, beginning + "\U0010ffff", limit),
            )
            return {word: names for word, names in rows}

    def holding(self, words: Sequence[str], *, limit: int = 50) -> list[NameMatch]:
        if not words:
            return []
        query = " OR ".join(f'"{word}"' for word in words[:32])
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
            for start in range(0, len(wanted), 500):
                batch = wanted[start : start + 500]
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
        words = normalise(text[:MAX_QUERY_CHARS]).split()[:32]
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


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError:
        pass


@contextmanager
def _stopping(connection: sqlite3.Connection, limit: Limit, place: str) -> Iterator[None]:
    """End the building of an index, between queries too, when the question that waits for it has no more time."""
    ended: list[BudgetExhausted] = []

    def look() -> int:
        try:
            limit()
        except BudgetExhausted as error:
            ended.append(error)
        return len(ended)

    advice = f"It can be made beforehand, without these limits: kgqa graph info --graph {clean(place)}"
    connection.set_progress_handler(look, PROGRESS_STEPS)
    try:
        yield
    except (BudgetExhausted, sqlite3.OperationalError) as error:
        if isinstance(error, sqlite3.OperationalError) and not ended:
            raise
        spent = ended[0] if ended else error
        raise BudgetExhausted(f"{spent}, while the index of names was made. {advice}") from error
    except StoreTimeout as error:
        raise StoreTimeout(f"The names of {place} could not be read in time. {error} {advice}") from error
    finally:
        connection.set_progress_handler(None, 0)


def _fill(connection: sqlite3.Connection, names: Iterator[Name]) -> None:
    # normalised words are split at blanks and nowhere else, whatever SQLite thinks of their letters
    connection.executescript(
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
        "CREATE TABLE names (iri TEXT, name TEXT, kind TEXT, norm TEXT, words INTEGER);"
        "CREATE VIRTUAL TABLE search USING fts5(norm, content='names', tokenize='ascii');"
    )

    def rows() -> Iterator[tuple[str, str, str, str, int]]:
        for iri, name, kind in names:
            norm = normalise(name)
            if norm:
                yield iri, name, kind, norm, norm.count(" ") + 1

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
        for key, how in loose_keys(name).items()
    )
    connection.executemany("INSERT INTO keys VALUES (?, ?, ?)", keys)
    connection.executescript("CREATE INDEX by_key ON keys(key);")
    connection.commit()
