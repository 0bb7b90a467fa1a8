"""Builds the index of entity names before a run, because this may take longer than the time limit of a question."""

from __future__ import annotations

import threading
from collections.abc import Callable

from kgqa.errors import StoreError
from kgqa.graph.names.reading import background_limit
from kgqa.methods.registry import method
from kgqa.methods.resources import Resources
from kgqa.text.words import clean

NOTE_AFTER_SECONDS = 5.0
"""Seconds after which a note about the indexing is shown."""
SERVER_SECONDS = 120.0
"""Time limit in seconds for each query for names on a server."""


def open_name_index(resources: Resources, *, required: bool, note: Callable[[str], None]) -> None:
    """Open the index of names before the first question; no question's budget is used.

    Args:
        required: True if the questions need the index; otherwise errors are only noted.
        note: called with messages for people, also from other threads.

    Raises:
        StoreError: the index is required, and the names cannot be counted or read.
    """
    if not method(resources.settings.ask.method).topics:
        return
    graph = resources.graph
    place = clean(graph.store.location)
    seconds = max(SERVER_SECONDS, graph.timeout)
    limit = (lambda: seconds) if graph.store.capabilities.remote else background_limit
    text = f"Indexing the entity names of {place}, once for all questions. This may take some minutes."
    timer = threading.Timer(NOTE_AFTER_SECONDS, note, [text])
    timer.daemon = True
    timer.start()
    try:
        graph.tables.names.within(limit)
    except StoreError as error:
        if required:
            raise
        note(f"The entity names of {place} could not be indexed beforehand: {clean(str(error))}")
    finally:
        timer.cancel()
