"""Finds the questions of a source, with a reader for each published format.

A source is one of these: `NAME:FILE`; `NAME:SPLIT` or `NAME` for a published file in the folder KGQA_DATASETS; a file
in the format of kgqa. Other packages add names by entry points `kgqa.datasets`: a function that is called with a file
and the name for `NAME:FILE`, or without arguments for `NAME`, and returns `GoldQuestion` objects.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from kgqa.errors import SettingsError
from kgqa.evaluation.datasets.catalogue import PublishedFile, published_datasets
from kgqa.evaluation.datasets.fields import Record
from kgqa.evaluation.datasets.formats import freebase, images, shared_corpora, text, tog, wikidata
from kgqa.evaluation.datasets.questions import GoldQuestion, QuestionFileError, iter_questions
from kgqa.evaluation.datasets.record_stream import questions_in
from kgqa.plugins import plugin, plugin_names
from kgqa.text.hints import Option

FOLDER_VARIABLE = "KGQA_DATASETS"
Reader = Callable[[Path, str], Iterator[GoldQuestion]]


def _of_json(question_of: Callable[[Record, int, str], GoldQuestion], *within: str) -> Reader:
    """Build the reader of a JSON format; `within`: key of the records if a file contains one object."""

    def read(file: Path, dataset: str) -> Iterator[GoldQuestion]:
        return questions_in(file, dataset, lambda record, number: question_of(record, number, dataset), within=within)

    return read


READERS: Mapping[str, Reader] = {
    "cwq": _of_json(freebase.cwq),
    "webqsp": _of_json(freebase.webqsp, "Questions"),
    "grailqa": _of_json(freebase.grailqa),
    "webquestions": freebase.read_webquestions,
    "simplequestions": freebase.read_simplequestions,
    "qald10": _of_json(wikidata.qald, "questions"),
    "lcquad2": _of_json(wikidata.lcquad),
    "hotpotqa": _of_json(text.hotpotqa),
    "2wikimultihopqa": text.read_2wiki,
    "musique": _of_json(text.musique),
    "nq": _of_json(text.nq),
    "evqa": images.read_evqa,
    "infoseek": _of_json(images.infoseek),
    "okvqa": images.read_okvqa,
    "grbench": _of_json(text.grbench),
    "hipporag": _of_json(shared_corpora.hipporag),
    "hypergraphrag": _of_json(shared_corpora.hypergraphrag),
    "ultradomain": _of_json(shared_corpora.ultradomain),
    **dict.fromkeys(
        ("tog-cwq", "tog-grailqa", "tog-webquestions", "tog-simpleqa", "tog-qald"), _of_json(tog.question_of)
    ),
    "tog-webqsp": _of_json(tog.question_of, "Questions"),
}
"""The reader of each format, by name."""

DEMO = {
    "demo": "questions.jsonl",
    "demo-conditions": "conditions.jsonl",
    "demo-cwq": "cwq.json",
    "demo-webqsp": "webqsp.json",
    "demo-grailqa": "grailqa.json",
}
"""Question files about the bundled demo graph. The part of a name after `demo-` is the format; `demo` and
`demo-conditions` have the format of kgqa."""


def dataset_questions(source: str) -> list[GoldQuestion]:
    """Read the questions of a source such as `cwq:FILE`; the module docstring lists all forms.

    Raises:
        QuestionFileError: a file is missing, cannot be read, or has a different format.
        SettingsError: there is no data set with this name.
    """
    return list(iter_dataset(source))


def iter_dataset(source: str) -> Iterator[GoldQuestion]:
    """Yield the questions of a source one by one; errors as for `dataset_questions`, raised during iteration."""
    name, file = located(source)
    dataset = source.strip() if source.strip() in DEMO else name
    if name in READERS and file is not None:
        yield from READERS[name](file, dataset)
    elif name and file is not None and source.strip() not in DEMO:
        yield from _plugin_questions(name, (file, name))
    elif file is not None:
        for question in iter_questions(file):
            yield replace(question, dataset=dataset) if dataset else question
    else:
        yield from _plugin_questions(name, ())


def _plugin_questions(name: str, arguments: Sequence[Any]) -> Iterator[GoldQuestion]:
    """Yield the questions of a reader of another package."""
    if name not in dataset_names():
        raise SettingsError(f"Unknown dataset {name}.", f"Choose one of: {', '.join(dataset_names())}.")
    read = plugin("dataset", name)
    source = ":".join(map(str, (name, *arguments[:1])))
    try:
        inspect.signature(read).bind(*arguments)
    except TypeError:
        raise QuestionFileError(
            f"The reader {name} needs {'no file' if arguments else 'a file'}.",
            "Write ",
            Option("dataset", name if arguments else f"{name}:FILE"),
        ) from None
    except ValueError:
        pass  # not written in Python
    number = 0
    for number, question in enumerate(read(*arguments), 1):  # noqa: B007 - counted
        yield question
    if not number:
        raise QuestionFileError(f"{source} contains no questions.")


def located(source: str) -> tuple[str, Path | None]:
    """Return the format of a source (empty for the format of kgqa) and its file (None for a plugin without a file).

    Raises:
        QuestionFileError, SettingsError: as for `dataset_questions`.
    """
    source = source.strip()
    if source in DEMO:
        return source.removeprefix("demo").lstrip("-"), Path(str(files("kgqa") / "demo" / DEMO[source]))
    name, colon, rest = source.partition(":")
    if name in READERS or (colon and name in plugin_names("dataset")):
        return name, _file_of(name, rest.strip())
    if Path(source).exists() or "/" in source or ("." in source and not colon):
        return "", Path(source)
    if colon:
        known = ", ".join([*READERS, *plugin_names("dataset")])
        raise SettingsError(f"{name!r} is not a format of question files.", f"Choose from: {known}")
    return source, None


def _file_of(name: str, rest: str) -> Path:
    """Find the file of NAME:REST, where REST is a path, a file in the folder KGQA_DATASETS, or a split."""
    if rest and Path(rest).exists():
        return Path(rest)
    known = published_datasets()[name].files if name in READERS else ()
    wanted = [file.name for file in known if rest == file.split] or ([rest] if rest else _by_default(known))
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder:
        for file in wanted:
            if found := in_folder(Path(folder), name, file):
                return found
    if known and rest and ("/" in rest or (not folder and rest == wanted[0])):
        raise QuestionFileError(f"{rest} does not exist.", f"To see where to download {name}: kgqa data list {name}")
    if not known:
        raise QuestionFileError(f"{rest or 'The file'} does not exist.", f"Give an existing file: {name}:FILE")
    expected = f"Expected: {' or '.join(wanted)}; see kgqa data list {name}"
    if folder:
        raise QuestionFileError(f"{folder} has no question file of {name}. {expected}")
    raise QuestionFileError(
        f"No question file of {name} was given.",
        f"Set {FOLDER_VARIABLE} to the folder of your question files. {expected}",
    )


def in_folder(folder: Path, name: str, file: str) -> Path | None:
    """Find a published file, gzipped or not, in a folder or in the subfolder named like the data set."""
    places = [place / each for place in (folder / name, folder) for each in (file, f"{file}.gz")]
    return next((place for place in places if place.is_file()), None)


def _by_default(known: Sequence[PublishedFile]) -> list[str]:
    """Choose the files if no split is given: `test` or else `dev`, if it has gold answers; or else all files."""
    for split in ("test", "dev"):
        if found := [file.name for file in known if file.split == split and file.answers]:
            return found
    return [file.name for file in known]


def dataset_names() -> list[str]:
    """List all names for sources: formats, demo questions, and data sets of installed packages."""
    return [*READERS, *DEMO, *plugin_names("dataset")]
