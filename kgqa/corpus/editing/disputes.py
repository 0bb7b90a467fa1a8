"""Which edits and hyperedges of a corpus contradict each other.

Two edits do if they removed or replaced the same text independently of each other, and at least one of them put a new
text in its place (`kgqa.corpus.edit_log.conflicts`). All the new texts are live. A new text is also in conflict with
the text that an update disputes, and does not remove because it is trusted more; what replaces the new text later
inherits the conflict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from kgqa.corpus.edit_log import Edit, Removal, cancelled_edits
from kgqa.corpus.editing.live_hyperedges import HyperedgeTag, tags_of_segments
from kgqa.corpus.items import Addition, HyperedgeItem, item_key, normal_name
from kgqa.corpus.storage.database import Database

Pair = tuple[str, str]
_NewText = tuple[Addition, HyperedgeItem]
_DISPUTED = "in conflict with: "
"""Begins the reason of the addition of a dispute; the texts that it disputes follow, one per line."""


@dataclass(frozen=True)
class Disputes:
    """What contradicts each other.

    Attributes:
        hyperedges: Pairs of live hyperedges, each sorted.
        edits: Pairs of edits, each sorted.
        contested: The live hyperedges that edits put in the place of another, while others removed, replaced or kept
            it.
    """

    hyperedges: frozenset[Pair] = frozenset()
    edits: frozenset[Pair] = frozenset()
    contested: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Candidates:
    """Edits that may be in conflict.

    Attributes:
        active: The edits that are not undone, with their content.
        new: The hyperedges that updates among them add, by the id of the edit.
        disputed: The texts with which these are in conflict, by the id of the edit.
    """

    active: Sequence[Edit] = ()
    new: Mapping[str, Sequence[_NewText]] = field(default_factory=dict)
    disputed: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def segments(self) -> set[str]:
        """The segments of hyperedges that may contradict each other."""
        return {item.segment for items in self.new.values() for _, item in items}.union(*self.disputed.values())


def candidates(database: Database, seq: int) -> Candidates:
    """Return the edits up to edit `seq` that may be in conflict after it."""
    edits = database.edits_in_conflict(seq, _DISPUTED)
    if all(edit.kind == "undo" for edit in edits):
        return Candidates()
    cancelled = cancelled_edits(edits)
    active = [database.whole(edit) for edit in edits if edit.kind != "undo" and edit.id not in cancelled]
    new = {edit.id: list(_new_texts(edit)) for edit in active}
    return Candidates(active, new, {edit.id: _disputed(new[edit.id]) for edit in active})


def disputes_of(database: Database, seq: int) -> Disputes:
    """Return what contradicts each other after edit `seq`."""
    found = candidates(database, seq)
    return disputes_among(found, tags_of_segments(found.segments, database, seq)) if found.active else Disputes()


def disputes_among(found: Candidates, tags: Mapping[str, Sequence[HyperedgeTag]]) -> Disputes:
    """Return which of the edits that may be in conflict are, and which live hyperedges.

    Args:
        found: the edits.
        tags: the live tags of at least the hyperedges with their segments.
    """
    active, new, old = found.active, found.new, found.disputed
    live: dict[Pair, str] = {}
    """The IRI of the live hyperedge that an edit says, by the id of the edit and the key of the item."""
    by_text: dict[str, set[str]] = defaultdict(set)
    for iri, several in tags.items():
        for tag in several:
            by_text[tag.segment].add(iri)
            if not tag.document:
                live[tag.edit, tag.removal.item] = iri
    hyperedges: set[Pair] = set()
    opposed: set[Pair] = set()
    contested: set[str] = set()
    removed: dict[Removal, dict[str, Edit]] = defaultdict(dict)
    for edit in active:
        for removal in edit.removes if len(edit.removes) < _MANY else ():
            if removal.item:
                removed[removal][edit.id] = edit
    for by in removed.values():
        replacing = {live[id, item_key(item)] for id in by for _, item in new[id] if (id, item_key(item)) in live}
        if len(by) > 1 and replacing:
            hyperedges.update(combinations(sorted(replacing), 2))
            opposed.update(combinations(sorted(by), 2))
            contested |= replacing
    for id, texts in old.items():
        mine = {live[id, item_key(item)] for _, item in new[id] if (id, item_key(item)) in live}
        theirs = {iri for text in texts for iri in by_text[normal_name(text)]}
        hyperedges.update((min(one, other), max(one, other)) for one in mine for other in theirs - mine)
        contested |= mine if theirs - mine else set()
    return Disputes(frozenset(hyperedges), frozenset(opposed), frozenset(contested))


_MANY = 10_000
"""An edit that removes more items than this is a clean-up; it disputes nothing."""


def _new_texts(edit: Edit) -> Iterator[_NewText]:
    """Yield the hyperedges that an update adds, which no document says."""
    if edit.kind == "update":
        for each in edit.adds:
            if isinstance(each.item, HyperedgeItem) and not each.document:
                yield each, each.item


def reason_of(disputed: Iterable[str]) -> str:
    """Return the reason of the addition of a text that is in conflict with others; "" if there are none."""
    texts = list(dict.fromkeys(" ".join(text.split()) for text in disputed))
    return _DISPUTED + "\n".join(texts) if texts else ""


def _disputed(items: Iterable[_NewText]) -> list[str]:
    """Return the texts with which new texts are in conflict."""
    reasons = (addition.reason for addition, _ in items if addition.reason.startswith(_DISPUTED))
    return [text for reason in reasons for text in reason.removeprefix(_DISPUTED).split("\n")]
