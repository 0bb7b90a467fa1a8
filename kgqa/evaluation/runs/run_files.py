"""Reads the files of a run: run.json (plan, settings, versions), predictions.jsonl (records) and metrics.json.

Neither the data set nor the graph is needed for this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa.errors import KgqaError
from kgqa.evaluation.runs.records import Record, read_record
from kgqa.storage.untrusted_json import (
    check_keys,
    is_count,
    is_flag,
    is_number,
    is_object,
    is_text,
    is_whole,
    list_of,
    load_json,
    object_of,
    object_with,
    optional,
    shown,
)
from kgqa.text.display import html_of

MANIFEST = "run.json"
PREDICTIONS = "predictions.jsonl"
METRICS = "metrics.json"
LOCK = "run.lock"
BATCH = "begin.json"
"""File in a folder of several runs, with the run.json of each run that is not yet created."""
FORMAT = 1
MAX_LINE_BYTES = 64 << 20
MAX_MANIFEST_BYTES = 16 << 20
_NAME = re.compile(r"[^/\0]{1,255}")


class RunError(KgqaError):
    """A run cannot be created, read or resumed. The message gives the folder and what to do."""


@dataclass(frozen=True)
class Run:
    """A run on disk, finished or not."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """The method of the run."""
        return str(self.manifest.get("method", self.folder.name))

    @property
    def questions(self) -> int:
        """Number of questions in the run; 0 if run.json does not contain the number."""
        return int((self.manifest.get("dataset") or {}).get("questions", 0))

    def records(self) -> Iterator[Record]:
        """Yield the record of each question in predictions.jsonl; an incomplete last line is skipped.

        Raises:
            RunError: a complete line is not a record.
        """
        for number, line in read_lines(self.folder / PREDICTIONS):
            try:
                yield read_record(load_json(line))
            except ValueError as error:
                raise RunError(
                    f"{self.folder / PREDICTIONS}, line {number}: {error}.",
                    f"Remove the line, then ask the question of this line again: kgqa eval resume {self.folder}",
                ) from None

    def metrics(self) -> dict[str, Any]:
        """Read metrics.json; return an empty dict if the file does not exist.

        Raises:
            RunError: the file cannot be read.
        """
        path = self.folder / METRICS
        return _object(path) if path.is_file() else {}

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the metrics with their intervals."""
        return html_of(self)


def open_run(folder: str | Path) -> Run:
    """Open the run of a folder.

    Raises:
        RunError: the folder contains no run, or several runs.
    """
    folder = Path(folder)
    if not _is_file(folder / MANIFEST):
        inner = _inner(folder)
        if inner:
            raise RunError(
                f"{folder} contains several runs.",
                f"Choose one of these folders: {', '.join(str(each) for each in inner)}",
            )
        raise RunError(f"There is no run in {folder}.", f"Start a run: kgqa eval run --dataset FILE --out {folder}")
    return Run(folder, _checked(_object(folder / MANIFEST), folder / MANIFEST))


def open_runs(folder: str | Path) -> list[Run]:
    """Open the run of a folder, or all runs in its subfolders.

    Includes runs that a killed process had planned and not yet created.

    Raises:
        RunError: there is no run.
    """
    folder = Path(folder)
    if not _is_file(folder / MANIFEST) and (runs := [open_run(each) for each in _inner(folder)] + pending_runs(folder)):
        return sorted(runs, key=lambda run: run.folder)
    return [open_run(folder)]


def pending_runs(folder: Path) -> list[Run]:
    """Read the runs of a folder that a killed process had planned and not yet created.

    Raises:
        RunError: begin.json cannot be read.
    """
    path = folder / BATCH
    if not _is_file(path):
        return []
    data = _object(path)
    runs = data.get("runs")
    if data.get("format") != FORMAT or not isinstance(runs, dict) or not all(map(is_name, runs)):
        raise RunError(f"{path} was not written by kgqa.", "Remove this file.")
    found = [(folder / name, manifest) for name, manifest in runs.items()]
    return [Run(place, _checked(manifest, path)) for place, manifest in found if not (place / MANIFEST).exists()]


def is_name(name: str) -> bool:
    """Whether a text is a plain folder name."""
    return bool(_NAME.fullmatch(name)) and name not in (".", "..")


def _checked(manifest: Any, path: Path) -> dict[str, Any]:
    """Check the content of a run.json, and return it.

    Raises:
        RunError: the content is not valid, or has a different format version.
    """
    if not isinstance(manifest, dict):
        raise RunError(
            f"{path} was not written by kgqa: the file is not a JSON object.", "Start a new run: kgqa eval run"
        )
    if manifest.get("format") != FORMAT:
        raise RunError(
            f"{path} has format {shown(manifest.get('format'))}, but this version of kgqa reads format {FORMAT}.",
            "Use the version of kgqa that created the run",
        )
    try:
        check_keys(manifest, _MANIFEST)
    except ValueError as error:
        raise RunError(f"{path} was not written by kgqa: {error}.", "Start a new run: kgqa eval run") from None
    return manifest


_MANIFEST = {
    **dict.fromkeys(("id", "begun", "method", "shard", "working_folder"), is_text),
    "dataset": object_with(source=is_text, questions=is_count, digest=is_text, whole=is_text),
    "topics": lambda value: value in ("gold", "linked"),
    **dict.fromkeys(("sample", "concurrency"), optional(lambda value: is_count(value) and value > 0)),
    "seed": is_whole,
    "most_cost": optional(is_number),
    "forgotten_cost": is_number,
    "losses": is_flag,
    "rollouts": lambda value: is_count(value) and value > 0,
    "graph": optional(object_with(place=is_text, fingerprint=is_text, schema=is_text)),
    "models": optional(is_object),
    "embeddings": optional(is_text),
    "settings": is_object,
    "given": list_of(is_text),
    **dict.fromkeys(("secret", "prompts", "versions"), object_of(is_text)),
    "changed": list_of(is_object),
    "merged": list_of(optional(is_text)),
}
"""A check for each key of run.json, which `kgqa.evaluation.runs.manifest` writes."""


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError as error:
        raise RunError(f"{path.parent} cannot be read: {error.strerror}.") from error


def _inner(folder: Path) -> list[Path]:
    return sorted(each.parent for each in folder.glob(f"*/{MANIFEST}"))


def read_lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and content of each complete line of a file; yield nothing if the file does not exist.

    Raises:
        RunError: the file cannot be read, or a line is too long.
    """
    number = 0
    try:
        with open(file, "rb") as stream:
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise RunError(f"{file}, line {number}: longer than {MAX_LINE_BYTES:,} bytes.")
                if not line.endswith(b"\n"):
                    return  # another process is writing this line, or was killed
                if line.strip():
                    yield number, line
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"{file} cannot be read: {error.strerror}.") from error


def _object(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise RunError(f"{path} is larger than {MAX_MANIFEST_BYTES:,} bytes.")
        data = load_json(path.read_bytes())
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise RunError(f"{path} cannot be read: {error}.") from error
    if not isinstance(data, dict):
        raise RunError(f"{path} is not a JSON object.")
    return data
