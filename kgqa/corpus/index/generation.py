"""Writes one generation of the index: the pieces, words, vectors and the graph of a corpus at one edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kgqa.corpus.index.array_folder import ArrayFolder, ArrayWriter
from kgqa.corpus.index.entries import INDEXED, Entries, IndexEntry
from kgqa.corpus.index.graph_matrix import write_graph_matrix
from kgqa.corpus.index.piece_table import write_pieces
from kgqa.corpus.index.similar_names import (
    MAX_COMPARED,
    SimilarNames,
    find_similar_names,
    read_known_names,
    write_similar_names,
)
from kgqa.corpus.index.vector_store import VectorStore
from kgqa.corpus.index.windows import TextEncoder, text_digest, window_texts
from kgqa.corpus.index.word_index import WordIndexBuilder
from kgqa.corpus.records import CorpusReader
from kgqa.model import Piece, PieceKind

FORMAT = 3
"""Changes with the content of a generation; one of another format is written again."""
EMBEDDED_AT_A_TIME = 1024
"""Texts whose vectors are on the disk before the next ones are computed; an encoder may have a number of its own."""
Progress = Callable[[int, int], None]
"""Called with how many texts are embedded, and how many there are to embed."""


def write_generation(
    folder: Path,
    reader: CorpusReader,
    about: dict[str, Any],
    *,
    encoder: TextEncoder | None,
    store: VectorStore | None,
    progress: Progress | None = None,
    before: ArrayFolder | None = None,
) -> str:
    """Write a generation into a new folder; return the version of the vectors, "" if there are none.

    Args:
        folder: The new folder.
        reader: The corpus.
        about: Values for the manifest.
        encoder: The embedding model; None for an index without vectors.
        store: Where the vectors are kept; None without an encoder.
        progress: Called as texts are embedded.
        before: The generation before.
    """
    writer = ArrayWriter(folder)
    entries = Entries(reader)
    rows: dict[PieceKind, list[tuple[str, str]]] = {}
    for kind in INDEXED:
        words = WordIndexBuilder()
        rows[kind] = []

        def pieces(kind: PieceKind = kind, words: WordIndexBuilder = words) -> Iterator[Piece]:
            for entry in entries.of(kind):
                words.add(f"{entry.head}\n{entry.text}" if entry.head else entry.text)
                if encoder is not None:
                    rows[kind].append((entry.piece.iri, text_digest(encoder, entry)))
                yield entry.piece

        write_pieces(writer, kind, pieces())
        words.write(writer, kind)
    version = ""
    if encoder is not None and store is not None:
        _embed(entries, rows, encoder, store, progress)
        version = store.publish(rows)
    about = {**about, "format": FORMAT, "vectors": version, "encoder": encoder.name if version and encoder else ""}
    writer.finish(about)  # so that the pieces can be read
    similar = None
    if store is not None and version and len(rows["entity"]) <= MAX_COMPARED:
        similar = _similar_names(reader, rows["entity"], store, version, before)
        write_similar_names(writer, similar, [digest for _, digest in rows["entity"]])
    write_graph_matrix(writer, reader, ArrayFolder(folder), similar)
    writer.finish(about)
    return version


def _similar_names(
    reader: CorpusReader, rows: Sequence[tuple[str, str]], store: VectorStore, version: str, before: ArrayFolder | None
) -> SimilarNames:
    iris, digests = [iri for iri, _ in rows], [digest for _, digest in rows]
    names = [entity.name for entity in reader.entities()]
    snapshot = store.snapshot(version)
    try:
        known = read_known_names(before) if before is not None else None
        return find_similar_names(iris, names, digests, snapshot.vectors("entity"), known)
    finally:
        snapshot.close()


def _embed(
    entries: Entries,
    rows: dict[PieceKind, list[tuple[str, str]]],
    encoder: TextEncoder,
    store: VectorStore,
    progress: Progress | None,
) -> None:
    """Embed the texts of which the store has no vectors."""
    new: dict[PieceKind, set[str]] = {}
    for kind, pairs in rows.items():
        digests = {digest for _, digest in pairs}
        new[kind] = digests - store.known(list(digests)) - set().union(*new.values())
    total, done = sum(map(len, new.values())), 0
    for kind, wanted in new.items():
        for batch in _batches(entries, kind, wanted, encoder) if wanted else ():
            texts = window_texts(encoder, [entry for _, entry in batch])
            vectors = encoder.encode_once([window for windows in texts for window in windows])
            ends = np.cumsum([len(windows) for windows in texts])[:-1]
            parts = np.split(np.asarray(vectors, dtype=np.float32), ends)
            store.put([(digest, part) for (digest, _), part in zip(batch, parts)])
            done += len(batch)
            if progress is not None:
                progress(done, total)


def _batches(
    entries: Entries, kind: PieceKind, wanted: set[str], encoder: TextEncoder
) -> Iterator[list[tuple[str, IndexEntry]]]:
    at_once = getattr(encoder, "at_once", EMBEDDED_AT_A_TIME)
    batch: list[tuple[str, IndexEntry]] = []
    left = set(wanted)
    for entry in entries.of(kind):
        digest = text_digest(encoder, entry)
        if digest in left:
            left.remove(digest)
            batch.append((digest, entry))
        if len(batch) == at_once:
            yield batch
            batch = []
    if batch:
        yield batch
