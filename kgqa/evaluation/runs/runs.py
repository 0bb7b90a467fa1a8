"""Runs on disk: run.json says what was asked of whom and how, predictions.jsonl what became of every question,
metrics.json how right that is. Reading needs nothing else: neither the data set nor the graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgqa.errors import KgqaError
from kgqa.evaluation.runs.records import Record, read_record
from kgqa.untrusted_json import (
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

MANIFEST = "run.json"
PREDICTIONS = "predictions.jsonl"
METRICS = "metrics.json"
LOCK = "run.lock"
BATCH = "begin.json"
"""In a folder of several runs while they are begun: run.json of each of them."""
FORMAT = 1
MAX_LINE_BYTES = 64 << 20
MAX_MANIFEST_BYTES = 16 << 20
_NAME = re.compile(r"[^/\0]{1,255}")


class RunError(KgqaError):
    """A run cannot be begun, read or gone on with. The message names the folder and the next step."""


@dataclass(frozen=True)
class Run:
    """A run as it lies on disk, whether it is done or not."""

    folder: Path
    manifest: dict[str, Any]

    @property
    def name(self) -> str:
        """What tells it from the others of a folder: its method."""
        return str(self.manifest.get("method", self.folder.name))

    @property
    def questions(self) -> int:
        """How many questions it asks; 0 where run.json does not say."""
        count = (self.manifest.get("dataset") or {}).get("questions", 0)
        return count if isinstance(count, int) else 0

    def records(self) -> Iterator[Record]:
        """Every question that is done, one at a time. A last line that is not whole is left out.

        Raises:
            RunError: another line is no record.
        """
        for number, line in lines_of(self.folder / PREDICTIONS):
            try:
                yield read_record(load_json(line))
            except ValueError as error:
                raise RunError(
                    f"{self.folder / PREDICTIONS}, line {number}: {error}. Remove that line; "
                    f"kgqa eval resume {self.folder} asks its question again."
                ) from None

    def metrics(self) -> dict[str, Any]:
        """What metrics.json says; empty while there is none.

        Raises:
            RunError: it cannot be read.
        """
        path = self.folder / METRICS
        return _object(path) if path.is_file() else {}


def open_run(folder: str | Path) -> Run:
    """Raises RunError where there is no run of one method in this folder."""
    folder = Path(folder)
    if not _is_run(folder):
        inner = _inner(folder)
        if inner:
            raise RunError(f"{folder} has several runs: name one of {', '.join(str(each) for each in inner)}.")
        raise RunError(f"There is no run in {folder}. Make one: kgqa eval run --dataset FILE --out {folder}")
    return Run(folder, _checked(_object(folder / MANIFEST), folder / MANIFEST))


def open_runs(folder: str | Path) -> list[Run]:
    """The run of a folder, or the runs of its methods, one folder each; those too that were only about to begin when
    their process was killed.

    Raises:
        RunError: there is none.
    """
    folder = Path(folder)
    if not _is_run(folder) and (runs := [open_run(each) for each in _inner(folder)] + pending_runs(folder)):
        return sorted(runs, key=lambda run: run.folder)
    return [open_run(folder)]


def pending_runs(folder: Path) -> list[Run]:
    """The runs of a folder of several that a process was killed before it had begun them.

    Raises:
        RunError: the note about them cannot be read.
    """
    path = folder / BATCH
    try:
        if not path.is_file():
            return []
    except OSError as error:
        raise RunError(f"{folder} cannot be read: {error.strerror}.") from error
    data = _object(path)
    runs = data.get("runs")
    if data.get("format") != FORMAT or not isinstance(runs, dict) or not all(map(_is_name, runs)):
        raise RunError(f"{path} is not what kgqa writes. Remove it.")
    found = [(folder / name, manifest) for name, manifest in runs.items()]
    return [Run(place, _checked(manifest, path)) for place, manifest in found if not (place / MANIFEST).exists()]


def _is_name(name: str) -> bool:
    """Whether a text is the name of a folder in another one."""
    return bool(_NAME.fullmatch(name)) and name not in (".", "..")


def _checked(manifest: Any, path: Path) -> dict[str, Any]:
    """The object of a run.json.

    Raises:
        RunError: it is none of this version.
    """
    if not isinstance(manifest, dict):
        raise RunError(f"{path} is not what kgqa writes: {MANIFEST} is a JSON object.")
    if manifest.get("format") != FORMAT:
        raise RunError(f"{path} is of another version of kgqa: {shown(manifest.get('format'))}.")
    try:
        check_keys(manifest, _MANIFEST)
    except ValueError as error:
        raise RunError(f"{path} is not what kgqa writes: {error}. Begin anew with kgqa eval run.") from None
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
    "graph": optional(object_with(place=is_text, fingerprint=is_text, schema=is_text)),
    "models": optional(is_object),
    "embeddings": optional(is_text),
    "settings": is_object,
    "given": list_of(is_text),
    **dict.fromkeys(("secret", "prompts", "versions"), object_of(is_text)),
    "changed": list_of(is_object),
    "merged": list_of(optional(is_text)),
}
"""What run.json holds, as `kgqa.evaluation.runs.manifest` writes it."""


def _is_run(folder: Path) -> bool:
    try:
        return (folder / MANIFEST).is_file()
    except OSError as error:
        raise RunError(f"{folder} cannot be read: {error.strerror}.") from error


def _inner(folder: Path) -> list[Path]:
    return sorted(each.parent for each in folder.glob(f"*/{MANIFEST}"))


def lines_of(file: Path) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a file and their numbers from 1; none where there is no file.

    Raises:
        RunError: it cannot be read, or a line is too long.
    """
    number = 0
    try:
        with open(file, "rb") as stream:
            while line := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    raise RunError(f"{file}, line {number}: longer than {MAX_LINE_BYTES:,} bytes.")
                if not line.endswith(b"\n"):
                    return  # torn: whoever wrote it was killed, or is writing it
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
        raise RunError(f"{path} is no JSON object.")
    return data
