"""A corpus with hyperedges about an invented island, and recorded pages that know better."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import Addition, ChunkItem, DocumentItem, EntityItem, HyperedgeItem, Party, digest
from kgqa.testing.agents.evograph_agent import FactGold

HYPEREDGES = {
    "Mara Holt was born in Tarn Harbour in 1871.": ("Mara Holt", "Tarn Harbour"),
    "Mara Holt built the first tide clock.": ("Mara Holt", "tide clock"),
    "Tarn Harbour is a town on the island Corrin.": ("Tarn Harbour", "Corrin"),
    "The lighthouse of Tarn Harbour was finished in 1830.": ("Tarn Harbour",),
    "The seals of Vell rest on the sands in some month.": ("Vell",),
}
"""The segments, each a document of its own, with their participants."""


@dataclass(frozen=True)
class Note:
    """A document that consists of a segment, with the names of its participants. `title`: else by its number."""

    segment: str
    names: tuple[str, ...]
    title: str = ""


NOTES = tuple(Note(segment, names) for segment, names in HYPEREDGES.items())
MISSING, VAGUE, FALSE = (
    "Where did Mara Holt die?",
    "When do the seals of Vell rest on the sands?",
    "When was the lighthouse of Tarn Harbour finished?",
)
PAGES = {
    "https://island.example/holt": "Mara Holt died in Oster Quay in 1930.",
    "https://island.example/seals": "The seals of Vell rest on the sands in March.",
    "https://island.example/light": "The lighthouse of Tarn Harbour was finished in 1834.",
}
QUESTIONS = {
    MISSING: FactGold("Mara Holt died", "Mara Holt died in Oster Quay in 1930.", "Oster Quay"),
    VAGUE: FactGold(
        "seals of Vell rest on the sands",
        "The seals of Vell rest on the sands in March.",
        "March",
        wrong="in some month",
        kind="update",
    ),
    FALSE: FactGold(
        "lighthouse of Tarn Harbour finished",
        "The lighthouse of Tarn Harbour was finished in 1834.",
        "1834",
        wrong="1830",
        kind="update",
    ),
}
"""Questions whose fact the graph lacks, states vaguely, and misstates."""


def write_hyper_corpus(path: Path, notes: Iterable[Note] = NOTES) -> Path:
    """Write the corpus, with a document and a chunk for each hyperedge."""
    folder = CorpusFolder(path)
    folder.create()
    with Editor(folder) as editor:
        for number, note in enumerate(notes):
            text = f"Note. {note.segment}"
            document = DocumentItem(f"{number}.txt", note.title or f"Note {number}", "text/plain", digest(text))
            chunk = ChunkItem(document.document, 0, len(text), text)
            place = (document.document, chunk.chunk)
            begin = text.index(note.segment)
            parties = [Party(name) for name in note.names]
            additions = [
                Addition(document, document.document),
                Addition(chunk, *place, 0, len(text)),
                *(Addition(EntityItem(party), *place, begin, len(text)) for party in parties),
                Addition(
                    HyperedgeItem(note.segment, tuple(("", party) for party in parties)), *place, begin, len(text)
                ),
            ]
            editor.apply("insert", additions, agent="reader", texts={document.document: text})
        editor.publish()
    return path


def write_web(file: Path) -> Path:
    """Write the recorded searches."""
    lines = []
    for (address, text), gold in zip(PAGES.items(), QUESTIONS.values()):
        passage = {"address": address, "text": text, "title": "The island"}
        lines.append(json.dumps({"query": gold.query, "passages": [passage]}))
    file.write_text("".join(f"{line}\n" for line in lines))
    return file
