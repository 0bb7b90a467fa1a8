"""The edits of a corpus as people see them: those of the log, those that wait, and those that were rejected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kgqa.corpus.edit_log import Edit, EditSource
from kgqa.corpus.editing.proposals import GatedEdit, ProposedEdit
from kgqa.corpus.editing.trust import lowest
from kgqa.corpus.history.reviewing import ProposalBook
from kgqa.corpus.items import EDIT, HyperedgeItem, Party, StatementItem
from kgqa.corpus.storage.database import Database

STATES = ("live", "undone", "held", "waiting", "rejected", "gated")
"""The states of edits: in the log and not undone; undone; hides a text until a review; proposed; rejected in a review;
rejected by a gate."""
MAX_TEXTS = 20
"""Most texts of an edit that are read."""


@dataclass(frozen=True, slots=True)
class EditView:
    """One edit.

    Attributes:
        seq: Its number in the log; 0 if it is not in the log.
        id: Its IRI; "" for what a gate rejected.
        state: One of `STATES`.
        kind, at, agent, session, question, reason, target: see `kgqa.corpus.edit_log.Edit`.
        sources: What it rests on.
        adds, removes: The texts that it adds and removes, at most `MAX_TEXTS`.
        additions, removals: How many items it adds, and how many removals it has.
        quotes: The texts of its sources, as far as they were kept.
        decided: Who decided about it and when; "" if nobody did.
        why: Why it waits, or was rejected.
    """

    seq: int
    id: str
    state: str
    kind: str
    at: str
    agent: str
    session: str = ""
    question: str = ""
    reason: str = ""
    target: str = ""
    sources: tuple[EditSource, ...] = ()
    adds: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    additions: int = 0
    removals: int = 0
    quotes: tuple[str, ...] = ()
    decided: str = ""
    why: str = ""

    @property
    def short(self) -> str:
        """The first digits of its hash, by which people name it."""
        return self.id.removeprefix(EDIT)[:10]

    @property
    def trust(self) -> str:
        """How far it is trusted: as little as the least trusted of its sources; "" if it has none."""
        return lowest(each.trust for each in self.sources) if self.sources else ""


def edit_views(database: Database, book: ProposalBook, *, texts: bool = True) -> Iterator[EditView]:
    """Yield all edits: first those of the log in their order, then proposals and what the gates rejected.

    Args:
        texts: whether to read what the edits of the log change.
    """
    held = {edit.id for edit in book.held}
    for edit in database.edits():
        state = "held" if edit.id in held else "live" if database.is_active(edit) else "undone"
        yield view_of(database, book, edit, state, texts=texts)
    for id, proposal in book.proposals.items():
        if book.states[id] != "accepted":
            yield view_of_proposal(book, proposal)
    yield from map(_view_of_gated, book.gated)


def view_of(database: Database, book: ProposalBook, edit: Edit, state: str = "", *, texts: bool = True) -> EditView:
    """Return an edit of the log."""
    additions, removals = database.counts(edit)
    known = book.proposals.get(edit.id)
    adds: list[str] = []
    removes: list[str] = []
    if texts and additions <= MAX_TEXTS * 5:
        adds = [text for each in database.additions_of(edit) if (text := _text(each.item))]
    if texts and removals <= MAX_TEXTS * 5:
        items = [database.item(each.item) for each in database.removals_of(edit) if each.item]
        removes = [text for item in items if (text := _text(item))]
    return EditView(
        edit.seq,
        edit.id,
        state or ("live" if database.is_active(edit) else "undone"),
        edit.kind,
        edit.at,
        edit.agent,
        edit.session,
        edit.question,
        edit.reason,
        edit.target,
        edit.sources,
        tuple(adds[:MAX_TEXTS]),
        tuple(dict.fromkeys(removes))[:MAX_TEXTS],
        additions,
        removals,
        known.quotes if known else (),
        _decided(book, edit.id),
        book.decisions[edit.id].why if edit.id in book.decisions else "",
    )


def with_texts(database: Database, book: ProposalBook, view: EditView) -> EditView:
    """Return a view with what the edit changes, if it is one of the log."""
    edit = database.edit(view.id) if view.seq else None
    return view_of(database, book, edit, view.state) if edit else view


def view_of_proposal(book: ProposalBook, proposal: ProposedEdit) -> EditView:
    """Return a proposed edit."""
    edit = proposal.edit
    decision = book.decisions.get(edit.id)
    return EditView(
        0,
        edit.id,
        book.states[edit.id],
        edit.kind,
        edit.at,
        edit.agent,
        edit.session,
        edit.question,
        edit.reason,
        edit.target,
        edit.sources,
        tuple(text for each in edit.adds if (text := _text(each.item))),
        (proposal.target_text,) if edit.removes and proposal.target_text else (),
        len(edit.adds),
        len(edit.removes),
        proposal.quotes,
        _decided(book, edit.id),
        decision.why if decision else proposal.why,
    )


def disputed_text(view: EditView, book: ProposalBook) -> str:
    """Return the text beside which an edit stands, because that is trusted more; "" if it disputes none."""
    proposal = book.proposals.get(view.id)
    return proposal.target_text if proposal and view.kind == "update" and not view.removals else ""


def chosen_views(
    views: Iterable[EditView],
    *,
    session: str | None = None,
    source: str | None = None,
    kind: str | None = None,
    state: str | None = None,
) -> list[EditView]:
    """Return the edits with a session, a source (its IRI or URL), a kind and a state, as far as they are given."""
    return [
        each
        for each in views
        if (session is None or each.session == session)
        and (source is None or any(found.iri == source for found in each.sources))
        and (kind is None or each.kind == kind)
        and (state is None or each.state == state)
    ]


def view_object(view: EditView) -> dict[str, Any]:
    """Return an edit as a JSON object."""
    return {
        "seq": view.seq or None,
        "id": view.id,
        "state": view.state,
        "kind": view.kind,
        "at": view.at,
        "agent": view.agent,
        "session": view.session,
        "question": view.question,
        "reason": view.reason,
        "target": view.target,
        "trust": view.trust,
        "sources": [
            {
                "iri": each.iri,
                "begin": each.begin,
                "end": each.end,
                "digest": each.digest,
                "trust": each.trust,
                "quote": view.quotes[number] if number < len(view.quotes) else "",
            }
            for number, each in enumerate(view.sources)
        ],
        "adds": list(view.adds),
        "removes": list(view.removes),
        "additions": view.additions,
        "removals": view.removals,
        "decided": view.decided,
        "why": view.why,
    }


def _view_of_gated(gated: GatedEdit) -> EditView:
    return EditView(
        0,
        "",
        "gated",
        gated.kind,
        gated.at,
        gated.agent,
        gated.session,
        gated.question,
        target=gated.target,
        sources=tuple(EditSource(iri) for iri in gated.sources),
        adds=(gated.content,) if gated.content else (),
        why=f"{gated.rule}: {gated.why}",
    )


def _decided(book: ProposalBook, id: str) -> str:
    decision = book.decisions.get(id)
    return f"{decision.decision} by {decision.by}, {decision.at}" if decision else ""


def _text(item: object) -> str:
    if isinstance(item, HyperedgeItem):
        return item.segment
    if isinstance(item, StatementItem):
        value = item.object.name if isinstance(item.object, Party) else item.object.value
        return f"{item.subject.name} {item.relation} {value}"
    return ""
