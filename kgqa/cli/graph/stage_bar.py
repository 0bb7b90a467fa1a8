"""A progress bar for work that has stages."""

from __future__ import annotations

import sys
from typing import Any

from tqdm import tqdm

from kgqa.cli.options import verbosity


class StageBar:
    """Shows a progress bar for one stage after another if stderr is a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._stage = ""

    def __enter__(self) -> StageBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that `done` of `total` items in a stage are done; a total of 0 means that the total is unknown."""
        if verbosity() < 0:
            return
        if stage != self._stage:
            self._close()
            self._stage = stage
            self._bar = tqdm(total=total or None, desc=stage, disable=None, file=sys.stderr, leave=False)
        self._bar.update(max(0, done - self._bar.n))

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
