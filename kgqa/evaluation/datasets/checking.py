"""Checks whether question files are readable, complete and of the expected version."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal as OneOf

from kgqa.evaluation.datasets.catalogue import PublishedFile, published_datasets
from kgqa.evaluation.datasets.questions import QuestionFileError, open_file
from kgqa.evaluation.datasets.registry import DEMO, FOLDER_VARIABLE, in_folder, iter_dataset, located
from kgqa.evaluation.datasets.sampling import QuestionIds

Hash = OneOf["same", "other", "not known"]


@dataclass(frozen=True)
class FileCheck:
    """The result of checking a question file.

    `questions`: number of questions in the file; `expected`: number of questions in the published file, None if
    unknown; `answers`, `topics`, `queries`: number of questions that have gold answers, topic entities, a gold query;
    `hash`: whether the SHA-256 equals that of the published file; `problems`: messages for people, empty if the file is
    usable; `notes`: remarks that are not problems.
    """

    source: str
    file: str
    format: str
    split: str = ""
    questions: int = 0
    expected: int | None = None
    answers: int = 0
    topics: int = 0
    queries: int = 0
    hash: Hash = "not known"
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check(source: str) -> FileCheck:
    """Read the whole file of a source and compare it with the published file of the same name.

    Raises:
        SettingsError: there is no data set with this name.
    """
    try:
        name, file = located(source)
    except QuestionFileError as error:
        return FileCheck(source, "", source.partition(":")[0], problems=(str(error),))
    expected = name in published_datasets() and source not in DEMO
    known = published_datasets()[name].file_like(file) if expected and file else None
    where, form = str(file or ""), name if file and name else "kgqa" if file else f"plugin {name}"
    try:
        counts: Counter[str] = Counter()
        ids = QuestionIds()
        for question in ids.recorded(iter_dataset(source)):
            counts["questions"] += 1
            counts["answers"] += bool(question.answers or any(question.parses))
            counts["topics"] += bool(question.topics)
            counts["queries"] += any(question.sparql)
    except QuestionFileError as error:
        return FileCheck(source, where, form, split=known.split if known else "", problems=(str(error),))
    digest: Hash = "not known"
    if known and known.sha256 and file:
        digest = "same" if _sha256(file) == known.sha256 else "other"
    return FileCheck(
        source=source,
        file=where,
        format=form,
        split=known.split if known else "",
        questions=counts["questions"],
        expected=(known.questions or None) if known else None,
        answers=counts["answers"],
        topics=counts["topics"],
        queries=counts["queries"],
        hash=digest,
        problems=tuple(_problems(counts, known)),
        notes=tuple(_notes(counts, ids.repeated(), known, digest, expected=expected)),
    )


def _problems(counts: Counter[str], known: PublishedFile | None) -> Iterator[str]:
    if known and known.questions and counts["questions"] != known.questions:
        expected = f"{known.name} should have {known.questions:,}"
        yield f"{counts['questions']:,} questions, but {expected}. Download the file again."
    if known and known.answers and not counts["answers"]:
        yield f"No gold answers, although {known.name} should have some. Download the file again."


def _notes(
    counts: Counter[str], repeated: int, known: PublishedFile | None, digest: Hash, *, expected: bool
) -> Iterator[str]:
    if digest == "other":
        yield "The SHA-256 differs from that of the published file: this is another version, or has other line ends."
    if expected and not known:
        yield "The expected number of questions is unknown, because no published file has this name."
    elif expected and known and not known.questions:
        yield "The expected number of questions is unknown, because its publishers do not name it."
    without = counts["questions"] - counts["answers"]
    if without == counts["questions"]:
        yield "There are no gold answers: the questions can be asked but not scored."
    elif without:
        yield f"Questions without a gold answer: {without:,}."
    if repeated:
        yield f"Repeated ids: {repeated:,}."


@dataclass(frozen=True)
class InventoryEntry:
    """A published file, and the user's copy of the file (None if there is none)."""

    dataset: str
    known: PublishedFile
    file: Path | None


def inventory() -> list[InventoryEntry]:
    """List every published file with the user's copy in the folder KGQA_DATASETS."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return [
        InventoryEntry(name, known, in_folder(Path(folder), name, known.name) if folder else None)
        for name, each in published_datasets().items()
        for known in each.files
    ]


def _sha256(file: Path) -> str:
    """Return the SHA-256 of the content of a file in hex, unpacked if gzipped."""
    digest = hashlib.sha256()
    try:
        with open_file(file) as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise QuestionFileError(f"{file} cannot be read: {error.strerror or error}.") from error
    return digest.hexdigest()
