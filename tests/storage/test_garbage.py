"""Garbage collection during work that creates many objects."""

from __future__ import annotations

import gc

import pytest

from kgqa.storage.garbage import THRESHOLDS, fewer_collections


def test_thresholds_are_restored_by_the_last_user():
    before = gc.get_threshold()
    one, two = fewer_collections(), fewer_collections()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert gc.get_threshold() == THRESHOLDS
    two.__exit__(None, None, None)
    assert gc.get_threshold() == before
    with pytest.raises(ValueError), fewer_collections():
        raise ValueError
    assert gc.get_threshold() == before
