"""The edits that a language model proposed in a question: texts, sources, gate, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgqa.report.agents.differences import Words, changed_words
from kgqa.report.agents.observations import observation_of
from kgqa.text.words import counted
from kgqa.trace import EditDecided, EditProposed, Event, Seen

MAX_EDITS = 60
MAX_SOURCES = 20
_TITLES = {"insert": "new text", "update": "replaced text", "delete": "deleted text"}


@dataclass(frozen=True, slots=True)
class ShownSource:
    """A source of an edit. `iri`: its IRI or URL. `text`: as the language model was shown it; "" if unknown."""

    number: int
    iri: str
    trust: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class ShownEdit:
    """A proposed edit as a page shows it. `kind`: insert, update or delete.

    `old`, `new`: the texts before and after, with the words that changed; empty if there is none. `outcome`: accepted,
    rejected or open. `state`: what became of it, in words. `rule`, `why`: the gate that rejected it.
    """

    number: int
    kind: str
    title: str
    old: tuple[Words, ...]
    new: tuple[Words, ...]
    outcome: str
    state: str
    rule: str = ""
    why: str = ""
    reason: str = ""
    target: str = ""
    iri: str = ""
    step: int = 1
    sources: tuple[ShownSource, ...] = ()
    sources_more: int = 0


@dataclass(frozen=True)
class ShownEdits:
    """The edits of a question. `summary`: how many were accepted and rejected. `left_out`: number of further ones."""

    edits: tuple[ShownEdit, ...]
    summary: str
    left_out: int = 0


def edits_of(trace: Iterable[Event]) -> ShownEdits | None:
    """Return the edits that were proposed, in this order; None without any."""
    proposed: dict[int, EditProposed] = {}
    decided: dict[int, EditDecided] = {}
    texts: dict[int, str] = {}
    for event in trace:
        match event:
            case EditProposed():
                proposed.setdefault(event.proposal, event)
            case EditDecided():  # the last one tells the state after the question
                decided[event.proposal] = event
            case Seen():
                texts |= {each.number: each.text for each in observation_of(event).results}
    if not proposed:
        return None
    shown = [_shown(each, decided.get(number), texts) for number, each in proposed.items()]
    counts = {name: sum(each.outcome == name for each in shown) for name in ("accepted", "rejected", "open")}
    parts = [f"{counts['accepted']:,} accepted", f"{counts['rejected']:,} rejected"]
    if counts["open"]:
        parts.append(f"{counts['open']:,} not decided")
    summary = f"{counted(len(shown), 'edit')} proposed: {', '.join(parts)}"
    return ShownEdits(tuple(shown[:MAX_EDITS]), summary, max(0, len(shown) - MAX_EDITS))


def _shown(edit: EditProposed, decided: EditDecided | None, texts: Mapping[int, str]) -> ShownEdit:
    old = edit.target_text if edit.edit != "insert" else ""
    new = edit.content if edit.edit != "delete" else ""
    before, after = changed_words(old, new)
    outcome, state = "open", "not decided"
    if decided:
        outcome = "rejected" if decided.state == "rejected" else "accepted"
        state = decided.state_words()
    return ShownEdit(
        number=edit.proposal,
        kind=edit.edit,
        title=_TITLES.get(edit.edit, edit.edit),
        old=before,
        new=after,
        outcome=outcome,
        state=state,
        rule=decided.rule if decided else "",
        why=decided.why if decided else "",
        reason=edit.reason,
        target="" if old else edit.target,
        iri=decided.edit if decided else "",
        step=edit.step,
        sources=tuple(
            ShownSource(each.number, each.iri, each.trust, texts.get(each.number, ""))
            for each in edit.sources[:MAX_SOURCES]
        ),
        sources_more=max(0, len(edit.sources) - MAX_SOURCES),
    )
