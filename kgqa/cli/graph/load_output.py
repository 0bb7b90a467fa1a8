"""The progress bars and the report of `kgqa graph load`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from kgqa.answer_json import json_text
from kgqa.cli.options import verbosity
from kgqa.graph.store import LoadReport, Progress
from kgqa.model_json import to_json
from kgqa.words import clean


def print_report(report: LoadReport, target: str, schema: str, facts: dict[str, Any], as_json: bool) -> None:
    """Print the result of a load.

    Args:
        report: counts of lines and triples.
        target: the graph folder, or the graph on a server.
        schema: the title of the graph's schema.
        facts: additional entries for the JSON object.
        as_json: whether to print JSON.
    """
    if as_json:
        print(json_text({**to_json(report), **facts}, indent=2))
        return
    if report.triples is None:
        print(
            f"{report.lines:,} lines loaded in {report.seconds:.1f} s. "
            f"The number of triples in {target} is unknown, because counting took too long."
        )
    else:
        added = "An unknown number of" if report.added is None else f"{report.added:,}"
        print(
            f"{added} triples added from {report.lines:,} lines in {report.seconds:.1f} s; "
            f"{target} now has {report.triples:,}."
        )
    if report.notice:
        print(clean(report.notice))
    names = f" Names indexed: {facts['names']:,}." if "names" in facts else ""
    print(f"Schema: {schema}.{names} Fingerprint: {report.fingerprint or 'none'}")
    if report.malformed:
        print(f"{report.malformed:,} malformed lines were left out:")
        for example in report.examples[:5]:
            print(f"  {clean(example.file)}, line {example.line}: {clean(example.message)}")
        if report.malformed > 5:
            print("  ... (--json lists more)")


class LoadBars:
    """Progress bars over the bytes of the files, shown only on a terminal.

    A load into a server first checks all files (stage "reading"). Checking and loading each have their own bar.

    Args:
        files: the files to load; if empty, the total size is unknown.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._total = sum(file.stat().st_size for file in files if file.is_file())
        self._bar: Any = None
        self._stage = ""
        self._file = ""
        self._bytes_before = 0
        self._bytes_in_file = 0

    def __call__(self, progress: Progress) -> None:
        """Show the progress of a load."""
        if verbosity() < 0:
            return
        if self._stage == "reading" != progress.stage:
            self.close()
            self._file, self._bytes_before, self._bytes_in_file = "", 0, 0
        self._stage = progress.stage
        if progress.file != self._file:
            self._bytes_before += self._bytes_in_file
            self._file, self._bytes_in_file = progress.file, 0
        if self._bar is None:
            self._bar = tqdm(total=self._total or None, unit="B", unit_scale=True, disable=None, file=sys.stderr)
        if progress.stage == "finishing":
            self._bar.set_description("finishing")
            return
        self._bytes_in_file = progress.bytes_done
        self._bar.set_description(f"{progress.file[:30]}: {progress.lines:,} lines")
        self._bar.update(max(0, self._bytes_before + self._bytes_in_file - self._bar.n))

    def close(self) -> None:
        """Remove the progress bar; the next progress shows a new bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
