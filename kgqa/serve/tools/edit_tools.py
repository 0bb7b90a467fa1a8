"""Lists the edits of a corpus, and decides about those that wait."""

from __future__ import annotations

from typing import Any, Literal

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.history.listing import edit_views, view_object, with_texts
from kgqa.corpus.history.reviewing import accept, read_book, reject
from kgqa.errors import CorpusError

MAX_EDITS = 200
_WAITING = ("waiting", "held")


def edits(corpus: Corpus | None) -> dict[str, Any]:
    """Return the edits of a corpus: {edits, waiting, total}; those that wait first, then the latest.

    Raises:
        CorpusError: there is no corpus.
    """
    with _reopened(corpus) as opened:
        book = read_book(opened.folder, opened.database)
        views = list(edit_views(opened.database, book, texts=False))
        waiting = [view for view in views if view.state in _WAITING]
        chosen = [*waiting, *reversed([view for view in views if view.state not in _WAITING])][:MAX_EDITS]
        objects = [view_object(with_texts(opened.database, book, view)) for view in chosen]
    return {"edits": objects, "waiting": len(waiting), "total": len(views)}


def decide(corpus: Corpus | None, id: str, decision: Literal["accept", "reject"], *, by: str) -> None:
    """Accept or reject an edit that waits. Both are kept in the corpus at once; an accepted edit is shown in its graph.

    Raises:
        CorpusError: there is no such edit that waits, or another process is writing to the corpus.
    """
    with _reopened(corpus, writable=decision == "accept") as opened:
        book = read_book(opened.folder, opened.database)
        chosen = [book.find(id)]
        if decision == "accept":
            try:
                accept(opened.editor, book, chosen, by=by)
            finally:
                opened.editor.publish()
        else:
            reject(opened.folder, book, chosen, by=by)


def _reopened(corpus: Corpus | None, *, writable: bool = False) -> Corpus:
    """Open a corpus once more, to read its log as it is now or to write to it."""
    if corpus is None:
        raise CorpusError("This graph was not made from a text corpus.")
    return Corpus.open(corpus.folder.path, writable=writable)
