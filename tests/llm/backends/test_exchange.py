"""Delays before a request is repeated."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest

from kgqa.llm.backends.exchange import (
    LONGEST_PAUSE,
    LONGEST_REQUESTED,
    RequestFailure,
    RetryDelays,
    retry_after,
)

FAILURE = RequestFailure("temporary", "busy")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3", 3), ("0.5", 0.5), (" 7 ", 7), ("0", 0), ("-4", 0), ("", None), ("soon", None), ("nan", None), ("inf", None),
     ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("Wed, 99 Oct 2015 07:28:00 GMT", None)],
)  # fmt: skip
def test_retry_after_header(text, seconds):
    assert retry_after({"retry-after": text}) == seconds


def test_retry_after_date():
    assert retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)}) == pytest.approx(60, abs=3)
    assert retry_after({}) is None


def test_pauses_double_up_to_a_limit_with_jitter():
    pauses = [[delays.pause(FAILURE) for _ in range(12)] for delays in (RetryDelays(12) for _ in range(20))]
    for i, column in enumerate(zip(*pauses, strict=True)):
        longest = min(0.5 * 2**i, LONGEST_PAUSE)
        assert all(longest / 2 <= pause <= longest for pause in column)
        assert len(set(column)) > 1


def test_retries_end():
    delays = RetryDelays(2)
    assert [delays.pause(FAILURE) is None for _ in range(4)] == [False, False, True, True]
    assert RetryDelays(0).pause(FAILURE) is None


@pytest.mark.parametrize(
    ("requested", "waits"), [(0.0, True), (45.0, True), (LONGEST_REQUESTED, True), (LONGEST_REQUESTED + 1, False)]
)
def test_requested_wait_is_the_minimum(requested, waits):
    pause = RetryDelays(1).pause(RequestFailure("temporary", "busy", 429, wait=requested))
    assert (pause is not None) is waits
    assert pause is None or pause >= max(requested, 0.25)
