"""Searches of the web as plugins, and those that need no web: recorded results, and another corpus.

Another package registers a search under the entry points `kgqa.web_searches`: a function of a query and a number that
returns `WebPassage`s, best first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

from kgqa.corpus.corpus import Corpus
from kgqa.errors import PluginError, SettingsError
from kgqa.methods.evidence import title_of
from kgqa.plugins import plugin
from kgqa.storage.loading import parse_json, read_bytes
from kgqa.text.words import clean, safe_text

MAX_PASSAGE_CHARS = 8_000
"""Longest text of a passage; the rest of a longer one is left out."""
MAX_FILE_BYTES = 100 << 20


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
        SettingsError: The name is wrong, or a file cannot be read.
        KgqaError: A folder is not a corpus.
    """
    kind, _, rest = name.partition(":")
    file, _, inner = rest.rpartition(":")
    if name == "none":
        yield None
    elif kind == "replay" and rest:
        yield recording(Path(rest))
    elif kind == "record" and file and inner:
        with opened_web_search(inner) as search:
            yield recording(Path(file), search)
    elif kind == "corpus" and rest:
        with Corpus.open(rest) as corpus:
            yield _corpus_search(corpus)
    elif kind == name and name:
        yield _plugin_search(kind)
    else:
        forms = "none, record:FILE:NAME, replay:FILE, corpus:FOLDER, or the name of a search of another package"
        raise SettingsError(f"{clean(name)!r} is not a search of the web.", f"Use {forms}.")


def _plugin_search(name: str) -> WebSearch:
    function = plugin("web_search", name)

    def search(query: str, k: int) -> Sequence[WebPassage]:
        try:
            return [_checked(each) for each in function(query, k)[:k]]
        except Exception as error:  # the network may fail; the model is told so
            raise PluginError(f"The web search {name} failed: {type(error).__name__}: {error}") from error

    return search


def _corpus_search(corpus: Corpus) -> WebSearch:
    """Return a search of a corpus that plays the web: its chunks are the passages, and their IRIs the addresses."""
    retriever = corpus.retriever("chunk", ("bm25",))

    def search(query: str, k: int) -> Sequence[WebPassage]:
        (pieces,) = retriever.search([query], k)
        return [_checked(WebPassage(piece.iri, piece.text, title_of(piece, corpus))) for piece in pieces]

    return search


def _checked(passage: WebPassage) -> WebPassage:
    """Return a passage whose texts are plain and bounded."""
    text = safe_text(str(passage.text)[:MAX_PASSAGE_CHARS]).strip()
    return WebPassage(clean(str(passage.address)[:2000]), text, clean(str(passage.title)[:500]))


def recording(file: Path, search: WebSearch | None = None) -> WebSearch:
    """Return a search with results from a file of JSON lines `{"query", "passages"}`.

    Args:
        file: The file.
        search: What is asked, and recorded, for other queries; None to find nothing for them.

    Raises:
        SettingsError: The file is not a recording, or cannot be written.
    """
    found: dict[str, Sequence[WebPassage]] = {}
    with _recording_errors(file):
        if search is not None:
            file.touch()
        for line in filter(bytes.strip, read_bytes(file, MAX_FILE_BYTES).splitlines()):
            record = parse_json(line, _Search)
            found[clean(record.query).casefold()] = [_checked(each) for each in record.passages]

    def recorded(query: str, k: int) -> Sequence[WebPassage]:
        key = clean(query).casefold()
        if key not in found and search is not None:
            found[key] = search(query, k)
            line = json.dumps({"query": key, "passages": [asdict(each) for each in found[key]]}, ensure_ascii=False)
            with _recording_errors(file), file.open("ab", buffering=0) as stream:
                stream.write(f"{line}\n".encode())  # one write, so that lines of several threads do not mix
        return found.get(key, [])[:k]

    return recorded


@contextmanager
def _recording_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise SettingsError(
            f"{clean(str(file))} cannot be used as a recording of searches: {problem}.",
            "Record to another file: evograph.web=record:FILE:NAME",
        ) from error
