"""Queries over a whole graph, and what is not known of one that is too large for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from kgqa.cache import Cache
from kgqa.errors import PartialResult, StoreTimeout
from kgqa.graph.store import Rows

SLOW_SECONDS = 20.0
TRIED_AGAIN_SECONDS = 24 * 3600.0
"""When a query that was given up after `SLOW_SECONDS` or more is tried again: the server may have been busy."""


class WholeGraph:
    """Asks for tables of a whole graph, and notes what cannot be had.

    Args:
        select: renders a template of queries/ with values and runs it.
        may_scan: whether queries that look at every triple are tried; asked before each.
        sign: the file that says that one of them was too much, for other processes; None where nothing is kept.
        cache: writes it.

    Attributes:
        notes: what is not known, in sentences, and the template that could not be run.
    """

    def __init__(
        self,
        select: Callable[..., Rows],
        *,
        may_scan: Callable[[], bool],
        sign: Callable[[], Path | None],
        cache: Cache | None,
    ) -> None:
        self.notes: dict[str, str] = {}
        self._select = select
        self._may_scan = may_scan
        self._sign = sign
        self._cache = cache
        self._too_much = False

    def ask(self, name: str, *, note: str, **values) -> Rows | None:
        """The rows, or None and a note where there are too many or it takes too long."""
        try:
            return self._select(name, **values)
        except (StoreTimeout, PartialResult):
            self.notes[note] = name
            return None

    def scan(self, name: str, *, note: str, **values) -> Rows | None:
        """As `ask`, for a query that looks at every triple. Where one was too much, no other is tried: in this process,
        and for a day in others."""
        if self._too_much or not self._may_scan() or self._was_too_much():
            self.notes[note] = name
            return None
        started = time.monotonic()
        rows = self.ask(name, note=note, **values)
        if rows is None:
            self._too_much = True
            # what fails at once may well be tried again: nobody waits for it, or somebody was in a hurry
            slow = time.monotonic() - started >= SLOW_SECONDS
            if slow and self._cache and (sign := self._sign()):
                self._cache.write_text(sign, name)
        return rows

    def _was_too_much(self) -> bool:
        sign = self._sign()
        try:
            return sign is not None and time.time() - sign.stat().st_mtime < TRIED_AGAIN_SECONDS
        except OSError:
            return False
