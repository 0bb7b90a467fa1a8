"""The edit log of a corpus: the live items are a function of the set of edits, whatever their order.

An edit adds tags and removes tags that it saw. A tag is live if its edit is not cancelled and no uncancelled edit
removes it; an item is live while one of its tags is. An undo cancels an edit, which may be an undo. Therefore:

- Two logs are merged by union, and every order of merging gives the same state.
- If all edits are undone, the state is that of the empty log.
- The state after n edits is that of the first n edits.

The id of an edit is a hash of everything in it and of the ids of the edits before it. A changed byte changes the id,
and with it the ids of all later edits.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal as OneOf

import msgspec

from kgqa.corpus.items import EDIT, Addition, item_key
from kgqa.storage.loading import Count

EditKind = OneOf["insert", "update", "delete", "undo"]
EDIT_KINDS: tuple[EditKind, ...] = ("insert", "update", "delete", "undo")


@dataclass(frozen=True, slots=True, order=True)
class Tag:
    """An item in the log: the id of the edit, the IRI of the document (may be ""), and the key of the item."""

    edit: str
    document: str
    item: str


class Removal(msgspec.Struct, frozen=True, order=True, array_like=True):
    """The tags that an edit removes: all that agree with the fields that are not empty.

    Two or three fields are given: `edit` and `item` remove one tag, `edit` and `document` all that an edit read from a
    document. `document` and `item` remove an item of a document in every edit, so that it stays away when the document
    is read again.
    """

    edit: str = ""
    document: str = ""
    item: str = ""

    def __post_init__(self) -> None:
        if [self.edit, self.document, self.item].count("") > 1:
            raise ValueError("a removal needs two of: edit, document, item")


class EditSource(msgspec.Struct, frozen=True, array_like=True):
    """What an edit rests on: the IRI or URL, the part of its text, a hash of its content, and how far it is trusted."""

    iri: str
    begin: Count = 0
    end: Count = 0
    digest: str = ""
    trust: str = ""


@dataclass(frozen=True, slots=True)
class Edit:
    """An entry of the log.

    Attributes:
        id: The IRI of the edit, a hash of all that follows except `seq`.
        seq: The number of the edit in its log, from 1.
        kind: `undo` cancels the edit `target`; the other kinds say what the edit was meant for.
        agent: Who made the edit: a person, a model, an extractor.
        reason, session, question: Why, and where.
        sources: What the edit rests on.
        target: The edit that an undo cancels; otherwise what the edit is about, "" if that is nothing in particular.
        at: The time, ISO 8601 in UTC.
        previous: The ids of the last edits before this one, sorted: one, or several after a merge.
        content: The hash of `adds` and `removes`.
        adds, removes: What the edit changes. Both are empty in an edit that was read without its content.
    """

    id: str
    seq: int
    kind: EditKind
    agent: str
    reason: str = ""
    session: str = ""
    question: str = ""
    sources: tuple[EditSource, ...] = ()
    target: str = ""
    at: str = ""
    previous: tuple[str, ...] = ()
    content: str = ""
    adds: tuple[Addition, ...] = ()
    removes: tuple[Removal, ...] = ()

    @property
    def tags(self) -> frozenset[Tag]:
        """The tags that the edit adds."""
        return frozenset(Tag(self.id, each.document, item_key(each.item)) for each in self.adds)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A tag that edits removed independently of each other, at least one of which put a new text in its place.

    `tag`: the tag. `edits`: the ids of these edits. `replacements`: the tags of the new texts; all of them are live.
    """

    tag: Tag
    edits: tuple[str, ...]
    replacements: tuple[Tag, ...]


