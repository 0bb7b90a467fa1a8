"""Opens the index of names before the first of many questions: none of them might have the time to make it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import click

from kgqa.cli.options import say

if TYPE_CHECKING:
    from kgqa.methods.resources import Resources

SAID_AFTER = 5.0
"""Seconds after which it is said what is being waited for."""
SERVER_SECONDS = 120.0
"""What each query for names may take on a server: a count that takes longer is not waited for before every run."""


def index_names(resources: Resources, *, needed: bool) -> None:
    """Open the index of names, charged to no question, and say so where that takes long.

    Args:
        needed: whether the questions are lost without it; else what went wrong is only told.

    Raises:
        StoreError: the names are needed and cannot be counted or read.
    """
    from kgqa.errors import StoreError
    from kgqa.graph.endpoint.store import EndpointStore
    from kgqa.graph.names.reading import no_question
    from kgqa.methods.registry import method
    from kgqa.words import clean

    if not method(resources.settings["ask.method"]).topics:
        return
    graph = resources.graph
    place = clean(graph.store.location)
    seconds = max(SERVER_SECONDS, graph.timeout)
    limit = (lambda: seconds) if isinstance(graph.store, EndpointStore) else no_question
    text = f"kgqa: The names of {place} are being indexed, once for all questions; that may take some minutes."
    context = click.get_current_context()

    def tell() -> None:
        with context.scope(cleanup=False):  # each thread has its own, and `say` looks there for --quiet
            say(text)

    told = threading.Timer(SAID_AFTER, tell)
    told.daemon = True
    told.start()
    try:
        graph.tables.names_within(limit)
    except StoreError as error:
        if needed:
            raise
        say(f"kgqa: The names of {place} could not be indexed beforehand: {clean(str(error))}")
    finally:
        told.cancel()
