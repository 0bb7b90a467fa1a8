"""Questions with gold answers, and question files in the format of kgqa: a JSON object per line.

Each line has the key `question`. Optional keys are `id`, `dataset`, `topic_entities` ([{id, name}]), `answers`
([{id, name}], or {value, datatype} for a literal), `hops`, `gold_path`, `gold_chain`, `gold_chains`, `support` and
`path_check`. All keys are kept in `GoldQuestion.row`.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from kgqa.errors import KgqaError
from kgqa.text.hints import Command

MAX_LINE_BYTES = 4 << 20
MAX_FILE_BYTES = 1 << 30
MAX_ANSWERS = 100_000
ANSWERABLE = ("observed", "observed+skolem", "exact")
"""Values of `support` and `path_check` of questions whose gold query returns exactly the gold answers."""
_FIRST_BYTES = 2000
_BEFORE_JSON = b"\xef\xbb\xbf \t"
"""Bytes that may stand before an object: the mark of UTF-8, spaces."""
_RDF = re.compile(
    rb"""\s*(?:\#.*\s+)*+(?:@(?:prefix|base)\s|(?:PREFIX\s+[\w.-]*:|BASE)\s*<|<\w+:[^<>\s]*>[\s;,]|_:\w|<\?xml|<rdf:)""",
    re.IGNORECASE,
)
"""The start of Turtle, TriG, N3, N-Triples, N-Quads or RDF/XML, after comments."""

T = TypeVar("T")


class QuestionFileError(KgqaError):
    """A question file cannot be read. The message gives the file and, if known, the line."""


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A gold answer: an entity with id and name, or a literal with its text in `name`, and its datatype.

    `id`: short id or IRI of the entity, empty for a literal; `aliases`: other names, if the data set gives them;
    `joined`: whether the text may be several answers, joined by commas.
    """

    id: str
    name: str
    datatype: str = ""
    aliases: tuple[str, ...] = ()
    joined: bool = False


@dataclass(frozen=True)
class GoldQuestion:
    """A question with its gold answers.

    `number`: position in the file, from 0; `hops`: None if the file does not give the number of hops; `parses`: gold
    answers of each interpretation if the data set has several interpretations (the best match counts), else empty;
    `sparql`: gold queries, one per interpretation; `kind`: type of question in the data set (composition, conjunction,
    ...); `level`: level of generalisation (GrailQA) or difficulty; `row`: the record in the file;
    `group`: id of the question if it is asked several times, else empty; `rollout`: number of this time, from 0.
    """

    text: str
    id: str
    dataset: str
    number: int
    topics: tuple[str, ...] = ()
    answers: tuple[GoldAnswer, ...] = ()
    hops: int | None = None
    support: str = ""
    path_check: str = ""
    topic_names: tuple[str, ...] = ()
    parses: tuple[tuple[GoldAnswer, ...], ...] = ()
    sparql: tuple[str, ...] = ()
    kind: str = ""
    level: str = ""
    row: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    group: str = ""
    rollout: int = 0

    @property
    def readings(self) -> tuple[tuple[GoldAnswer, ...], ...]:
        """The gold answers of each interpretation of the question; the best match counts."""
        return self.parses or (self.answers,)

    @property
    def image(self) -> str:
        """The path of the image that the question is about, below the folder of the images; empty without an image."""
        image = self.row.get("image")
        return image if isinstance(image, str) else ""

    @property
    def passages(self) -> tuple[tuple[str, str], ...]:
        """The title and the text of each passage of the question; empty if the data set has no passages."""
        return tuple((title, text) for _, title, text in self._numbered_passages())

    @property
    def supporting(self) -> tuple[tuple[str, str], ...]:
        """The title and the text of each passage that supports the answer."""
        supporting = self.row.get("supporting")
        if not isinstance(supporting, list):
            return ()
        return tuple((title, text) for place, title, text in self._numbered_passages() if place in supporting)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The passages that support the answer, each as `title: text`; empty if the data set has no passages."""
        return tuple(f"{title}: {text}" if title else text for title, text in self.supporting)

    def _numbered_passages(self) -> Iterator[tuple[int, str, str]]:
        passages = self.row.get("passages")
        for place, each in enumerate(passages if isinstance(passages, list) else ()):
            if isinstance(each, dict) and isinstance(each.get("text"), str):
                yield place, str(each.get("title") or ""), each["text"]

    def answerable(self, support: Collection[str] = ANSWERABLE) -> bool:
        """Whether there are gold answers, and the gold query is known to return exactly these answers in the graph."""
        if not self.answers:
            return False
        return all(not mark or mark in support for mark in (self.support, self.path_check))


