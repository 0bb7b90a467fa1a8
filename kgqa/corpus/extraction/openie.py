"""Reads extractions in the file format of HippoRAG: passages with their named entities and their triples.

The file is a JSON object, possibly compressed with gzip. Its list `docs` has an object for each passage: `passage` (its
first line is the title), `extracted_entities`, `extracted_triples`; HippoRAG 2 adds `idx`, older files add `title` and
`text`. Triples that are not three texts are left out and reported.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from kgqa.corpus.documents.document import Document, DocumentError, Element, safe_text
from kgqa.corpus.extraction.places import PlaceFinder
from kgqa.corpus.extraction.results import ChunkResult
from kgqa.corpus.extraction.sentences import element_borders
from kgqa.corpus.items import Addition, ChunkItem, EntityItem, Party, StatementItem, digest, normal_name
from kgqa.storage.json_stream import JsonStream, LongValue
from kgqa.text.words import clean

MAX_NAME_CHARS = 500
"""Longest subject, relation or object of a triple."""
MAX_TRIPLES = 5_000
"""Most triples, and most entities, that are read from one passage."""
_MAX_PASSAGE_CHARS = 4 << 20
_PACKET = 1 << 16


@dataclass(frozen=True, slots=True)
class OpenIEPassage:
    """A passage of the file: a document with one chunk, what was extracted from it, and what of it was malformed."""

    document: Document
    chunk: ChunkItem
    result: ChunkResult
    malformed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class OpenIECorpus:
    """The content of a file: a document, a chunk and a result for each passage, in the order of the file.

    `malformed`: what was left out, as pairs of where it stands in the file and why it is not a triple or an entity.
    """

    documents: list[Document] = field(default_factory=list)
    chunks: list[ChunkItem] = field(default_factory=list)
    results: list[ChunkResult] = field(default_factory=list)
    malformed: list[tuple[str, str]] = field(default_factory=list)


def read_openie(file: Path | str, *, model: str = "openie", name: str = "") -> OpenIECorpus:
    """Read a whole file; see `stream_openie`."""
    corpus = OpenIECorpus()
    for passage in stream_openie(file, model=model, name=name):
        corpus.documents.append(passage.document)
        corpus.chunks.append(passage.chunk)
        corpus.results.append(passage.result)
        corpus.malformed.extend(passage.malformed)
    return corpus


def stream_openie(file: Path | str, *, model: str = "openie", name: str = "") -> Iterator[OpenIEPassage]:
    """Yield the passages of a file while it is read. Of passages with the same text, the first one is taken.

    Args:
        file: The file.
        model: The name of the model that extracted the triples.
        name: The source of the documents: each one is called `NAME#ID`. By default, the name of the file.

    Raises:
        DocumentError: The file cannot be read, is damaged, or has another format.
    """
    path = Path(file)
    name = name or path.name
    seen: set[str] = set()
    with _opened(path) as opened, _errors_of(path):
        stream = JsonStream(iter(lambda: opened.read(_PACKET), b""), max_value_chars=_MAX_PASSAGE_CHARS)
        known = False
        for member in stream.members():
            if member != "docs":
                stream.value()
                continue
            known = True
            for number, data in enumerate(stream.items()):
                passage = _passage(data, f"docs[{number}]", name, model)
                if passage.document.source not in seen:
                    seen.add(passage.document.source)
                    yield passage
        stream.end()
        if not known:
            raise ValueError("it has no list `docs`")


def _passage(data: Any, where: str, name: str, model: str) -> OpenIEPassage:
    if not isinstance(data, dict):
        raise ValueError(f"{where} is not an object")
    title, text = data.get("title"), data.get("passage")
    if not isinstance(text, str):
        body = data.get("text")
        if not isinstance(body, str):
            raise ValueError(f"{where} has no text `passage`")
        text = f"{title}\n{body}" if isinstance(title, str) else body
    text = safe_text(text)
    first_line = text.partition("\n")[0]
    has_heading = 0 < len(first_line) < len(text)
    title = clean(title if isinstance(title, str) else first_line)[:MAX_NAME_CHARS]
    idx = data.get("idx")
    identity = clean(idx)[:100] if isinstance(idx, str) and clean(idx) else digest(text)
    heading = (Element("heading", 0, len(first_line), 1, ((0, len(first_line)),)),) if has_heading else ()
    document = Document(f"{name}#{identity}", title, "text/plain", digest(text, length=64), text, (), heading)
    chunk = ChunkItem(document.iri, 0, len(text), text)
    collector = _Collector(document, chunk, model, f"{where} ({title[:80]})")
    collector.read(data.get("extracted_entities"), data.get("extracted_triples"))
    rejected = tuple(f"{place}: {why}" for place, why in collector.malformed)
    result = ChunkResult(chunk.chunk, tuple(collector.additions), rejected=rejected)
    return OpenIEPassage(document, chunk, result, tuple(collector.malformed))


class _Collector:
    """Turns the entities and triples of one passage into additions."""

    def __init__(self, document: Document, chunk: ChunkItem, model: str, where: str) -> None:
        self._document, self._chunk, self._model = document.iri, chunk.chunk, model
        self._finder = PlaceFinder(chunk.text, element_borders(document, chunk))
        self._where = where
        self._known: set[Any] = set()
        self.additions: list[Addition] = []
        self.malformed: list[tuple[str, str]] = []

    def read(self, entities: Any, triples: Any) -> None:
        for place, name in self._items("extracted_entities", entities):
            if not isinstance(name, str):
                self._reject(place, f"not a text: {name!r:.40}")
            elif problem := _problem(name):
                self._reject(place, f"{problem}: {name!r:.40}")
            else:
                self._entity(clean(name))
        for place, triple in self._items("extracted_triples", triples):
            if not isinstance(triple, list) or not all(isinstance(part, str) for part in triple):
                self._reject(place, f"not a list of texts: {_excerpt(triple)}")
            elif len(triple) != 3:
                self._reject(
                    place, f"{len(triple)} {'part' if len(triple) == 1 else 'parts'}, not 3: {_excerpt(triple)}"
                )
            elif problem := next(filter(None, map(_problem, triple)), ""):
                self._reject(place, f"{problem}: {_excerpt(triple)}")
            else:
                self._triple(*map(clean, triple))

    def _items(self, key: str, values: Any) -> Iterator[tuple[str, Any]]:
        if values is None:
            return
        if not isinstance(values, list):
            self._reject(f"{self._where}.{key}", f"not a list: {values!r:.40}")
            return
        if len(values) > MAX_TRIPLES:
            self._reject(f"{self._where}.{key}", f"{len(values) - MAX_TRIPLES:,} more than {MAX_TRIPLES:,}")
        for number, value in enumerate(values[:MAX_TRIPLES]):
            yield f"{self._where}.{key}[{number}]", value

    def _reject(self, place: str, why: str) -> None:
        self.malformed.append((place, why))

    def _entity(self, name: str) -> None:
        self._add(EntityItem(Party(name)), normal_name(name), self._finder.name_place(name))

    def _triple(self, subject: str, relation: str, object_: str) -> None:
        key = tuple(map(normal_name, (subject, relation, object_)))
        if key in self._known:
            return
        self._entity(subject)
        self._entity(object_)
        place = self._finder.fact_place(subject, object_, relation)
        self._add(StatementItem(Party(subject), relation, Party(object_)), key, place)

    def _add(self, item: EntityItem | StatementItem, key: Any, place: tuple[int, int] | None) -> None:
        if key not in self._known:
            self._known.add(key)
            begin, end = place or (0, 0)
            self.additions.append(Addition(item, self._document, self._chunk, begin, end, model=self._model))


def _problem(text: str) -> str:
    """Return why a text cannot be a name or a relation; "" if it can."""
    if not clean(text):
        return "an empty part"
    return f"a part longer than {MAX_NAME_CHARS} characters" if len(text) > MAX_NAME_CHARS else ""


def _excerpt(value: Any) -> str:
    """Return a malformed triple for a message, on one line and not too long."""
    text = clean(" | ".join(map(str, value)) if isinstance(value, list) else f"{value!r:.40}")
    return text if len(text) <= 200 else f"{text[:199]}…"


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    try:
        opened = path.open("rb")
    except OSError as error:
        raise DocumentError(f"{path} cannot be read: {error}.") from error
    with opened:
        packed = opened.read(2) == b"\x1f\x8b"
        opened.seek(0)
        if packed:
            with gzip.GzipFile(fileobj=opened) as unpacked:
                yield unpacked
        else:
            yield opened


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    """Turn the errors of a damaged file into errors that name it."""
    form = 'The file must be a JSON object with a list "docs": {"docs": [{"passage": "...", "extracted_triples": []}]}'
    try:
        yield
    except LongValue as error:
        raise DocumentError(f"{path} has a passage of more than {_MAX_PASSAGE_CHARS:,} characters.") from error
    except ValueError as error:
        raise DocumentError(f"{path} does not contain extracted triples: {error}.", form) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DocumentError(f"{path} cannot be read: {error}.") from error
