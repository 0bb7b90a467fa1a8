"""Reads the files of a run: run.json (plan, settings, versions), predictions.jsonl (records) and metrics.json.

Neither the data set nor the graph is needed for this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from kgqa.errors import KgqaError
from kgqa.evaluation.runs.records import Record, read_record
from kgqa.storage.loading import MAX_NUMBER, Amount, Count, convert, load, parse_json
from kgqa.text.display import html_of
from kgqa.text.hints import Command

MANIFEST = "run.json"
PREDICTIONS = "predictions.jsonl"
METRICS = "metrics.json"
LOCK = "run.lock"
BATCH = "begin.json"
"""File in a folder of several runs, with the run.json of each run that is not yet created."""
FORMAT = 1
MAX_LINE_BYTES = 64 << 20
MAX_MANIFEST_BYTES = 16 << 20
_NAME = r"\A(?!\.{1,2}\Z)[^/\0]{1,255}\Z"
_FolderName = Annotated[str, Meta(pattern=_NAME)]
_Positive = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]


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
                yield read_record(parse_json(line))
            except ValueError as error:
                raise RunError(
                    f"{self.folder / PREDICTIONS}, line {number}: {error}.",
                    "Remove the line, then ask the question of this line again: ",
                    Command("eval resume", self.folder),
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
        raise RunError(
            f"There is no run in {folder}.", "Start a run: ", Command("eval run", dataset="FILE", out=folder)
        )
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
    batch = load(path, _Batch, error=RunError, hint="Remove this file.", limit=MAX_MANIFEST_BYTES)
    found = [(folder / name, manifest) for name, manifest in batch.runs.items()]
    return [Run(place, _checked(manifest, path)) for place, manifest in found if not (place / MANIFEST).exists()]


def is_name(name: str) -> bool:
    """Whether a text is a plain folder name."""
    return re.match(_NAME, name) is not None


def _checked(manifest: dict[str, Any], path: Path) -> dict[str, Any]:
    """Check the content of a run.json, and return it. Raises RunError."""
    try:
        convert(manifest, Manifest)
    except ValueError as error:
        raise RunError(f"{path} was not written by kgqa: {error}.", "Start a new run: ", Command("eval run")) from None
    return manifest


class _Dataset(msgspec.Struct, frozen=True):
    source: str = ""
    questions: Count = 0
    digest: str = ""
    whole: str = ""


class _Graph(msgspec.Struct, frozen=True):
    place: str = ""
    fingerprint: str = ""
    schema: str = ""


class Manifest(msgspec.Struct, frozen=True):
    """The keys of run.json, which `kgqa.evaluation.runs.manifest` writes."""

    format: Literal[1]
    id: str = ""
    begun: str = ""
    method: str = ""
    shard: str = ""
    working_folder: str = ""
    dataset: _Dataset = _Dataset()
    topics: Literal["gold", "linked"] = "linked"
    sample: _Positive | None = None
    concurrency: _Positive | None = None
    seed: int = 0
    most_cost: Amount | None = None
    forgotten_cost: Amount = 0.0
    losses: bool = False
    rollouts: _Positive = 1
    graph: _Graph | None = None
    models: dict[str, Any] | None = None
    embeddings: str | None = None
    settings: dict[str, Any] = {}
    given: tuple[str, ...] = ()
    secret: dict[str, str] = {}
    prompts: dict[str, str] = {}
    versions: dict[str, str] = {}
    changed: tuple[dict[str, Any], ...] = ()
    merged: tuple[str | None, ...] = ()


class _Batch(msgspec.Struct, frozen=True):
    """The content of begin.json: the run.json of each planned run by the name of its folder."""

    format: Literal[1]
    runs: dict[_FolderName, dict[str, Any]]


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
    return load(path, dict[str, Any], error=RunError, limit=MAX_MANIFEST_BYTES)
