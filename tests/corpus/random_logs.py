"""Random edit logs over a few items, for tests of the edit log."""

from __future__ import annotations

from hypothesis import strategies as st

from kgqa.corpus.edit_log import Edit, Removal, Tag, heads, live_tags, sealed
from kgqa.corpus.items import Addition, EntityItem, Party, item_key

ITEMS = tuple(EntityItem(Party(name)) for name in "abcde")
DOCUMENTS = ("", "urn:kgqa:document:1", "urn:kgqa:document:2")

# an action: what to do, numbers that choose items, tags or edits, and a document
actions = st.tuples(
    st.sampled_from(["insert", "insert", "update", "delete", "delete document", "delete item", "undo", "undo"]),
    st.lists(st.integers(0, 30), min_size=1, max_size=3),
    st.integers(0, 2),
)


def extended(log: list[Edit], performed, *, agent: str = "a") -> list[Edit]:
    """Return a log with the edits of some actions at its end; each edit sees what is live before it."""
    log = list(log)
    for kind, numbers, document in performed:
        edit = _edit(log, kind, numbers, DOCUMENTS[document], agent)
        if edit is not None:
            log.append(edit)
    return log


def _edit(log: list[Edit], kind: str, numbers: list[int], document: str, agent: str) -> Edit | None:
    tags = sorted(live_tags(log))
    adds = tuple(Addition(ITEMS[number % len(ITEMS)], document) for number in dict.fromkeys(numbers))
    seen = [tags[number % len(tags)] for number in dict.fromkeys(numbers)] if tags else []
    removes: tuple[Removal, ...] = ()
    target = ""
    if kind == "undo":
        if not log:
            return None
        target, adds = log[numbers[0] % len(log)].id, ()
    elif kind != "insert":
        if not seen:
            return None
        removes = tuple(_removal(tag, kind) for tag in seen)
        adds = adds if kind == "update" else ()
    name = kind.split()[0]
    edit = Edit(
        "",
        len(log) + 1,
        name,
        agent,
        target=target,
        at=f"{len(log):04}",
        previous=heads(log),
        adds=adds,
        removes=removes,
    )
    return sealed(edit)


def _removal(tag: Tag, kind: str) -> Removal:
    if kind == "delete document" and tag.document:
        return Removal(edit=tag.edit, document=tag.document)
    if kind == "delete item" and tag.document:
        return Removal(document=tag.document, item=tag.item)
    return Removal(edit=tag.edit, item=tag.item)


def key(name: str) -> str:
    return item_key(EntityItem(Party(name)))
