"""Merges the log of another corpus, or the proposals of a session, into a corpus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kgqa.corpus.edit_log import Edit, ordered
from kgqa.corpus.editing.disputes import disputes_of
from kgqa.corpus.editing.holding import hold_back
from kgqa.corpus.editing.proposals import FILE_NAME, Decision, ProposalFile, ProposedEdit
from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import DocumentItem
from kgqa.corpus.storage.database import Database
from kgqa.errors import CorpusError


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge did.

    Attributes:
        edits: Number of edits that were missing in the log.
        proposals: Number of proposed edits that were not known.
        conflicts: Number of new pairs of edits that contradict each other.
        disputes: Number of new pairs of live hyperedges that contradict each other.
        held: The edits that hold back the texts of new conflicts.
    """

    edits: int = 0
    proposals: int = 0
    conflicts: int = 0
    disputes: int = 0
    held: tuple[Edit, ...] = ()


def merge_from(editor: Editor, other: Path, *, hold: bool = False) -> Merged:
    """Append what is missing in a corpus; `Editor.publish` then shows it in the graphs.

    Args:
        editor: the Editor of the corpus.
        other: the folder of another corpus, or a file of proposals.
        hold: whether the new texts of new conflicts are hidden until a review.

    Raises:
        CorpusError: the other is no corpus and no such file, or an edit is not what its id says. Nothing is changed.
    """
    if other.is_file():
        return Merged(proposals=_merge_proposals(editor, other.parent, other.name))
    folder = CorpusFolder(other)
    folder.file  # noqa: B018 - raises the error for a folder without a corpus
    database = editor.database
    before = disputes_of(database, database.seq)
    with Database(folder.database) as theirs, database.transaction():
        count = sum(1 for _ in _append_missing(database, theirs))
        after = disputes_of(database, database.seq)
        held = tuple(hold_back(editor, after.contested - before.contested)) if hold else ()
    proposals = _merge_proposals(editor, folder.path, FILE_NAME)
    now = disputes_of(database, database.seq)
    return Merged(
        count,
        proposals,
        len(after.edits - before.edits),
        len(now.hyperedges - before.hyperedges),
        held,
    )


def _append_missing(mine: Database, theirs: Database) -> Iterator[Edit]:
    """Append the edits that are missing, with their content and the texts of their documents."""
    missing = [edit for edit in theirs.edits() if mine.edit(edit.id) is None]
    known = {edit.id for edit in missing}
    try:
        in_order = ordered(missing)
    except ValueError as error:
        raise CorpusError(f"The other log is damaged: {error}.") from error
    for edit in in_order:
        for id in edit.previous:
            if id not in known and mine.edit(id) is None:
                raise CorpusError(f"The other log is damaged: the edit {id} before {edit.id} is missing.")
        yield mine.append(edit, theirs.additions_of(edit), theirs.removals_of(edit))
        for addition in theirs.additions_of(edit):
            item = addition.item
            if isinstance(item, DocumentItem) and mine.text(item.document, item.digest) is None:
                text = theirs.text(item.document, item.digest)
                if text is not None:
                    mine.put_text(item.document, item.digest, text)


def _merge_proposals(editor: Editor, folder: Path, name: str) -> int:
    mine = ProposalFile(editor.folder.path)
    known = {each.edit.id for each in mine.records() if isinstance(each, ProposedEdit)}
    new: dict[str, ProposedEdit] = {}
    decisions: dict[str, Decision] = {}
    for each in ProposalFile(folder, name).records():
        if isinstance(each, ProposedEdit) and each.edit.id not in known:
            new.setdefault(each.edit.id, each)
        elif isinstance(each, Decision) and each.edit in new:
            decisions[each.edit] = each
    mine.append([*new.values(), *decisions.values()])
    return len(new)
