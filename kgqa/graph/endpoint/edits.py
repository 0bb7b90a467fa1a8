"""Edits of a graph on a server, as one update whatever their size."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from kgqa.errors import StoreError
from kgqa.graph.detection import EDIT_GRAPHS
from kgqa.graph.editing import batches, terms, triple_chars
from kgqa.model import Entity, Triple

INLINE_TRIPLES = 200
"""The largest edit whose triples are written into the update itself. Virtuoso compiles at most about 900."""
BATCH_TRIPLES = 1_000
BATCH_CHARS = 200_000
"""Limits of one update. Virtuoso's compiler runs out of memory between 2,000 triples (270 kB) and 5,000 (680 kB)."""
UPDATE_SECONDS = 600.0


class SendUpdate(Protocol):
    """Sends the update queries/TEMPLATE.rq with typed values."""

    def __call__(self, template: str, *, timeout: float | None = None, **values: Any) -> None: ...


def send_edit(send: SendUpdate, graph: str, adds: Sequence[Triple], removes: Sequence[Triple]) -> None:
    """Remove and add triples of a graph in one update.

    A large edit is first written to two graphs of its own, and then moved in one update. A server that ends in between
    leaves these two graphs behind, and the edited graph as it was.
    """
    name, everything = Entity(graph), [*removes, *adds]
    if (
        len(everything) <= INLINE_TRIPLES
        and len(list(batches(everything, INLINE_TRIPLES, BATCH_CHARS, length=triple_chars))) <= 1
    ):
        send("edit", graph=name, adds=list(map(terms, adds)), removes=list(map(terms, removes)))
        return
    edit = f"{EDIT_GRAPHS}{uuid.uuid4()}"
    staged = {Entity(f"{edit}:adds"): adds, Entity(f"{edit}:removes"): removes}
    try:
        for each, triples in staged.items():
            for batch in batches(triples, BATCH_TRIPLES, BATCH_CHARS, length=triple_chars):
                send("insert_triples", graph=each, triples=list(map(terms, batch)))
        added, removed = staged
        send("edit_staged", graph=name, adds=added, removes=removed, timeout=UPDATE_SECONDS)
    finally:
        for each in staged:
            with suppress(StoreError):
                send("clear_graph", graph=each)