def read_questions(file: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> list[GoldQuestion]:
    """Read a question file, gzipped if its name ends in .gz.

    Args:
        max_line_bytes: maximum length of one line.

    Raises:
        QuestionFileError: the file is missing, too large or truncated, or a line is not a question.
    """
    return list(iter_questions(file, max_line_bytes=max_line_bytes))


def iter_questions(file: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[GoldQuestion]:
    """Yield the questions of a file one by one; arguments and errors as for `read_questions`."""
    file = Path(file)
    number = 0
    for line_number, line in file_lines(file, max_line_bytes):
        try:
            question = _question(json.loads(line), number, file.name.split(".")[0])
        except RecursionError:
            raise QuestionFileError(f"{file}, line {line_number}: nested too deeply.") from None
        except json.JSONDecodeError as error:
            if line.lstrip(_BEFORE_JSON).startswith((b"{", b"[")):
                raise QuestionFileError(f"{file}, line {line_number}: {error}.") from None
            raise QuestionFileError(
                f"{file}, line {line_number} is not JSON.",
                "A question is a JSON object on one line (docs/datasets.md). To ask plain questions: ",
                Command("ask", json=True),
                f" < {shlex.quote(str(file))}",
            ) from None
        except ValueError as error:
            raise QuestionFileError(f"{file}, line {line_number}: {error}.") from None
        number += 1
        yield question
    if not number:
        raise QuestionFileError(f"{file} contains no questions.")


def spread(items: Sequence[T], limit: int | None) -> list[T]:
    """Select at most `limit` items, evenly spaced, because many files are sorted by kind of question."""
    if limit is None or len(items) <= limit:
        return list(items)
    return [items[index * len(items) // limit] for index in range(limit)]


def file_lines(file: Path, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Yield number (from 1) and content of each non-blank line; a file whose name ends in .gz is unpacked.

    Raises:
        QuestionFileError: the file cannot be read or is too large, or a line is too long.
    """
    number, total = 0, 0
    try:
        with open_file(file) as stream:
            while line := stream.readline(max_line_bytes + 1):
                number += 1
                total += len(line)
                if len(line) > max_line_bytes:
                    raise QuestionFileError(f"{file}, line {number}: longer than {max_line_bytes:,} bytes.")
                if total > MAX_FILE_BYTES:
                    raise QuestionFileError(
                        f"{file} is larger than {MAX_FILE_BYTES:,} bytes (unpacked).",
                        "Split the file into smaller files.",
                    )
                if line.strip():
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:  # EOFError and zlib.error: truncated or damaged gzip file
        reason = getattr(error, "strerror", None) or str(error)
        place = f" after line {number}" if number else ""
        raise QuestionFileError(f"{file} cannot be read{place}: {reason}.") from error


@contextmanager
def open_file(file: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, unpacked if its name ends in .gz.

    Raises:
        QuestionFileError: the file contains RDF.
        OSError, EOFError, zlib.error: the file cannot be opened or unpacked.
    """
    with gzip.open(file, "rb") if file.name.endswith(".gz") else file.open("rb") as stream:
        if _RDF.match(stream.peek(_FIRST_BYTES)[:_FIRST_BYTES]):
            raise QuestionFileError(
                f"{file} contains RDF, not questions.",
                "Load it as a graph: ",
                Command("graph load", str(file), into="mygraph/"),
            )
        yield cast(BinaryIO, stream)


def _question(data: Any, number: int, dataset: str) -> GoldQuestion:
    if not isinstance(data, dict):
        raise ValueError("a question must be a JSON object")
    text = data.get("question")
    if not isinstance(text, str) or not text.strip():
        raise ValueError('"question" must be a non-empty text')
    topics = list_of(data, "topic_entities", dict, "objects")
    return GoldQuestion(
        text=text,
        id=_text(data, "id") or str(number),
        dataset=_text(data, "dataset") or dataset,
        number=number,
        topics=tuple(dict.fromkeys(t for item in topics if (t := _text(item, "id")))),
        answers=_answers(data),
        hops=_hops(data),
        support=_text(data, "support"),
        path_check=_text(data, "path_check"),
        topic_names=tuple(dict.fromkeys(n for item in topics if (n := _text(item, "name")))),
        sparql=tuple(filter(None, [_text(data, "sparql_portable") or _text(data, "sparql")])),
        kind=_text(data, "kind") or _text(data, "ctype"),
        level=_text(data, "level"),
        row=data,
    )


def _answers(data: Mapping[str, Any]) -> tuple[GoldAnswer, ...]:
    items = list_of(data, "answers", dict, "objects")
    if len(items) > MAX_ANSWERS:
        raise ValueError(f"more than {MAX_ANSWERS:,} answers")
    answers = [
        GoldAnswer(
            _text(item, "id"),
            _text(item, "name") or _text(item, "value"),
            _text(item, "datatype"),
            tuple(list_of(item, "aliases", str, "strings")),
        )
        for item in items
    ]
    if any(not answer.id and not answer.name for answer in answers):
        raise ValueError('an answer has neither "id" nor "name" nor "value"')
    return tuple(dict.fromkeys(answers))


def _hops(data: Mapping[str, Any]) -> int | None:
    """Return the number of hops in the record; if missing, the length of the gold path or of the longest gold chain."""
    hops = data.get("hops")
    if hops is not None:
        if isinstance(hops, bool) or not isinstance(hops, int) or hops < 1:
            raise ValueError('"hops" must be a whole number, 1 or more')
        return hops
    path = data.get("gold_path")
    if isinstance(path, list) and path:
        return len(path)
    chains = data.get("gold_chains")
    # a chain is node, relation, node, ..., node
    lengths = [len(chain) // 2 for chain in chains if isinstance(chain, list)] if isinstance(chains, list) else []
    return max(lengths, default=0) or None


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f'"{key}" must be a text')
    return value


def list_of(data: Mapping[str, Any], key: str, kind: type[T], called: str) -> list[T]:
    """Return the list under a key of a record; [] if absent or null.

    Raises:
        ValueError: the value is not a list of items of this type.
    """
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise ValueError(f'"{key}" must be a list of {called}')
    return value
