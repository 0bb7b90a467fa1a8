"""Hides the new texts of conflicts until a review has decided."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kgqa.corpus.edit_log import Edit
from kgqa.corpus.editing.live_hyperedges import tags_of_segments
from kgqa.corpus.editor import Editor
from kgqa.corpus.reader import DatabaseReader

HOLDER = "kgqa edits merge --hold"
"""The agent of edits that hide texts of conflicts."""


def hold_back(editor: Editor, contested: Collection[str]) -> Iterator[Edit]:
    """Hide texts of conflicts, an edit each; undoing it shows the text again. What a document says is not hidden.

    Args:
        editor: the Editor of the corpus.
        contested: the IRIs of live hyperedges.

    Yields:
        The edits.
    """
    database, seq = editor.database, editor.database.seq
    reader = DatabaseReader(database)
    for iri in sorted(contested):
        record = reader.hyperedge(iri)
        tags = tags_of_segments([record.segment], database, seq).get(iri, []) if record else []
        if tags and not any(tag.document for tag in tags):
            removals = sorted({tag.removal for tag in tags})
            yield editor.apply("delete", (), removals, agent=HOLDER, reason="conflict", target=iri)
