"""Graphs that several tests of the service read."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.storage.cache import Cache


@pytest.fixture(scope="module")
def demo(session_cache) -> Iterator[KnowledgeGraph]:
    """The demo graph."""
    with open_graph(cache=Cache(session_cache)) as graph:
        yield graph
