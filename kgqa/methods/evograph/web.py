"""Searches of the web as plugins, and those that need no web: recorded results, and another corpus.

Another package registers a search under the entry points `kgqa.web_searches`: a function of a query and a number that
returns `WebPassage`s, best first.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from kgqa.corpus.corpus import Corpus
from kgqa.errors import PluginError, SettingsError
from kgqa.plugins import plugin
from kgqa.storage.loading import parse_json, read_bytes
from kgqa.text.words import clean, safe_text

MAX_PASSAGES = 20
MAX_PASSAGE_CHARS = 8_000
"""Longest text of a passage; the rest of a longer one is left out."""
MAX_FILE_BYTES = 100 << 20
FORMS = "none, record:FILE:NAME, replay:FILE, corpus:FOLDER, or the name of a search of another package"


@dataclass(frozen=True, slots=True)
class WebPassage:
    """A passage of a page. `address`: its URL. `text`: plain text. `title`: may be empty."""

    address: str
    text: str
    title: str = ""


class _Search(msgspec.Struct):
    """A line of a recording."""

    query: str
    passages: list[WebPassage]


WebSearch = Callable[[str, int], Sequence[WebPassage]]
"""Finds passages for a query: at most so many, best first. Thread-safe."""


@contextmanager
def opened_web_search(name: str) -> Iterator[WebSearch | None]:
    """Open a search as the setting `evograph.web` names it; None for `none`.

    Raises:
        SettingsError: the name is wrong, or a file cannot be read.
        KgqaError: a folder is not a corpus.
    """
    kind, _, rest = name.partition(":")
    file, _, inner = rest.rpartition(":")
    if name == "none":
        yield None
    elif kind == "replay" and rest:
        yield Recording(Path(rest))
    elif kind == "record" and file and inner:
        with opened_web_search(inner) as search:
            yield Recording(Path(file), search)
    elif kind == "corpus" and rest:
        with Corpus.open(rest) as corpus:
            yield _corpus_search(corpus)
    elif kind == name and name:
        yield _plugin_search(kind)
    else:
        raise SettingsError(f"{clean(name)!r} is not a search of the web.", f"Use {FORMS}.")


def _plugin_search(name: str) -> WebSearch:
    function = plugin("web_search", name)

    def search(query: str, k: int) -> Sequence[WebPassage]:
        try:
            found = function(query, k)
        except Exception as error:  # the network may fail; the model is told so
            raise PluginError(f"The web search {name} failed: {type(error).__name__}: {error}") from error
        return [checked_passage(each) for each in found[: min(k, MAX_PASSAGES)]]

    return search


def _corpus_search(corpus: Corpus) -> WebSearch:
    """Return a search of a corpus that plays the web: its chunks are the passages, and their IRIs the addresses."""
    retriever = corpus.retriever("chunk", ("bm25",))

    def search(query: str, k: int) -> Sequence[WebPassage]:
        (pieces,) = retriever.search([query], k)
        records = [corpus.reader.document(piece.spans[0].document) if piece.spans else None for piece in pieces]
        titles = [record.title if record else "" for record in records]
        return [checked_passage(WebPassage(piece.iri, piece.text, title)) for piece, title in zip(pieces, titles)]

    return search


def checked_passage(passage: WebPassage) -> WebPassage:
    """Return a passage whose texts are plain and bounded."""
    text = safe_text(str(passage.text)[:MAX_PASSAGE_CHARS]).strip()
    return WebPassage(clean(str(passage.address)[:2000]), text, clean(str(passage.title)[:500]))


class Recording:
    """Results of a search, kept in a file of JSON lines `{"query", "passages"}`.

    Args:
        file: The file.
        search: What is asked for queries that are not recorded; None to find nothing for them.

    Raises:
        SettingsError: the file is not a recording, or cannot be written.
    """

    def __init__(self, file: Path, search: WebSearch | None = None) -> None:
        self._file = file
        self._search = search
        self._lock = threading.Lock()
        self._found: dict[str, Sequence[WebPassage]] = {}
        try:
            lines = read_bytes(file, MAX_FILE_BYTES).splitlines() if search is None or file.exists() else []
            for line in filter(None, map(bytes.strip, lines)):
                record = parse_json(line, _Search)
                self._found[_key(record.query)] = [checked_passage(each) for each in record.passages]
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"{clean(str(file))} is not a recording of searches: {getattr(error, 'strerror', None) or error}.",
                "Record one: evograph.web=record:FILE:NAME",
            ) from error
        if search is not None:
            self._append("")  # a file that cannot be written is an error before the first question

    def __call__(self, query: str, k: int) -> Sequence[WebPassage]:
        key = _key(query)
        with self._lock:
            found = self._found.get(key)
        if found is None and self._search is not None:
            found = [checked_passage(each) for each in self._search(query, k)]
            line = json.dumps({"query": key, "passages": [asdict(each) for each in found]}, ensure_ascii=False)
            with self._lock:
                self._found[key] = found
                self._append(f"{line}\n")
        return list(found or ())[:k]

    def _append(self, text: str) -> None:
        try:
            with open(self._file, "a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise SettingsError(
                f"{clean(str(self._file))} cannot be written: {error.strerror}.",
                "Record to another file: evograph.web=record:FILE:NAME",
            ) from error


def _key(query: str) -> str:
    return clean(query).casefold()
