"""The index of a corpus on disk. It is derived of the corpus and follows it when it is opened.

    index/
      index.json      which generation is current
      g<seq>-<n>/     one generation: pieces, BM25, the graph of PageRank; never changed once it is written
      vectors/        the vectors (see `kgqa.corpus.index.vector_files`), unless they are kept elsewhere

A new generation is written beside the old one and takes its place by an atomic replacement of `index.json`. A process
that is killed leaves the old index or the new one, and the vectors that it has computed.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from kgqa.corpus.index.array_folder import ArrayFolder
from kgqa.corpus.index.entries import INDEXED
from kgqa.corpus.index.generation import FORMAT, Progress, write_generation
from kgqa.corpus.index.graph_matrix import GraphMatrix, read_graph_matrix
from kgqa.corpus.index.piece_table import PieceTable
from kgqa.corpus.index.vector_files import VectorFiles
from kgqa.corpus.index.vector_store import VectorSnapshot, VectorStore
from kgqa.corpus.index.windows import TextEncoder
from kgqa.corpus.index.word_index import WordIndex
from kgqa.corpus.records import CorpusReader
from kgqa.errors import StoreBusy, StoreUnavailable
from kgqa.model import PieceKind
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.foreign import refuse_links
from kgqa.storage.lock_files import WAIT_SECONDS, only_one
from kgqa.text.hints import Command, Hint, Option
from kgqa.text.words import clean

CURRENT = "index.json"
LOCK = "lock"
VECTORS = "vectors"
NO_VECTORS = "Without an embedding model, texts are found by the words that they share with the question (BM25)."
OUTDATED = "The index is being updated by another process; the latest changes of the corpus cannot be found yet."
OLDER = Hint(
    "The index is older than the corpus, whose latest changes cannot be found yet. Run ", Command("corpus build"), "."
)
_ATTEMPTS = 5


class CorpusIndex:
    """An opened generation of the index. Thread-safe.

    Attributes:
        seq: Number of the last edit of the corpus that the index contains.
        encoder: The embedding model; None if the index has no vectors.
        notes: What the user should know about results.
    """

    def __init__(self, folder: ArrayFolder, store: VectorStore | None, encoder: TextEncoder | None) -> None:
        """Open a generation.

        Raises:
            ValueError: It is damaged.
        """
        self.seq = int(folder.about["seq"])
        self.encoder = encoder
        self.notes: tuple[str, ...] = () if encoder is not None else (NO_VECTORS,)
        self._folder = folder
        self._pieces = {kind: PieceTable(folder, kind) for kind in INDEXED}
        self._words = {kind: WordIndex(folder, kind) for kind in INDEXED}
        for kind in INDEXED:
            if len(self._pieces[kind]) != len(self._words[kind]):
                raise ValueError(f"the pieces and words of the kind {kind} do not belong together")
        self._store = store
        self.vectors: VectorSnapshot | None = None
        if store is not None and encoder is not None:
            self.vectors = store.snapshot(str(folder.about["vectors"]))

    @classmethod
    def open(
        cls,
        folder: Path,
        reader: CorpusReader,
        encoder: TextEncoder | None = None,
        *,
        identity: str = "",
        store: VectorStore | None = None,
        progress: Progress | None = None,
        update: bool = True,
    ) -> CorpusIndex:
        """Open the index of a corpus; if the corpus has changed since, bring the index up to date first.

        Only texts that are new are embedded. If another process is updating the index, the last finished one is opened,
        with a note.

        Args:
            folder: The folder of the index; created if it is missing.
            reader: The corpus.
            encoder: The embedding model; None to search by words only.
            identity: A string that differs for different corpora, and for states of one corpus with the same `seq`.
            store: Where the vectors are kept; None for files in `folder`.
            progress: Called as texts are embedded.
            update: Whether the index may be written; otherwise an older one is opened, with a note.

        Raises:
            StoreBusy: There is no index yet, and another process is building it.
            StoreUnavailable: The folder cannot be written, or contains links; or there is no index yet, and `update` is
                False.
        """
        wanted = {"seq": reader.seq, "identity": identity, "encoder": encoder.name if encoder is not None else ""}
        if encoder is not None and store is None:
            store = VectorFiles(folder / VECTORS, encoder.encode_questions(["?"]).shape[1])
        found = _load(folder, store, encoder)
        if found is not None and _is_state(found, wanted):
            return found
        if not update and found is not None:
            found.notes = (*found.notes, str(OLDER))
            return found
        if not update:
            raise StoreUnavailable(
                f"The corpus {clean(str(folder.parent))} has no index for this embedding model.",
                "Run ",
                Command("corpus build"),
                ", or search by words: ",
                Option("embeddings", "off"),
            )
        refuse_links(folder, StoreUnavailable, itself=True)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with only_one(folder / LOCK, wait_seconds=WAIT_SECONDS) as alone:
                found = _load(folder, store, encoder)  # another process may have written it meanwhile
                if found is not None and _is_state(found, wanted):
                    return found
                if alone:
                    _update(folder, reader, wanted, encoder, store, progress)
                    found = _load(folder, store, encoder)
                elif found is not None:
                    found.notes = (*found.notes, OUTDATED)
        except OSError as error:
            raise StoreUnavailable(f"The index in {folder} cannot be written: {error.strerror or error}.") from error
        if found is None:
            raise StoreBusy("Another process is building the index of this corpus.", "Try again later.")
        return found

    def pieces(self, kind: PieceKind) -> PieceTable:
        """Return the pieces of one kind."""
        return self._pieces[kind]

    def bm25(self, kind: PieceKind) -> WordIndex:
        """Return the BM25 index of one kind."""
        return self._words[kind]

    @cached_property
    def graph(self) -> GraphMatrix:
        """The graph on which PageRank runs."""
        sizes = {kind: len(self._pieces[kind]) for kind in INDEXED}
        return read_graph_matrix(
            self._folder,
            entities=sizes["entity"],
            chunks=sizes["chunk"],
            facts=sizes["statement"] + sizes["hyperedge"],
        )

    def close(self) -> None:
        """Close the vectors; files that are mapped into memory are closed when nothing uses them any more."""
        if self.vectors is not None:
            self.vectors.close()
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> CorpusIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_state(index: CorpusIndex, wanted: dict[str, Any]) -> bool:
    """Return whether an index has this state. Without an encoder, an index with vectors does as well."""
    about = index._folder.about
    return all(about[key] == value for key, value in wanted.items() if value or key != "encoder")


def _load(folder: Path, store: VectorStore | None, encoder: TextEncoder | None) -> CorpusIndex | None:
    """Open the current generation; None if there is none that can be used."""
    for _ in range(_ATTEMPTS):  # a generation that is read may be removed, because a newer one has taken its place
        name = ""
        try:
            name = _current(folder)
            opened = ArrayFolder(folder / name)
            if opened.about["format"] != FORMAT or not {"seq", "identity", "encoder"} <= opened.about.keys():
                return None
            if encoder is not None and opened.about["encoder"] != encoder.name:
                return None
            return CorpusIndex(opened, store, encoder)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            with suppress(OSError, ValueError, TypeError):
                if _current(folder) == name:
                    return None
    return None


def _current(folder: Path) -> str:
    with open(folder / CURRENT, "rb") as file:
        data = json.loads(file.read(1 << 16))
    name = data["generation"] if isinstance(data, dict) and "generation" in data else None
    if not isinstance(name, str) or not name.startswith("g") or name != os.path.basename(name):
        raise ValueError("index.json names no generation")
    return name


def _update(
    folder: Path,
    reader: CorpusReader,
    state: dict[str, Any],
    encoder: TextEncoder | None,
    store: VectorStore | None,
    progress: Progress | None,
) -> None:
    """Write a new generation, make it the current one, and remove all others."""
    name, before = _new_name(folder, state["seq"]), None
    with suppress(OSError, ValueError):
        before = ArrayFolder(folder / _current(folder))
    options: dict[str, Any] = {"encoder": encoder, "store": store, "progress": progress, "before": before}
    version = write_generation(folder / name, reader, state, **options)
    replace_file(folder / CURRENT, [json.dumps({"format": FORMAT, "generation": name}).encode()])
    if store is not None and version:
        store.discard(version)
    for other in folder.glob("g*"):
        if other.name != name and other.is_dir():
            shutil.rmtree(other, ignore_errors=True)


def _new_name(folder: Path, seq: int) -> str:
    number = 0
    while (folder / f"g{seq}-{number}").exists():
        number += 1
    return f"g{seq}-{number}"
