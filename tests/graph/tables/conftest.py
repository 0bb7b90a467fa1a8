"""Graphs in memory: tables are the same over every store."""

from __future__ import annotations

import pytest

from tests.graph.memory_store import MemoryStore


@pytest.fixture
def new_store():
    """Return `new_store(lines) -> MemoryStore`."""
    return MemoryStore
