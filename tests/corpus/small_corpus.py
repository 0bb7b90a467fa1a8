"""Small documents and the additions that are read from them, for tests of the Editor."""

from __future__ import annotations

from pathlib import Path

from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import (
    Addition,
    ChunkItem,
    DocumentItem,
    EntityItem,
    HyperedgeItem,
    Party,
    StatementItem,
    digest,
)
from kgqa.graph.query.text import render
from kgqa.model import Entity
from tests.graph.memory_store import MemoryStore

TIME = "2026-01-01T00:00:00.000Z"


def party(word: str) -> Party:
    """Return a party; `Ada/person` has a type."""
    name, _, kind = word.partition("/")
    return Party(name, kind)


def read_document(source: str, *facts: str) -> tuple[list[Addition], dict[str, str]]:
    """Return what is read from a document of one chunk a fact, and its text by its IRI.

    A fact is `subject relation object`; with more words after it, `subject segment object another`, it is a hyperedge.
    """
    text = "\n".join(facts)
    document = DocumentItem(source, source.title(), "text/plain", digest(text))
    found = [Addition(document, document.document)]
    begin = 0
    for fact in facts:
        end = begin + len(fact)
        chunk = ChunkItem(document.document, begin, end, fact)
        place = (document.document, chunk.chunk, begin, end)
        found.append(Addition(chunk, *place))
        subject, relation, *objects = fact.split()
        if len(objects) == 1:
            found.append(Addition(StatementItem(party(subject), relation, party(objects[0])), *place, confidence=0.5))
        else:
            parts = tuple(("", party(each)) for each in objects)
            found.append(Addition(HyperedgeItem(fact, (("agent", party(subject)), *parts), 0.9), *place))
        found.append(Addition(EntityItem(party(subject), f"{subject} of {source}"), *place))
        begin = end + 1
    return found, {document.document: text}


def new_editor(path: Path, **more) -> Editor:
    """Create a corpus and open its Editor; all edits have one time."""
    folder = CorpusFolder(path)
    folder.create()
    return Editor(folder, now=lambda: TIME, **more)


def insert(editor: Editor, source: str, *facts: str, kind="insert"):
    """Add a document, or read it again."""
    additions, texts = read_document(source, *facts)
    removals = editor.removals_of_document(additions[0].document) if kind == "update" else ()
    return editor.apply(kind, additions, removals, agent="reader", texts=texts)


class ServerStore(MemoryStore):
    """A server: each edit is visible at once, and `update` clears a graph."""

    def update(self, template, *, graph, **values):
        super().update(render(template, graph=Entity(graph), **values))
