"""The index of a corpus on disk. It is derived of the corpus and follows it when it is opened.

    index/
      index.json      which generation is current
      g<seq>-<n>/     one generation: pieces, BM25, matrices; never changed once it is written
      vectors/        the vectors (see `kgqa.corpus.index.vector_files`)

A new generation is written beside the old one and takes its place by an atomic replacement of `index.json`. A process
that is killed leaves the old index or the new one.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from kgqa.atomic_files import replace_file
from kgqa.corpus.index.array_folder import ArrayFolder, ArrayWriter
from kgqa.corpus.index.entries import INDEXED, Entries
from kgqa.corpus.index.piece_table import PieceTable, write_pieces
from kgqa.corpus.index.word_index import WordIndex, WordIndexBuilder
from kgqa.corpus.records import CorpusReader
from kgqa.errors import StoreBusy
from kgqa.lock_files import WAIT_SECONDS, only_one
from kgqa.model import Piece, PieceKind

FORMAT = 1
CURRENT = "index.json"
LOCK = "lock"
_ATTEMPTS = 5


class CorpusIndex:
    """An opened generation of the index. Thread-safe.

    Attributes:
        seq: Number of the last edit of the corpus that the index contains.
        notes: What the reader of a search should know about the index.
    """

    def __init__(self, folder: ArrayFolder, *, notes: tuple[str, ...] = ()) -> None:
        """Open a generation.

        Raises:
            ValueError: It is damaged.
        """
        self.seq = int(folder.about["seq"])
        self.notes = notes
        self._pieces = {kind: PieceTable(folder, kind) for kind in INDEXED}
        self._words = {kind: WordIndex(folder, kind) for kind in INDEXED}
        for kind in INDEXED:
            if len(self._pieces[kind]) != len(self._words[kind]):
                raise ValueError(f"the pieces and words of the kind {kind} do not belong together")

    @classmethod
    def open(cls, folder: Path, reader: CorpusReader, encoder: Any = None, *, identity: str = "") -> CorpusIndex:
        """Open the index of a corpus; if the corpus has changed since, bring the index up to date first.

        Args:
            folder: The folder of the index; created if it is missing.
            reader: The corpus.
            encoder: The embedding model.
            identity: A string that differs for different corpora, and for states of one corpus with the same `seq`.

        Raises:
            StoreBusy: There is no index yet, and another process is building it.
        """
        wanted = {"seq": reader.seq, "identity": identity}
        found = _load(cls, folder)
        if found is not None and found[1] == wanted:
            return found[0]
        folder.mkdir(parents=True, exist_ok=True)
        with only_one(folder / LOCK, wait_seconds=WAIT_SECONDS) as alone:
            found = _load(cls, folder)  # another process may have built it meanwhile
            if found is not None and found[1] == wanted:
                return found[0]
            if not alone:
                if found is None:
                    raise StoreBusy("Another process is building the index of this corpus.", "Try again later.")
                found[0].notes = ("The index is being updated; the latest changes cannot be found yet.",)
                return found[0]
            _build(folder, reader, wanted)
            found = _load(cls, folder)
            if found is None:
                raise StoreBusy(f"The index in {folder} was changed by another program.", "Try again.")
            return found[0]

    def pieces(self, kind: PieceKind) -> PieceTable:
        """Return the pieces of one kind."""
        return self._pieces[kind]

    def bm25(self, kind: PieceKind) -> WordIndex:
        """Return the BM25 index of one kind."""
        return self._words[kind]


def _load(cls: type[CorpusIndex], folder: Path) -> tuple[CorpusIndex, dict[str, Any]] | None:
    """Open the current generation with its state; None if there is none that can be used."""
    for _ in range(_ATTEMPTS):  # a generation that is read may be removed, because a newer one has taken its place
        try:
            name = _current(folder)
            opened = ArrayFolder(folder / name)
            if opened.about["format"] != FORMAT:
                return None
            return cls(opened), {key: opened.about[key] for key in ("seq", "identity")}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            with suppress(OSError, ValueError):
                if _current(folder) == name:
                    return None
    return None


def _current(folder: Path) -> str:
    data = json.loads((folder / CURRENT).read_text(encoding="utf-8"))
    name = data["generation"] if isinstance(data, dict) else None
    if not isinstance(name, str) or not name.startswith("g") or name != os.path.basename(name):
        raise ValueError("index.json names no generation")
    return name


def _build(folder: Path, reader: CorpusReader, state: dict[str, Any]) -> None:
    name = _new_name(folder, state["seq"])
    writer = ArrayWriter(folder / name)
    entries = Entries(reader)
    for kind in INDEXED:
        words = WordIndexBuilder()

        def pieces(kind: PieceKind = kind, words: WordIndexBuilder = words) -> Iterator[Piece]:
            for entry in entries.of(kind):
                words.add(entry.text)
                yield entry.piece

        write_pieces(writer, kind, pieces())
        words.write(writer, kind)
    writer.finish({"format": FORMAT, **state})
    replace_file(folder / CURRENT, [json.dumps({"format": FORMAT, "generation": name}).encode()])
    for other in folder.glob("g*"):
        if other.name != name and other.is_dir():
            shutil.rmtree(other, ignore_errors=True)


def _new_name(folder: Path, seq: int) -> str:
    number = 0
    while (folder / f"g{seq}-{number}").exists():
        number += 1
    return f"g{seq}-{number}"
