"""An opened corpus: its records, texts, indexes and retrievers, and where its graph is."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.graph_writer import BulkLoad, published_seq
from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.index.generation import Progress
from kgqa.corpus.index.vector_store import VectorStore
from kgqa.corpus.reader import DatabaseReader
from kgqa.corpus.records import ChunkRecord
from kgqa.corpus.retrieve.opening import open_retriever
from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.corpus.storage.database import Database
from kgqa.errors import CorpusError
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.storage.cache import Cache
from kgqa.text.hints import Hint


def vectors_of(folder: CorpusFolder) -> str:
    """Return the URI of the database that holds the vectors; "" if they are in the folder."""
    return folder.file.vectors.uri if folder.file.vectors else ""


class Corpus:
    """A corpus. One that is open for reading is thread-safe and shows the state in which it was opened.

    Attributes:
        folder: Its folder.
        database: Its database.
        cache: Where data derived from its graph is cached; None for the user's cache.
    """

    def __init__(
        self,
        folder: CorpusFolder,
        *,
        editor: Editor | None = None,
        cache: Cache | None = None,
        encoder: Any = None,
        progress: Progress | None = None,
    ) -> None:
        self.folder = folder
        self.cache = cache
        self.database = editor.database if editor else Database(folder.database)
        self._editor = editor
        self._encoder = encoder
        self._progress = progress
        self._lock = threading.RLock()
        self._reader: DatabaseReader | None = None
        self._index: CorpusIndex | None = None
        self._resources = ExitStack()
        self._resources.callback((editor or self.database).close)

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        writable: bool = False,
        cache: Cache | None = None,
        encoder: Any = None,
        progress: Progress | None = None,
        store: EndpointStore | None = None,
        bulk_load: BulkLoad | None = None,
    ) -> Corpus:
        """Open a corpus.

        Args:
            path: its folder.
            writable: whether to change it; only one process at a time can.
            cache: where data derived from its graph is cached; None for the user's cache.
            encoder: the embedding model of its index; None for an index of words.
            progress: called as texts are embedded, if the index is brought up to date.
            store, bulk_load: see `Editor`; only if it is writable.

        Raises:
            CorpusError: there is no corpus, it is damaged, or another process is writing to it.
        """
        folder = CorpusFolder(path)
        folder.file  # noqa: B018 - raises the error for a folder without a corpus
        editor = Editor(folder, store=store, bulk_load=bulk_load) if writable else None
        try:
            return cls(folder, editor=editor, cache=cache, encoder=encoder, progress=progress)
        except BaseException:
            if editor:
                editor.close()
            raise

    @property
    def editor(self) -> Editor:
        """The Editor. Raises CorpusError if the corpus is open for reading only."""
        if self._editor is None:
            raise CorpusError("The corpus is open for reading only.", Hint(python="Open it with writable=True."))
        return self._editor

    @property
    def reader(self) -> DatabaseReader:
        """The records of the corpus that its graph shows; if it is open for writing, those after the last edit."""
        with self._lock:
            if self._reader is None or (self._editor and self._reader.seq != self.database.seq):
                published = None if self._editor else published_seq(self.folder, self.database)
                self._reader = DatabaseReader(self.database, published)
            return self._reader

    @property
    def graph_location(self) -> str | Path:
        """The graph folder, or the URL of the graph."""
        return self.folder.file.location

    @property
    def views(self) -> Mapping[str, tuple[str, ...]]:
        """The IRIs of the graphs of each view."""
        return self.folder.file.views

    @property
    def fingerprint(self) -> str:
        """A hash of what the corpus contains."""
        return self.reader.fingerprint

    def text(self, document: str) -> str:
        """Return the text of a document, as it was read.

        Args:
            document: the IRI of the document.

        Raises:
            CorpusError: the corpus does not have this document.
        """
        found = self.reader.text(document)
        if found is None:
            raise CorpusError(f"The corpus has no text of {document}.", "List its documents: kgqa corpus status")
        return found

    def chunk(self, iri: str) -> ChunkRecord | None:
        """Return a chunk by its IRI; None if the corpus does not have it."""
        return self.reader.chunk(iri)

    @property
    def index(self) -> CorpusIndex:
        """The index; if the corpus has changed since it was written, it is brought up to date first."""
        with self._lock:
            reader = self.reader
            if self._index is None or self._index.seq != reader.seq:
                self._index = CorpusIndex.open(
                    self.folder.index,
                    reader,
                    self._encoder,
                    identity=reader.fingerprint,
                    store=self._vector_store(),
                    progress=self._progress,
                    # the folder may be another person's, and may name any database that the user can write to
                    update=self._editor is not None or not vectors_of(self.folder),
                )
            return self._index

    def _vector_store(self) -> VectorStore | None:
        """Open the database of the vectors; None if they are in the folder of the index, or there is no encoder."""
        database = self.folder.file.vectors
        if database is None or self._encoder is None:
            return None
        from kgqa.corpus.index.lance_vectors import LanceVectors

        size = self._encoder.encode_questions(["?"]).shape[1]
        return LanceVectors(database.uri, size, prefix=database.prefix)

    def retriever(self, *arguments: Any, **options: Any) -> Retriever:
        """Return a retriever on the index; see `open_retriever`."""
        return open_retriever(self.index, *arguments, **options)

    def close(self) -> None:
        """Close the corpus. Closing twice does no harm."""
        self._resources.close()

    def __enter__(self) -> Corpus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
