"""Progress bars and status lines, which are shown only on a terminal and without --quiet."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Self

from tqdm import tqdm

from kgqa.cli.options import verbosity
from kgqa.text.words import clean
from kgqa.trace import Event

_LINE = 100


def open_bar(**options: Any) -> Any:
    """Return a progress bar on standard error; `options` are those of tqdm."""
    return tqdm(file=sys.stderr, disable=True if verbosity() < 0 else None, **options)


class StageBar:
    """Shows a progress bar for one stage after another; `options` are those of tqdm."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._bar: Any = None
        self._stage = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, stage: str, done: int, total: int, text: str = "") -> None:
        """Show that `done` of `total` items in a stage are done; a total of 0 means that the total is unknown."""
        if self._bar is None or stage != self._stage:
            self.close()
            self._stage = stage
            # the rate leaves out items that were done before an interruption
            self._bar = open_bar(total=total or None, initial=done, desc=stage, **self._options)
        if text:
            self._bar.set_description(text)
        self._bar.update(max(0, done - self._bar.n))

    def close(self) -> None:
        """Remove the bar; the next call shows a new one."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class StatusLine:
    """Shows on one line what a method does; the line is removed at the end.

    Args:
        shown: whether to show it, on a terminal and without --quiet.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._shown = shown and verbosity() >= 0 and sys.stderr.isatty()
        self._bar: Any = None

    @property
    def listener(self) -> Callable[[Event], None] | None:
        """The function to call with each event of the question; None if nothing is shown."""
        return self._show if self._shown else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _show(self, event: Event) -> None:
        if text := clean(event.in_words()):
            if self._bar is None:
                # not `open_bar`: a conversation shows events of another thread, which has no options of the command
                self._bar = tqdm(file=sys.stderr, bar_format="{desc}", leave=False)
            self._bar.set_description_str(text[:_LINE])
