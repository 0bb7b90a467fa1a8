"""Fixtures: the embedding model, exported once per session, and candidates built from words."""

from __future__ import annotations

import pytest

from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.rank.embedding.encoder import CachedEncoder, open_encoder
from kgqa.storage.cache import Cache

TOPIC = Entity("http://ex.org/topic")


@pytest.fixture(scope="session")
def encoder_cache(session_cache) -> Cache:
    return Cache(session_cache)


@pytest.fixture(scope="session")
def encoder(encoder_cache) -> CachedEncoder:
    """Return the packaged model, exported to ONNX, with vectors cached on disk."""
    encoder = open_encoder(encoder_cache)
    assert encoder is not None
    return encoder


@pytest.fixture
def candidate():
    """Return a function that builds a candidate with a path of its own from its words."""

    def make(words: str) -> Candidate:
        return Candidate(RelationPath(TOPIC, (Step(f"http://ex.org/{words.replace(' ', '_')}"),)), words)

    return make