def content_hash(adds: Iterable[tuple[str, Addition]], removes: Iterable[Removal]) -> str:
    """Return a hash of what an edit changes.

    Args:
        adds: the additions and the keys of their items (`item_key`).
        removes: the removals.
    """
    found = hashlib.sha256()
    for key, each in adds:
        line = (
            f"+{key}\t{each.document}\t{each.chunk}\t{each.begin}\t{each.end}\t{each.confidence!r}"
            f"\t{each.model!r}\t{each.prompt!r}\t{each.reason!r}\n"
        )
        found.update(line.encode("utf-8", "surrogatepass"))
    for removal in removes:
        line = f"-{removal.edit}\t{removal.document}\t{removal.item}\n"
        found.update(line.encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def content_of(edit: Edit) -> str:
    """Return the hash of what an edit changes, computed from its additions and removals."""
    return content_hash(((item_key(each.item), each) for each in edit.adds), edit.removes)


def edit_hash(edit: Edit) -> str:
    """Return the id that an edit must have."""
    parts = [
        edit.kind,
        edit.agent,
        edit.reason,
        edit.session,
        edit.question,
        msgspec.to_builtins(edit.sources),
        edit.target,
        edit.at,
        edit.previous,
        edit.content,
    ]
    text = json.dumps(parts, separators=(",", ":"))  # ASCII, surrogates included
    return f"{EDIT}{hashlib.sha256(text.encode()).hexdigest()[:40]}"


def sealed(edit: Edit, content: str | None = None) -> Edit:
    """Return an edit with its hashes. `content`: the hash of its content, if it is known."""
    edit = replace(edit, content=content_of(edit) if content is None else content)
    return replace(edit, id=edit_hash(edit))


def heads(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Return the ids of the edits that no other edit follows, sorted: what the next edit has as `previous`."""
    edits = list(edits)
    followed = {id for edit in edits for id in edit.previous}
    return tuple(sorted(edit.id for edit in edits if edit.id not in followed))


def verify_chain(edits: Iterable[Edit], content: Callable[[Edit], str] = content_of) -> list[str]:
    """Return what is wrong with a log, in words; an empty list if no byte of it was changed.

    Args:
        edits: all edits of the log, in the order of `seq`.
        content: returns the hash of what an edit changes.
    """
    problems = []
    known: set[str] = set()
    for number, edit in enumerate(edits, 1):
        name = f"edit {edit.seq} ({edit.id})"
        if edit.seq != number:
            problems.append(f"{name} stands at position {number}")
        if content(edit) != edit.content:
            problems.append(f"what {name} adds or removes was changed")
        if edit_hash(edit) != edit.id:
            problems.append(f"{name} was changed")
        if edit.id in known:
            problems.append(f"{name} occurs twice")
        problems += [f"the edit {id} before {name} is missing" for id in edit.previous if id not in known]
        if edit.kind == "undo" and edit.target not in known:
            problems.append(f"{name} undoes an edit that is missing")
        known.add(edit.id)
    return problems


def cancelled_edits(edits: Iterable[Edit]) -> frozenset[str]:
    """Return the ids of the edits that an undo cancels. An undo that is cancelled itself cancels nothing.

    Raises:
        ValueError: edits undo each other in a circle, which no honest log contains.
    """
    targets = {edit.id: edit.target if edit.kind == "undo" else "" for edit in edits}
    undecided = Counter(target for target in targets.values() if target in targets)
    ready = [id for id in targets if id not in undecided]
    cancelled: set[str] = set()
    for id in ready:  # grows
        target = targets[id]
        if target not in targets:
            continue
        if id not in cancelled:
            cancelled.add(target)
        undecided[target] -= 1
        if not undecided[target]:
            ready.append(target)
    if len(ready) != len(targets):
        raise ValueError("edits undo each other in a circle")
    return frozenset(cancelled)


def live_tags(edits: Iterable[Edit]) -> frozenset[Tag]:
    """Return the live tags of a set of edits. The order of the edits does not matter."""
    edits = list(edits)
    cancelled = cancelled_edits(edits)
    active = [edit for edit in edits if edit.id not in cancelled]
    index = TagIndex(active)
    removed = {tag for edit in active for removal in edit.removes for tag in index.matching(removal)}
    return frozenset(tag for edit in active for tag in edit.tags if tag not in removed)


def live_items(edits: Iterable[Edit]) -> frozenset[str]:
    """Return the keys of the live items of a set of edits."""
    return frozenset(tag.item for tag in live_tags(edits))


def as_of(edits: Iterable[Edit], seq: int | None = None, at: str | None = None) -> list[Edit]:
    """Return the edits up to a number or a time (ISO 8601 in UTC), in the order of their numbers."""
    found = [edit for edit in edits if (seq is None or edit.seq <= seq) and (at is None or edit.at <= at)]
    return sorted(found, key=lambda edit: edit.seq)


def merge(*logs: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the union of logs, numbered anew. The result does not depend on the order of the logs.

    An edit comes after the edits that it follows or undoes, otherwise edits are ordered by time and id.

    Raises:
        ValueError: two edits have the same id, but different contents, or edits follow each other in a circle.
    """
    union: dict[str, Edit] = {}
    for edit in (edit for log in logs for edit in log):
        known = union.setdefault(edit.id, edit)
        if replace(known, seq=0) != replace(edit, seq=0):
            raise ValueError(f"two different edits have the id {edit.id}")
    return tuple(replace(edit, seq=seq) for seq, edit in enumerate(ordered(union.values()), 1))


def ordered(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits in an order in which each comes after those that it follows or undoes; otherwise by time and id.

    Raises:
        ValueError: edits follow each other in a circle.
    """
    by_id = {edit.id: edit for edit in edits}
    waiting = {edit.id: {id for id in (*edit.previous, edit.target) if id in by_id} for edit in by_id.values()}
    followers = defaultdict(list)
    for id, needed in waiting.items():
        for each in needed:
            followers[each].append(id)
    ready = [(edit.at, edit.id) for edit in by_id.values() if not waiting[edit.id]]
    heapq.heapify(ready)
    found = []
    while ready:
        _, id = heapq.heappop(ready)
        found.append(by_id[id])
        for each in followers[id]:
            waiting[each].discard(id)
            if not waiting[each]:
                heapq.heappush(ready, (by_id[each].at, each))
    if len(found) != len(by_id):
        raise ValueError("edits follow each other in a circle")
    return found


def dependents(edits: Iterable[Edit], ids: Collection[str]) -> tuple[str, ...]:
    """Return the ids of the uncancelled edits that build on some edits, directly or not, in the order of the log.

    An edit builds on an earlier one if it removes tags that the earlier one added or brought back, rests on the earlier
    one as a source, or is about it (`target`).
    """
    edits = sorted(edits, key=lambda edit: edit.seq)
    by_id = {edit.id: edit for edit in edits}
    index = TagIndex(edits)
    cancelled = cancelled_edits(edits)
    reached: set[str] = set()
    given: set[Tag] = set()
    found = []
    for edit in edits:
        if edit.id not in ids:
            rests = reached & {edit.target, *(source.iri for source in edit.sources)}
            removed = (tag for removal in edit.removes for tag in index.matching(removal))
            if edit.id in cancelled or not (rests or any(tag in given for tag in removed)):
                continue
            found.append(edit.id)
        reached.add(edit.id)
        given |= _given(edit, by_id, index)
    return tuple(found)


def conflicts(edits: Iterable[Edit]) -> tuple[Conflict, ...]:
    """Return the tags that several uncancelled edits removed, if an update among them gave a new text.

    The Editor removes live tags only, so such edits did not know of each other: they come from two logs, or an undo
    brought one of them back.
    """
    edits = list(edits)
    cancelled = cancelled_edits(edits)
    active = [edit for edit in edits if edit.id not in cancelled]
    index, live = TagIndex(active), live_tags(active)
    removed: dict[Tag, dict[str, Edit]] = defaultdict(dict)
    for edit in active:
        for removal in edit.removes:
            for tag in index.matching(removal) if removal.item else ():
                removed[tag][edit.id] = edit
    found = []
    for tag, by in sorted(removed.items()):
        new = {each for edit in by.values() if edit.kind == "update" for each in edit.tags & live}
        if len(by) > 1 and new:
            found.append(Conflict(tag, tuple(sorted(by)), tuple(sorted(new))))
    return tuple(found)


class TagIndex:
    """Finds the tags of some edits that a removal removes."""

    def __init__(self, edits: Iterable[Edit]) -> None:
        self._tags: dict[tuple[str, str, str], list[Tag]] = defaultdict(list)
        for edit in edits:
            for tag in edit.tags:
                for key in ((tag.edit, "", tag.item), (tag.edit, tag.document, ""), ("", tag.document, tag.item)):
                    self._tags[key].append(tag)

    def matching(self, removal: Removal) -> list[Tag]:
        """Return the tags that a removal removes."""
        if removal.edit and removal.document and removal.item:
            tag = Tag(removal.edit, removal.document, removal.item)
            return [tag] if tag in self._tags.get((tag.edit, "", tag.item), ()) else []
        return self._tags.get((removal.edit, removal.document, removal.item), [])


def _given(edit: Edit, by_id: Mapping[str, Edit], index: TagIndex) -> frozenset[Tag]:
    """Return the tags that an edit adds or, if it is an undo, brings back."""
    adds = True
    while edit.kind == "undo":
        if edit.target not in by_id:
            return frozenset()
        edit, adds = by_id[edit.target], not adds
    if adds:
        return edit.tags
    return frozenset(tag for removal in edit.removes for tag in index.matching(removal))
