"""The progress bar and the counts that `kgqa freebase` shows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tqdm import tqdm

from kgqa.cli.options import verbosity
from kgqa.virtuoso.freebase.cleaning import CleaningProgress
from kgqa.virtuoso.freebase.dump.tally import Tally
from kgqa.virtuoso.freebase.loading import FreebaseProgress
from kgqa.words import clean


class DumpBar:
    """A progress bar over the bytes of the dump, with rate and remaining time, shown only on a terminal."""

    def __init__(self, dump: Path) -> None:
        self._total = dump.stat().st_size if dump.is_file() else None
        self._bar: Any = None

    def show_cleaning(self, progress: CleaningProgress) -> None:
        """Show the progress of `clean_dump`."""
        self._show(progress.bytes_read, f"cleaning group {progress.group + 1}")

    def show_loading(self, progress: FreebaseProgress) -> None:
        """Show the progress of `load_dump`."""
        activity = {
            "waiting": "waiting until the server ends an earlier load",
            "cleaning": f"cleaning group {progress.groups_done + 1} and later",
            "loading": f"loading group {progress.groups_done + 1}",
            "indexing": "indexing names",
        }[progress.stage]
        self._show(progress.bytes_read, f"{activity}; {progress.groups_done} on disk")

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _show(self, bytes_read: int, text: str) -> None:
        if verbosity() < 0:
            return
        if self._bar is None:
            # the rate leaves out bytes that were read before an interruption of the load
            self._bar = tqdm(
                total=self._total, initial=bytes_read, unit="B", unit_scale=True, disable=None, file=sys.stderr
            )
        self._bar.set_description(text, refresh=False)
        self._bar.update(max(0, bytes_read - self._bar.n))


def print_tally(tally: Tally) -> None:
    """Print the counts of kept, repaired and dropped lines, with one example per reason."""
    share = 100 * tally.kept / tally.lines if tally.lines else 0
    print(f"{tally.lines:,} lines: {tally.kept:,} kept ({share:.1f}%), {tally.lines - tally.kept:,} dropped.")
    data = tally.as_json()
    for repair, count in data["repaired"].items():
        print(f"  {count:>14,}  repaired: {repair}")
    for reason, count in data["dropped"].items():
        print(f"  {count:>14,}  dropped: {reason}")
        for example in data["examples"].get(reason, [])[:1]:
            number = f"line {example['line']:,}: " if example["line"] else ""
            print(f"                    {number}{clean(example['text'])[:100]}")
