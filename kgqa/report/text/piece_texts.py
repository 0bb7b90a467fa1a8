"""Reads the pieces of a corpus for a report: their titles and texts, from the corpus that a run names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol, get_args

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.errors import KgqaError
from kgqa.evaluation.runs.run_files import Run
from kgqa.model import PieceKind
from kgqa.report.lenient_json import object_of, text_of
from kgqa.storage.corpus_file import read_corpus_file

_KEPT = 4096
_PREFIX = "urn:kgqa:"
KINDS: tuple[PieceKind, ...] = get_args(PieceKind)


@dataclass(frozen=True, slots=True)
class PieceText:
    """A piece of a corpus. `title`, `source`: of the document, may be empty. `text`: the chunk, or a fact in words."""

    kind: str
    title: str = ""
    source: str = ""
    text: str = ""


class PieceTexts(Protocol):
    """Where a report finds the texts of pieces."""

    def piece(self, iri: str) -> PieceText | None:
        """Return a piece by its IRI; None if it is not known."""
        ...


class NoTexts:
    """The texts of a run whose corpus is not there."""

    def piece(self, iri: str) -> PieceText | None:
        return None


class CorpusTexts:
    """The texts of an opened corpus. The index, which has the words of facts, is read as it is, and never written."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._index: CorpusIndex | None = None
        with suppress(KgqaError, OSError, ValueError):
            self._index = CorpusIndex.open(corpus.folder.index, corpus.reader, update=False)
        self.piece = lru_cache(_KEPT)(self._read)

    def _read(self, iri: str) -> PieceText | None:
        kind = kind_of(iri)
        try:
            if kind == "chunk":
                chunk = self._corpus.chunk(iri)
                return None if chunk is None else self._text(kind, chunk.text, chunk.document)
            if kind in KINDS and self._index is not None and kind != "path":
                piece = self._index.pieces(kind).get(iri)
                document = piece.spans[0].document if piece and piece.spans else ""
                return None if piece is None else self._text(kind, piece.text, document)
        except (KgqaError, OSError, ValueError, KeyError):
            return None  # the corpus may be another person's, or be damaged
        return None

    def _text(self, kind: str, text: str, document: str) -> PieceText:
        record = self._corpus.reader.document(document) if document else None
        return PieceText(kind, record.title if record else "", record.source if record else "", text)


def kind_of(iri: str) -> str:
    """Return the kind of a piece, such as `chunk` for `urn:kgqa:chunk:...`; "piece" for IRIs of other forms."""
    kind = iri.removeprefix(_PREFIX).partition(":")[0] if iri.startswith(_PREFIX) else ""
    return kind if kind in KINDS else "piece"


def corpus_of(run: Run) -> Path | None:
    """Return the folder of the corpus that a run was asked over; None if there is none, or it is not there."""
    place = text_of(object_of(run.manifest.get("settings")).get("graph.path")).strip()
    if not place:
        return None
    try:
        folder = Path(text_of(run.manifest.get("working_folder")), place)
        return folder if read_corpus_file(place if "://" in place else folder) else None
    except (KgqaError, OSError, ValueError):
        return None


@contextmanager
def open_texts(run: Run) -> Iterator[PieceTexts]:
    """Open the corpus of a run, to read texts from it; without texts if it is not there or cannot be opened."""
    folder = corpus_of(run)
    with ExitStack() as opened:
        texts: PieceTexts = NoTexts()
        if folder is not None:
            with suppress(KgqaError, OSError):
                texts = CorpusTexts(opened.enter_context(Corpus.open(folder)))
        yield texts
