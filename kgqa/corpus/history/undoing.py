"""Which edits an undo is about, which others build on them, and undoing them all together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgqa.corpus.edit_log import Edit
from kgqa.corpus.editor import Editor
from kgqa.corpus.items import EDIT
from kgqa.corpus.storage.database import Database
from kgqa.errors import CorpusError
from kgqa.text.hints import Option


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """Edits to undo.

    Attributes:
        edits: The chosen edits that are not undone, in the order of the log.
        dependents: Others that build on them, in the order of the log.
        undone: Chosen edits that are undone already.
    """

    edits: tuple[Edit, ...]
    dependents: tuple[Edit, ...] = ()
    undone: tuple[Edit, ...] = ()


def find_edit(database: Database, name: str) -> Edit:
    """Return an edit by its number in the log, its id, or the first digits of its hash.

    Raises:
        CorpusError: there is none, or there are several.
    """
    hint = "List the edits: kgqa edits list CORPUS"
    if name.isdecimal() and len(name) < 12 and (by_number := list(database.edits(int(name) - 1, int(name)))):
        return by_number[0]
    hash_ = name.removeprefix(EDIT)
    found = [edit for edit in database.edits() if edit.id.removeprefix(EDIT).startswith(hash_)] if hash_ else []
    if len(found) != 1:
        problem = f"Several edits begin with {name[:60]}." if found else f"There is no edit {name[:60]}."
        raise CorpusError(problem, hint)
    return found[0]


def plan_undo(
    database: Database, *, edits: Iterable[Edit] = (), session: str | None = None, source: str | None = None
) -> UndoPlan:
    """Find what to undo.

    Args:
        edits: edits to undo.
        session: undo the edits of this session.
        source: undo the edits that rest on this IRI or URL.

    Raises:
        CorpusError: nothing is chosen, or a name is empty.
    """
    if "" in (session, source):  # edits of documents have no session
        raise CorpusError("The name of a session or a source is empty.", "List the edits: kgqa edits list CORPUS")
    chosen = {edit.id: edit for edit in edits}
    if session is not None or source is not None:
        for edit in database.edits():
            # an undo is undone only by name: otherwise it would bring back what the session took away
            if edit.kind != "undo" and (
                (session is not None and edit.session == session)
                or (source is not None and any(each.iri == source for each in edit.sources))
            ):
                chosen[edit.id] = edit
    if not chosen:
        about = f"of the session {session}" if session is not None else f"that rests on {source}"
        raise CorpusError(f"There is no edit {about}.", "List the edits: kgqa edits list CORPUS")
    active = {id: edit for id, edit in chosen.items() if database.is_active(edit)}
    dependents: dict[str, Edit] = {}
    for edit in active.values():
        dependents |= {each.id: each for each in database.dependents(edit) if each.id not in active}
    return UndoPlan(
        _in_order(active.values()),
        _in_order(dependents.values()),
        _in_order(edit for edit in chosen.values() if edit.id not in active),
    )


def undo_all(
    editor: Editor, plan: UndoPlan, *, agent: str, reason: str = "", cascade: bool = False
) -> tuple[Edit, ...]:
    """Undo edits, the last one first, all or none of them; `Editor.publish` then shows it in the graphs.

    Args:
        cascade: whether to undo the edits that build on them, too.

    Returns:
        The new edits.

    Raises:
        CorpusError: other edits build on them and `cascade` is False. Nothing is changed.
    """
    if plan.dependents and not cascade:
        count = "1 other edit builds" if len(plan.dependents) == 1 else f"{len(plan.dependents):,} other edits build"
        raise CorpusError(f"{count} on what is to be undone.", "Undo them, too: ", Option("cascade", True))
    with editor.database.transaction():
        done: list[Edit] = []
        for edit in reversed(_in_order((*plan.edits, *plan.dependents))):
            if editor.database.is_active(edit):
                done += editor.undo(edit.id, agent=agent, reason=reason)
        return tuple(done)


def _in_order(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    return tuple(sorted(edits, key=lambda edit: edit.seq))
