"""The catalogue of published data sets (catalogue.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath

from kgqa.storage.loading import convert


@dataclass(frozen=True)
class PublishedFile:
    """A file of a published data set.

    `split`: `train`, `dev`, `test` ...; `name`: file name, preceded by its folder if several files have the same name;
    `questions`: number of questions, 0 if unknown; `answers`: whether the file contains gold answers; `sha256`: in hex,
    empty if unknown.
    """

    split: str
    name: str
    questions: int
    answers: bool = True
    sha256: str = ""


@dataclass(frozen=True)
class PublishedDataset:
    """A published data set; `graph`: the graph that contains the answers; `url`: download address of the files."""

    name: str
    title: str
    graph: str
    url: str
    licence: str
    files: tuple[PublishedFile, ...]
    note: str = ""

    def file_like(self, file: Path) -> PublishedFile | None:
        """Return the published file that has the same name as a local file, ignoring .gz; None if there is none."""
        parts = PurePosixPath(file.absolute().as_posix().removesuffix(".gz")).parts
        for known in self.files:
            wanted = PurePosixPath(known.name).parts
            if parts[-len(wanted) :] == wanted:
                return known
        return None


@cache
def published_datasets() -> Mapping[str, PublishedDataset]:
    """Return all published data sets by name."""
    text = files("kgqa.evaluation.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    return {name: convert({**table, "name": name}, PublishedDataset) for name, table in tomllib.loads(text).items()}
