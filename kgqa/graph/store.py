"""The `Store` protocol: the methods that kgqa needs from anything that answers SPARQL queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from kgqa.errors import StoreUnavailable
from kgqa.model import Triple, Value
from kgqa.text.words import clean

Row = tuple[Value | None, ...]
DEFAULT_MAX_ROWS = 1_000_000
DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Rows:
    """A complete query result: variable names without `?`, and one tuple of values per row (None: unbound variable)."""

    variables: tuple[str, ...]
    rows: list[Row]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


def count_value(value: Value | None) -> int:
    """Return the result of a COUNT as an integer.

    Raises:
        StoreUnavailable: the value is not a whole number.
    """
    text = getattr(value, "value", None)
    if text is None or not re.fullmatch(r"[0-9]{1,18}", text):
        found = clean(str(value if text is None else text))[:60]
        raise StoreUnavailable(
            f"The server answered a count with {found!r}, which is not a whole number.",
            "Check that the server supports SPARQL 1.1.",
        )
    return int(text)


def single_count(rows: Iterable[Row]) -> int:
    """Return the integer in a COUNT result of one row and one column. Raises the same errors as `count_value`."""
    found = list(rows)
    return count_value(found[0][0] if len(found) == 1 and len(found[0]) == 1 else None)


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """A line that is not valid RDF: the file name, the line number (from 1) and the parser's message."""

    file: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The result of a load.

    `added` is the number of new triples, `triples` the number of all triples after the load; both are None if a server
    did not count its triples in time. `malformed` is the number of malformed lines that were skipped; `examples` holds
    the first few of these lines. `notice` says what an earlier process left that was killed while it edited.
    `empty` holds the names of files without a triple; a load into a server does not tell them.
    """

    files: int
    lines: int
    added: int | None
    triples: int | None
    malformed: int
    examples: tuple[MalformedLine, ...]
    fingerprint: str
    seconds: float
    notice: str = ""
    empty: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a load: bytes read of the current file (as stored on disk), and lines of RDF read so far."""

    file: str
    bytes_done: int
    bytes_total: int
    lines: int
    stage: Literal["reading", "loading", "finishing"] = "loading"


OnError = Literal["fail", "skip"]


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a store can do and what its limits are. Code asks for these values, never for the class of a store.

    Attributes:
        updates: Whether `edit` may change the store.
        remote: Whether other programs may change the data and every query costs a round trip. Fingerprints of such a
            store are computed from counts, and a change that leaves all counts equal is not detected.
        full_text: The full-text search that queries of this store can use; "" if it has none.
        identity: Any text that distinguishes two stores with equal fingerprints in cache keys, such as the location.
        concurrency: How many queries one question may run concurrently.
        rate: How many queries may be sent per second; 0 for no limit.
        system_graphs: IRIs of named graphs that belong to the server itself. An unrestricted query reads these, too.
        row_cap: Number of rows at which results are cut off; None if they are not.
    """

    updates: bool = False
    remote: bool = False
    full_text: Literal["", "virtuoso"] = ""
    identity: str = ""
    concurrency: int = 1
    rate: float = 0.0
    system_graphs: tuple[str, ...] = ()
    row_cap: int | None = None


@dataclass(frozen=True, slots=True)
class EditReport:
    """What an edit changed in one graph.

    Attributes:
        graph: IRI of the named graph; "" for the default graph.
        added: The triples that were absent and have been added.
        removed: The triples that were there and have been removed.
    """

    graph: str
    added: tuple[Triple, ...]
    removed: tuple[Triple, ...]

    @property
    def triples(self) -> int:
        """The number of added and removed triples."""
        return len(self.added) + len(self.removed)


class Store(Protocol):
    """A SPARQL dataset. A query returns its complete result, or raises an exception.

    `graphs` are the IRIs of named graphs; without any, what is meant is the graph that an unrestricted query reads.
    `timeout` is in seconds; None means the store's default. All methods are thread-safe. Results contain no blank
    nodes, because no query can name one: `load` replaces them by IRIs, the same ones for a file that is loaded twice.
    """

    @property
    def location(self) -> str:
        """The folder or address of the store, for messages."""

    @property
    def capabilities(self) -> Capabilities:
        """What the store can do and what its limits are."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that are stored with the graph.

        `schema` is the name of a bundled schema or the path of a file, `walks` a walk rule, `mediator_hop` a value of
        explore.mediator_hop. Other keys are ignored.
        """
        return {}

    def triples_of(self, graphs: Sequence[str] = ()) -> int | None:
        """Return the number of triples of some graphs; None if a server did not count them in time."""

    def may_scan(self, graphs: Sequence[str] = ()) -> bool:
        """Return whether queries may read every triple of these graphs; False if that would take too long."""
        return True

    def fingerprint_of(self, graphs: Sequence[str] = ()) -> str:
        """Return a hash of the triples of some graphs, independent of their order; "" if it is not known in time.

        The fingerprint of a remote store is computed from counts of triples: a change that leaves all counts equal is
        not detected.
        """

    def version_of(self, graphs: Sequence[str] = ()) -> str:
        """Return a text that changes with every change to these graphs through this object; cheap to read.

        A version that ends in + says that queries may or may not see an edit that is being made.
        """

    def edits_since(self, version: str, graphs: Sequence[str] = ()) -> list[EditReport] | None:
        """Return the edits of some graphs after a version, oldest first.

        None if they are not known; everything derived from these graphs must then be computed again.
        """

    @property
    def has_free_slot(self) -> bool:
        """Whether a query would be run without waiting for others."""
        return True

    def responds(self, seconds: float) -> bool:
        """Return whether the store answers anything within `seconds`."""
        return True

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        """Run a SELECT query. With `fresh=True`, the result does not come from a cache.

        Raises:
            StoreTimeout, PartialResult, QueryRejected, StoreUnavailable, StoreCrashed: see `kgqa.errors`.
        """

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        """Run an ASK query. Raises the same errors as `select`."""

    def edit(self, graph: str, adds: Iterable[Triple], removes: Iterable[Triple] = ()) -> EditReport:
        """Remove and add triples of one graph, as one change: all of it or, after an error, nothing.

        Only triples that are there are removed, and only triples that are absent are added. A triple in both lists is
        there afterwards.

        Args:
            graph: IRI of the named graph; "" for the default graph.

        Raises:
            InvalidTerm: a term is not valid RDF, or is a blank node.
            QueryRejected: the store is open for reading only, or does not allow this change.
            StoreError: see `select`.
        """

    def publish(self) -> None:
        """Make all edits so far visible to other processes. Does nothing if edits are visible at once."""
        return

    def load(
        self,
        files: Iterable[str | Path],
        *,
        on_error: OnError = "fail",
        progress: Callable[[Progress], None] | None = None,
    ) -> LoadReport:
        """Add the triples of RDF files to the store. Raises LoadError, and the same errors as `select`."""

    def notice(self) -> str | None:
        """Return a warning for the user, such as an interrupted load; None if there is none."""
        return None

    def close(self) -> None:
        """Publish the edits, end worker processes and release locks. Closing twice does no harm."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.location}>"

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, exception: Any, /, *_: Any) -> None:
        """Close the store. After an exception, edits that have not been published are discarded if that is possible.

        `exception` is the type of the exception that ended the with-statement; None without one.
        """
        self.close()


def is_address(location: str | Path) -> bool:
    """Return whether a location is a web address rather than a folder."""
    return str(location).strip().lower().startswith(("http://", "https://"))
