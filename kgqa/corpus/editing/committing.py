"""What becomes of the edits of a question: they are proposed, committed, or end with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from kgqa.corpus.edit_log import Edit
from kgqa.corpus.editing.disputes import disputes_of
from kgqa.corpus.editing.holding import hold_back
from kgqa.corpus.editing.overlay import Overlay, OverlayEdit
from kgqa.corpus.editing.proposals import ACCEPTED, Decision, ProposalFile, ProposedEdit
from kgqa.corpus.editing.sources import MAX_QUOTE
from kgqa.corpus.editor import Editor
from kgqa.errors import CorpusError, StoreError

CommitMode = OneOf["proposed", "auto", "off"]
AUTO = "kgqa, committed at once"
"""Who decides about edits that are committed at once."""
_HIDES = "It hides a text of the corpus or of a user."
_BUILDS_ON = "It builds on an edit that waits."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of edits.

    Attributes:
        committed, proposed: The edits that are in the log now, and that wait for a review.
        notes: What a user should know.
    """

    committed: tuple[Edit, ...] = ()
    proposed: tuple[Edit, ...] = ()
    notes: tuple[str, ...] = ()

    def state_of(self, edit: Edit) -> str:
        """Return what became of an edit: committed, proposed, or overlay if it ends with the question."""
        if edit in self.committed:
            return "committed"
        return "proposed" if edit in self.proposed else "overlay"


def commit(
    overlay: Overlay,
    mode: CommitMode,
    *,
    guarded: bool = True,
    hold: bool = False,
) -> Outcome:
    """Propose or commit the edits of a question.

    Args:
        overlay: the edits; what the gates rejected is kept beside the proposals.
        mode: proposed: they wait for a review; auto: they are committed to the log, and the graph follows; off: they
            end with the question.
        guarded: whether an edit that hides a text of the corpus or of a user waits for a review even if mode is auto.
        hold: whether new texts of conflicts with edits that others committed meanwhile are hidden until a review.

    Returns:
        What became of them. If another process is writing to the corpus, they are proposed; if its folder cannot be
        written, they are lost. The notes say so.
    """
    edits = overlay.edits
    if mode == "off" or not (edits or overlay.gated):
        return Outcome()
    waits = _waiting(edits) if guarded and mode == "auto" else {}
    file = ProposalFile(overlay.corpus.folder.path)
    try:
        file.append([*overlay.gated, *(_proposal(each, waits.get(each.edit.id, "")) for each in edits)])
    except CorpusError as error:
        count = "1 edit was" if len(edits) == 1 else f"{len(edits):,} edits were"
        return Outcome(notes=(f"{count} not kept: {error.message}",) if edits else ())
    waiting = tuple(each.edit for each in edits if mode == "proposed" or each.edit.id in waits)
    ready = tuple(each.edit for each in edits if each.edit not in waiting)
    if not ready:
        return Outcome(proposed=waiting)
    notes: list[str] = []
    try:
        with Editor(overlay.corpus.folder) as editor:
            with editor.database.transaction():
                before = disputes_of(editor.database, editor.database.seq).contested if hold else frozenset()
                editor.merge(ready)
                if hold:
                    after = disputes_of(editor.database, editor.database.seq)
                    opposed = (
                        after.contested - before - {each.added.iri for each in edits if each.disputed and each.added}
                    )
                    held = len(list(hold_back(editor, opposed)))
                    notes += [_held_note(held)] if held else []
            at = max(each.at for each in ready)
            notes += _without_error(lambda: file.append([Decision(each.id, ACCEPTED, AUTO, at) for each in ready]))
            notes += _without_error(editor.publish)
    except (CorpusError, StoreError) as error:
        count = "1 edit waits" if len(ready) == 1 else f"{len(ready):,} edits wait"
        return Outcome(
            proposed=tuple(each.edit for each in edits),
            notes=(f"{count} for a review, because the corpus could not be changed: {error.message}",),
        )
    return Outcome(ready, waiting, notes=tuple(notes))


def _without_error(step: Callable[[], object]) -> Iterable[str]:
    """Run a step after the edits were committed; return a note if it failed. The next writer does it again."""
    try:
        step()
    except (CorpusError, StoreError) as error:
        return (f"The edits are committed, but {error.message[:1].lower()}{error.message[1:]}",)
    return ()


def _held_note(count: int) -> str:
    return f"{'1 text is' if count == 1 else f'{count:,} texts are'} in conflict, and hidden until kgqa edits review"


def _waiting(edits: Sequence[OverlayEdit]) -> dict[str, str]:
    """Return the ids of the edits that wait for a review, with the reason."""
    found: dict[str, str] = {}
    for each in edits:
        if each.hides_trusted:
            found[each.edit.id] = _HIDES
        elif found.keys() & {*each.edit.previous, *(source.iri for source in each.edit.sources)}:
            found[each.edit.id] = _BUILDS_ON
    return found


def _proposal(each: OverlayEdit, why: str) -> ProposedEdit:
    return ProposedEdit(each.edit, tuple(source.text[:MAX_QUOTE] for source in each.sources), each.target_text, why)
