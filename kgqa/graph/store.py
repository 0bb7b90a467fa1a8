"""The `Store` protocol: what kgqa asks of anything that answers SPARQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
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

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


def count_value(value: Value | None) -> int:
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


def single_count(rows: Iterable[Row]) -> int:
    """The number in a result of one row and one column. Raises as `count_value` does."""
    found = list(rows)
    return count_value(found[0][0] if len(found) == 1 and len(found[0]) == 1 else None)


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

    @property
    def location(self) -> str:
        """Where it is, for people: a folder or an address."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of the triples: the same for the same triples in any order. Computed when it is first needed."""
        ...

    @property
    def version(self) -> str:
        """A text that changes with every update through this object. Never computed from triples."""
        ...

    @property
    def triples(self) -> int | None:
        """The number of triples; None where a server did not count them in time."""
        ...

    @property
    def concurrency(self) -> int:
        """How many queries one question may send at once."""
        ...

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
