"""Delays before a request is repeated."""

from __future__ import annotations

import pytest

from kgqa.llm.backends.exchange import (
    LONGEST_PAUSE,
    LONGEST_REQUESTED,
    RequestFailure,
    retry_pause,
)

FAILURE = RequestFailure("temporary", "busy")


def test_pauses_double_up_to_a_limit_with_jitter():
    pauses = [[retry_pause(FAILURE, attempt) for attempt in range(12)] for _ in range(20)]
    for i, column in enumerate(zip(*pauses, strict=True)):
        longest = min(0.5 * 2**i, LONGEST_PAUSE)
        assert all(longest / 2 <= pause <= longest for pause in column)
        assert len(set(column)) > 1


@pytest.mark.parametrize(
    ("requested", "waits"), [(0.0, True), (45.0, True), (LONGEST_REQUESTED, True), (LONGEST_REQUESTED + 1, False)]
)
def test_requested_wait_is_the_minimum(requested, waits):
    pause = retry_pause(RequestFailure("temporary", "busy", 429, wait=requested), 0)
    assert (pause is not None) is waits
    assert pause is None or pause >= max(requested, 0.25)
