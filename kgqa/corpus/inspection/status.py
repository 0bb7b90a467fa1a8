"""What a corpus contains, how it was built, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kgqa.corpus.building.feeds import TRIPLES
from kgqa.corpus.corpus import Corpus, vectors_of
from kgqa.corpus.counts import COUNTS, counts_of
from kgqa.corpus.storage.ledger import Ledger, Problem
from kgqa.storage.loading import parse_json, read_bytes
from kgqa.text.words import clean

SHOWN_PROBLEMS = 1_000


@dataclass(frozen=True)
class CorpusStatus:
    """The state of a corpus.

    Attributes:
        folder: The corpus. graph: Where its graph is. views: The names of its views.
        counts: Numbers of documents, chunks, entities, statements, hyperedges and communities.
        edits: Number of edits; `undone`: how many of them are cancelled.
        extract: The kind of extraction; `given` if the facts were extracted elsewhere.
        extractor: What extracted.
        chunk_size: The size of chunks.
        vectors: Where the vectors are; "" if they are in the folder.
        index: Whether the index is `current`, `outdated` or `missing`.
        problems: Numbers of files skipped, chunks failed or waiting, triples malformed, statements rejected.
        listed: The first problems of all kinds.
        bytes: Sizes on disk.
        notice: What the graph's store reports; "" for nothing.
    """

    folder: str
    graph: str
    views: tuple[str, ...]
    counts: Mapping[str, int]
    edits: int
    undone: int
    extract: str
    extractor: str
    chunk_size: str
    vectors: str
    index: str
    removed_files: tuple[str, ...] = ()
    problems: Mapping[str, int] = field(default_factory=dict)
    listed: tuple[Problem, ...] = ()
    bytes: Mapping[str, int] = field(default_factory=dict)


def corpus_status(path: Path | str) -> CorpusStatus:
    """Return the state of a corpus.

    Raises:
        CorpusError: There is no corpus, or it cannot be read.
    """
    with Corpus.open(path) as corpus:
        folder, database = corpus.folder, corpus.database
        ledger = Ledger(database)
        file = folder.file
        undone = sum(not database.is_active(edit) for edit in database.edits())
        return CorpusStatus(
            folder=str(folder.path),
            graph=str(file.location),
            views=tuple(file.views),
            counts=counts_of(corpus.reader, database.build.state(COUNTS)),
            edits=database.seq,
            undone=undone,
            extract=_extraction(ledger, clean(file.extract)),
            extractor=clean(file.extractor[0]) if file.extractor else "",
            chunk_size=clean(file.chunks),
            vectors=clean(vectors_of(folder)),
            index=_index_state(folder.index, database.seq),
            removed_files=tuple(name for name, entry in ledger.files().items() if entry.removed),
            problems=ledger.count_problems(),
            listed=tuple(ledger.problems(limit=SHOWN_PROBLEMS)),
            bytes=_sizes(folder.path),
        )


def _extraction(ledger: Ledger, mode: str) -> str:
    """Return the kind of extraction; `given` if all facts come from files of triples."""
    roots = {entry.root for entry in ledger.files().values()}
    return "given" if roots and all(root.startswith(TRIPLES) for root in roots) else mode


def _index_state(folder: Path, seq: int) -> str:
    with suppress(OSError, ValueError, KeyError, AttributeError):
        generation = parse_json(read_bytes(folder / "index.json"), dict[str, Any])["generation"]
        return "current" if generation.startswith(f"g{seq}-") else "outdated"
    return "missing"


def _sizes(folder: Path) -> dict[str, int]:
    """Return the sizes of the parts of a folder."""
    found: dict[str, int] = {}
    for entry in sorted(folder.iterdir()):
        files = [entry] if entry.is_file() else [each for each in entry.rglob("*") if each.is_file()]
        name = "corpus.sqlite" if entry.name.startswith("corpus.sqlite") else entry.name
        size = 0
        for each in files:
            with suppress(OSError):
                size += each.stat().st_size
        found[name] = found.get(name, 0) + size
    return found


def status_object(status: CorpusStatus) -> dict[str, Any]:
    """Return a status as a JSON object."""
    return {**asdict(status), "listed": [asdict(each) for each in status.listed]}


def corpus_documents(path: Path | str) -> list[dict[str, Any]]:
    """Return the documents of a corpus by source, each with its title, media type and number of chunks."""
    with Corpus.open(path) as corpus:
        chunks = Counter(each.document for each in corpus.reader.chunks())
        documents = sorted(corpus.reader.documents(), key=lambda each: each.source)
        return [{**asdict(each), "chunks": chunks[each.iri]} for each in documents]
