"""Questions about an image: Encyclopedic-VQA, InfoSeek and OK-VQA.

Encyclopedic-VQA (Mensink et al. 2023): CSV. InfoSeek (Chen et al. 2023): JSON lines. OK-VQA (Marino et al. 2019): a
file of questions, with the answers in a second file in the same folder. `GoldQuestion.row` has the key `image`: the
path of the image below the folder of the images, as their publishers name it.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kgqa.evaluation.datasets import fields, record_stream
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.questions import GoldAnswer, GoldQuestion, QuestionFileError

_COLUMNS = ("question", "answer", "dataset_image_ids", "dataset_name")
_LANDMARK = re.compile(r"[0-9a-f]{16}")
_NAME = re.compile(r"\w[\w.-]{0,99}")
_COCO = re.compile(r"(train|val|test)(\d{4})")


def read_evqa(file: Path, dataset: str) -> Iterator[GoldQuestion]:
    """Read the questions of a CSV file of Encyclopedic-VQA.

    Raises:
        QuestionFileError: the file cannot be read, or a record does not have this format.
    """
    lines = (line for _, line in record_stream.lines(file))
    csv.field_size_limit(record_stream.MAX_RECORD_CHARS)
    records = csv.DictReader((f"{line}\n" for line in lines), strict=True)
    if records.fieldnames is None or any(name not in records.fieldnames for name in _COLUMNS):
        raise QuestionFileError(f"{file} has no columns {', '.join(_COLUMNS)}.")
    yield from record_stream.questions_of(file, dataset, _rows(file, records), partial(_evqa, dataset=dataset))


def _rows(file: Path, records: Iterator[dict[str, Any]]) -> Iterator[tuple[int, Record]]:
    number = 0
    try:
        for number, record in enumerate(records, 1):
            yield number, {str(key): value for key, value in record.items()}
    except csv.Error as error:
        raise record_stream.broken(file, number + 1, f"not CSV ({error})") from None


def _evqa(record: Record, number: int, *, dataset: str) -> GoldQuestion:
    """Convert a row: `|` separates the answers of several annotators, `&&` the parts of an answer."""
    readings = [
        fields.answers_of([GoldAnswer("", part.strip()) for part in answer.split("&&")])
        for answer in fields.text_of(record, "answer").split("|")
    ]
    readings = [reading for reading in readings if reading]
    several = any(len(reading) > 1 for reading in readings)
    answers = readings[0] if readings else ()
    if readings and not several:
        names = fields.distinct([reading[0].name for reading in readings])
        answers = (GoldAnswer("", names[0], "", names[1:]),)
    images = [
        image for each in fields.text_of(record, "dataset_image_ids").split("|") if (image := _file_name(each.strip()))
    ]
    source = _file_name(fields.text_of(record, "dataset_name"))
    paths = [_evqa_image(image, source) for image in images]
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=str(number),
        dataset=dataset,
        number=number,
        answers=answers,
        parses=tuple(readings) if several and len(readings) > 1 else (),
        support="" if answers else fields.NO_GOLD,
        kind=fields.text_of(record, "question_type"),
        row={**record, "image": paths[0] if paths else "", "images": paths},
    )


def _evqa_image(image: str, source: str) -> str:
    """Return the path of an image: of Google Landmarks in folders of its first letters, of others below their name."""
    if _LANDMARK.fullmatch(image):
        return f"{image[0]}/{image[1]}/{image[2]}/{image}.jpg"
    return f"{source}/{image}.jpg" if source else f"{image}.jpg"


def _file_name(text: str) -> str:
    """Return an id that can be a part of a path; empty for any other text, such as one that leads to another folder."""
    return text if _NAME.fullmatch(text) else ""


def infoseek(record: Record, number: int, dataset: str) -> GoldQuestion:
    """Convert a record of InfoSeek; what its scorer accepts too is an alias, except ranges of numbers."""
    names = fields.texts_of(record, "answer")
    accepted = record.get("answer_eval")
    accepted = accepted if isinstance(accepted, list) else []
    aliases = fields.distinct(
        [each for each in (*names[1:], *accepted) if isinstance(each, str) and each not in names[:1]]
    )
    image = _file_name(fields.text_of(record, "image_id"))
    answers = (GoldAnswer("", names[0], "", aliases),) if names else ()
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=fields.ident(record, "data_id"),
        dataset=dataset,
        number=number,
        answers=answers,
        support="" if answers else fields.NO_GOLD,
        row={**record, "image": f"{image}.jpg" if image else ""},
    )


def read_okvqa(file: Path, dataset: str) -> Iterator[GoldQuestion]:
    """Read the questions of an OK-VQA file, with the answers of its file of annotations in the same folder.

    Raises:
        QuestionFileError: a file cannot be read, or a record does not have this format.
    """
    plain = file.name.removesuffix(".gz")
    name = plain.removeprefix("OpenEnded_").replace("_questions", "_annotations")
    beside = [file.with_name(each) for each in (name, f"{name}.gz")] if name != plain else []
    known: Mapping[str, tuple[str, ...]] = {}
    if found := next((each for each in beside if each.is_file()), None):
        known = _annotations(found)
    part = _COCO.search(file.name)
    folder = part[0] if part else ""
    yield from record_stream.questions_in(
        file, dataset, partial(_okvqa, dataset=dataset, folder=folder, known=known), within=("questions",)
    )


def _okvqa(
    record: Record, number: int, *, dataset: str, folder: str, known: Mapping[str, tuple[str, ...]]
) -> GoldQuestion:
    ident = fields.ident(record, "question_id")
    names = known.get(ident, ())
    image = fields.text_of(record, "image_id")
    path = f"{folder}/COCO_{folder}_{int(image):012}.jpg" if folder and image.isascii() and image.isdigit() else ""
    return GoldQuestion(
        text=fields.needed(record, "question"),
        id=ident,
        dataset=dataset,
        number=number,
        answers=(GoldAnswer("", names[0], "", names[1:]),) if names else (),
        support="" if names else fields.NO_GOLD,
        row={**record, "image": path},
    )


def _annotations(file: Path) -> dict[str, tuple[str, ...]]:
    """Read the answers of each question, the most frequent first."""
    found = {}
    for number, record in enumerate(record_stream.json_records(file, within=("annotations",)), 1):
        try:
            if not isinstance(record, dict):
                raise ValueError("a JSON object was expected")
            given = [fields.text_of(each, "answer") for each in fields.objects_of(record, "answers")]
            counts = Counter(each for each in given if each)
            found[fields.ident(record, "question_id")] = tuple(name for name, _ in counts.most_common())
        except ValueError as error:
            raise record_stream.broken(file, number, str(error)) from None
    return found
