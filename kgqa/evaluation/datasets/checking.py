"""Checks question files that a user has against what is known of them: whole, of the version expected, readable."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal as OneOf

from kgqa.evaluation.datasets.catalogue import PublishedFile, published
from kgqa.evaluation.datasets.questions import GoldQuestion, QuestionFileError
from kgqa.evaluation.datasets.registry import DEMO, FOLDER_VARIABLE, in_folder, iter_dataset, located
from kgqa.evaluation.datasets.sampling import Ids

Hash = OneOf["same", "other", "not known"]


@dataclass(frozen=True)
class Check:
    """What a file holds and what is wrong with it; `problems` empty: nothing. Numbers are of questions.

    `expected`: how many it should have, None where nobody says; `hash`: whether its SHA-256 is the one on record.
    `notes`: what is worth knowing, though nothing is wrong.
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


def check(source: str) -> Check:
    """Read the file that a source names, whole, and compare it with the published one of that name.

    Raises:
        SettingsError: there is no data set of this name.
    """
    try:
        name, file = located(source)
    except QuestionFileError as error:
        return Check(source, "", source.partition(":")[0], problems=(str(error),))
    known = published()[name].file_like(file) if name in published() and file and source not in DEMO else None
    where, form = str(file or ""), name if file and name else "kgqa" if file else f"plugin {name}"
    try:
        counts = _Counts()
        for question in iter_dataset(source):
            counts.add(question)
    except QuestionFileError as error:
        return Check(source, where, form, split=known.split if known else "", problems=(str(error),))
    digest: Hash = "not known"
    if known and known.sha256 and file:
        digest = "same" if _sha256(file) == known.sha256 else "other"
    return Check(
        source=source,
        file=where,
        format=form,
        split=known.split if known else "",
        questions=counts.questions,
        expected=known.questions if known else None,
        answers=counts.answers,
        topics=counts.topics,
        queries=counts.queries,
        hash=digest,
        problems=tuple(_problems(counts, known)),
        notes=tuple(_notes(counts, known, digest, expected=name in published() and source not in DEMO)),
    )


class _Counts:
    """What is counted of questions that pass by."""

    def __init__(self) -> None:
        self.questions = self.answers = self.topics = self.queries = 0
        self._ids = Ids()

    def add(self, question: GoldQuestion) -> None:
        self.questions += 1
        self.answers += bool(question.answers or any(question.parses))
        self.topics += bool(question.topics)
        self.queries += any(question.sparql)
        self._ids.note(question)

    @property
    def repeated(self) -> int:
        """Questions whose id came before."""
        return self._ids.repeated()


def _problems(counts: _Counts, known: PublishedFile | None) -> Iterator[str]:
    if known and counts.questions != known.questions:
        yield f"It holds {counts.questions:,} questions, where {known.name} has {known.questions:,}: fetch it again."
    if known and known.answers and not counts.answers:
        yield f"It has no gold answers, which {known.name} has."


def _notes(counts: _Counts, known: PublishedFile | None, digest: Hash, *, expected: bool) -> Iterator[str]:
    if digest == "other":
        yield "Its SHA-256 is not the one on record: a later version, or other line ends."
    if expected and not known:
        yield "No published file has this name, so nothing is known of how many questions it should hold."
    without = counts.questions - counts.answers
    if without == counts.questions:
        yield "It has no gold answers: questions can be asked but not scored."
    elif without:
        yield f"Questions without a gold answer: {without:,}."
    if counts.repeated:
        yield f"Ids that came before: {counts.repeated:,}."


@dataclass(frozen=True)
class Place:
    """A published file and where the user has it, None where nowhere."""

    dataset: str
    known: PublishedFile
    file: Path | None


def inventory() -> list[Place]:
    """Every published file and where it lies in the folder that KGQA_DATASETS names."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return [
        Place(name, known, in_folder(Path(folder), name, known.name) if folder else None)
        for name, each in published().items()
        for known in each.files
    ]


def _sha256(file: Path) -> str:
    """Of the file as it is unpacked, in hex."""
    digest = hashlib.sha256()
    try:
        with gzip.open(file, "rb") if file.name.endswith(".gz") else file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise QuestionFileError(f"{file} cannot be read: {error.strerror or error}.") from error
    return digest.hexdigest()
