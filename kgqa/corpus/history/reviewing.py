"""Decides about proposed edits, and about texts that a merge holds back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kgqa.corpus.edit_log import Edit, ordered
from kgqa.corpus.editing.holding import HOLDER
from kgqa.corpus.editing.proposals import (
    ACCEPTED,
    REJECTED,
    Decision,
    GatedEdit,
    ProposalFile,
    ProposedEdit,
)
from kgqa.corpus.editor import Editor
from kgqa.corpus.folder import CorpusFolder
from kgqa.corpus.items import EDIT
from kgqa.corpus.storage.database import Database
from kgqa.errors import CorpusError
from kgqa.text.hints import Hint


@dataclass(frozen=True)
class ProposalBook:
    """All that the file of proposals says, and which edits are held back.

    Attributes:
        proposals: The proposed edits by id, in the order of the file.
        states: waiting, accepted or rejected, by id.
        decisions: The last decision about each edit that has one, by id.
        gated: What the gates rejected.
        held: The edits of the log that hold a text back, and that nobody decided about.
    """

    proposals: dict[str, ProposedEdit] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    decisions: dict[str, Decision] = field(default_factory=dict)
    gated: tuple[GatedEdit, ...] = ()
    held: tuple[Edit, ...] = ()

    @property
    def waiting(self) -> list[ProposedEdit]:
        """The proposed edits that nobody decided about."""
        return [each for id, each in self.proposals.items() if self.states[id] == "waiting"]

    def pending(self, session: str | None = None) -> list[ProposedEdit | Edit]:
        """Return the proposed edits that wait, and those that hold a text back; of a session, if it is given."""
        proposed = [each for each in self.waiting if session is None or each.edit.session == session]
        return [*proposed, *(edit for edit in self.held if session is None or edit.session == session)]

    def find(self, name: str) -> ProposedEdit | Edit:
        """Return a proposed edit, or one that holds a text back, by its id or the first digits of its hash.

        Raises:
            CorpusError: there is none, or there are several.
        """
        hash_ = name.removeprefix(EDIT)
        several: list[ProposedEdit | Edit] = [
            each for id, each in self.proposals.items() if hash_ and id.removeprefix(EDIT).startswith(hash_)
        ]
        several += [edit for edit in self.held if hash_ and edit.id.removeprefix(EDIT).startswith(hash_)]
        if len(several) != 1:
            problem = (
                f"Several edits begin with {name[:60]}." if several else f"No proposed edit begins with {name[:60]}."
            )
            raise CorpusError(
                problem, Hint("List them: kgqa edits list CORPUS --state waiting", python="List book.pending().")
            )
        return several[0]


def read_book(folder: CorpusFolder, database: Database) -> ProposalBook:
    """Read the proposals of a corpus.

    Raises:
        CorpusError: the file was changed.
    """
    proposals: dict[str, ProposedEdit] = {}
    decisions: dict[str, Decision] = {}
    gated = []
    for record in ProposalFile(folder.path).records():
        if isinstance(record, ProposedEdit):
            proposals.setdefault(record.edit.id, record)
        elif isinstance(record, Decision):
            decisions[record.edit] = record
        else:
            gated.append(record)
    states = {}
    for id in proposals:
        rejected = id in decisions and decisions[id].decision == REJECTED
        states[id] = "accepted" if database.edit(id) else "rejected" if rejected else "waiting"
    held = tuple(
        edit
        for edit in database.edits()
        if edit.agent == HOLDER and edit.kind == "delete" and edit.id not in decisions and database.is_active(edit)
    )
    return ProposalBook(proposals, states, decisions, tuple(gated), held)


def accept(
    editor: Editor, book: ProposalBook, chosen: Iterable[ProposedEdit | Edit], *, by: str, why: str = ""
) -> list[Edit]:
    """Commit proposed edits, and let texts live again that are held back; `Editor.publish` shows it in the graphs.

    Each edit is decided for itself: what was accepted before an error stays accepted.

    Args:
        editor: the Editor of the corpus.
        book: its proposals.
        chosen: the edits.
        by: who decides.
        why: a reason that is kept with the decision.

    Returns:
        The edits that were committed now.

    Raises:
        CorpusError: an edit builds on one that is neither in the log nor chosen.
    """
    chosen = list(chosen)
    file = ProposalFile(editor.folder.path)
    done: list[Edit] = []
    for edit in chosen:
        if isinstance(edit, Edit):
            done += editor.undo(edit.id, agent=by, reason=why or "accepted")
            file.append([Decision(edit.id, ACCEPTED, by, _now(), why)])
    for edit in ordered(each.edit for each in chosen if isinstance(each, ProposedEdit)):
        missing = [id for id in edit.previous if editor.database.edit(id) is None]
        if missing:
            known = missing[0] in book.proposals
            raise CorpusError(
                f"The edit {short(edit)} builds on {missing[0].removeprefix(EDIT)[:10]}, which is not in the log.",
                "Accept that one, too." if known else "It was proposed for another state of the corpus; reject it.",
            )
        if editor.merge([edit]):
            done.append(edit)
        file.append([Decision(edit.id, ACCEPTED, by, _now(), why)])
    return done


def reject(
    folder: CorpusFolder, book: ProposalBook, chosen: Sequence[ProposedEdit | Edit], *, by: str, why: str = ""
) -> None:
    """Keep the decision that edits are rejected. Proposed edits never enter the log; texts held back stay hidden.

    Raises:
        CorpusError: a proposed edit was accepted already, or the decisions cannot be written. Nothing is decided.
    """
    for each in chosen:
        if isinstance(each, ProposedEdit) and book.states[each.edit.id] == "accepted":
            name = short(each.edit)
            raise CorpusError(f"The edit {name} was accepted already.", f"Undo it: kgqa edits undo CORPUS {name}")
    ids = [each.id if isinstance(each, Edit) else each.edit.id for each in chosen]
    ProposalFile(folder.path).append([Decision(id, REJECTED, by, _now(), why) for id in ids])


def short(edit: Edit) -> str:
    """Return the first digits of the hash of an edit, by which people name it."""
    return edit.id.removeprefix(EDIT)[:10]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
