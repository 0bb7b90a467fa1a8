"""The `Store` protocol: what kgqa asks of anything that answers SPARQL, and how to open one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from kgqa.errors import StoreUnavailable
from kgqa.model import Value
from kgqa.words import clean

Row = tuple[Value | None, ...]
DEFAULT_MAX_ROWS = 1_000_000
DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class Rows:
    """A whole result: the variables without `?`, and one tuple a row, None where a variable is unbound."""

    variables: tuple[str, ...]
    rows: list[Row]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)


def integer_of(value: Value | None) -> int:
    """The number that a COUNT gave.

    Raises:
        StoreUnavailable: it is no whole number.
    """
    text = getattr(value, "value", None)
    if text is None or not re.fullmatch(r"[0-9]{1,18}", text):
        said = clean(str(value if text is None else text))[:60]
        raise StoreUnavailable(
            f"The server answered a count with {said!r}, which is no whole number. See whether this is a SPARQL 1.1 server."
        )
    return int(text)


def only_count(rows: Iterable[Row]) -> int:
    """The number in a result of one row and one column. Raises as `integer_of` does."""
    found = list(rows)
    return integer_of(found[0][0] if len(found) == 1 and len(found[0]) == 1 else None)


@dataclass(frozen=True, slots=True)
class MalformedLine:
    """A line that is no RDF: where it stands (`line` counts from 1) and what the parser said of it."""

    file: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load did. `added` counts triples that were not there before, `triples` those there are now, both None where
    a server did not count in time; `malformed` the lines left out, of which `examples` gives the first few.
    """

    files: int
    lines: int
    added: int | None
    triples: int | None
    malformed: int
    examples: tuple[MalformedLine, ...]
    fingerprint: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a load is: bytes read of the current file, as on disk, and lines of RDF so far."""

    file: str
    bytes_done: int
    bytes_total: int
    lines: int
    stage: Literal["reading", "loading", "finishing"] = "loading"


OnError = Literal["fail", "skip"]


class Store(Protocol):
    """A SPARQL dataset. A result is whole or an exception: never cut short.

    `timeout` is in seconds, None for the store's own default. All methods may be called from several threads.
    """

    place: str
    """Where it is, for people: a folder or an address."""
    fingerprint: str
    """Changes whenever the triples change; the same triples give the same fingerprint in any order."""
    version: str
    """Changes whenever this open store's triples change. Unlike the fingerprint it is never computed."""
    triples: int | None
    """How many there are; None where a server did not count them in time."""
    concurrency: int
    """Queries that one question may send at once; 1 for a store that does not say."""

    def select(
        self, query: str, *, timeout: float | None = None, max_rows: int | None = None, fresh: bool = False
    ) -> Rows:
        """Run a SELECT query. `fresh`: past any cache of results.

        Raises:
            StoreTimeout, PartialResult, QueryRejected, StoreUnavailable, StoreCrashed: see `kgqa.errors`.
        """
        ...

    def ask(self, query: str, *, timeout: float | None = None, fresh: bool = False) -> bool:
        """Run an ASK query. Raises as `select` does."""
        ...

    def update(self, update: str, *, timeout: float | None = None) -> None:
        """Run a SPARQL update, where the store was opened for writing. Raises as `select` does."""
        ...

    def load(
        self,
        files: Iterable[str | Path],
        *,
        on_error: OnError = "fail",
        progress: Callable[[Progress], None] | None = None,
    ) -> LoadReport:
        """Add the triples of RDF files. What is there already stays as it is. Raises LoadError as well."""
        ...

    def notice(self) -> str | None:
        """What whoever asks this store should know, such as a load that was interrupted; None for nothing."""
        ...

    def close(self) -> None:
        """End workers and let go of locks. Closing twice is fine."""
        ...


def is_address(place: str | Path) -> bool:
    """Whether a place is a web address rather than a folder."""
    return str(place).strip().lower().startswith(("http://", "https://"))


def open_store(place: str | Path, *, writable: bool = False, create: bool = False) -> Store:
    """Open a store for a folder made by `kgqa graph load`, or for the address of a SPARQL endpoint.

    Args:
        writable: whether `update` is allowed on a folder; then no other process may have the store open.
        create: make an empty store where there is none.

    Raises:
        StoreUnavailable: nothing there that is a store, or no permission.
        StoreBusy: another process writes to it.
        SettingsError: no usable address, or a writable server, which `EndpointStore` opens with the graph's name.
    """
    from kgqa.errors import SettingsError
    from kgqa.graph.embedded.store import EmbeddedStore
    from kgqa.graph.endpoint.store import EndpointStore

    if is_address(place):
        if writable or create:
            raise SettingsError("On a server the graph to write to has to be named: EndpointStore(url, writable=IRI).")
        return EndpointStore(str(place))
    return EmbeddedStore(Path(place), writable=writable, create=create)
