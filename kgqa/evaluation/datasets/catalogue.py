"""What is known of the data sets as they are published (catalogue.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class PublishedFile:
    """One file: its name (with folders where only these tell it from others), how many questions it holds, whether
    with gold answers, and its SHA-256 in hex where that is known.
    """

    split: str
    name: str
    questions: int
    answers: bool = True
    sha256: str = ""


@dataclass(frozen=True)
class Published:
    """One data set: `graph` is what its answers are found in, `url` where its files are."""

    name: str
    title: str
    graph: str
    url: str
    licence: str
    files: tuple[PublishedFile, ...]
    note: str = ""

    def file_like(self, file: Path) -> PublishedFile | None:
        """The published file that a file is by its name, .gz or not."""
        parts = PurePosixPath(file.absolute().as_posix().removesuffix(".gz")).parts
        for known in self.files:
            wanted = PurePosixPath(known.name).parts
            if parts[-len(wanted) :] == wanted:
                return known
        return None


@cache
def published() -> Mapping[str, Published]:
    """All of them by the name that sources give them."""
    text = files("kgqa.evaluation.datasets").joinpath("catalogue.toml").read_text(encoding="utf-8")
    found = {}
    for name, table in tomllib.loads(text).items():
        known = tuple(PublishedFile(**file) for file in table.pop("files"))
        found[name] = Published(name=name, files=known, **table)
    return found
