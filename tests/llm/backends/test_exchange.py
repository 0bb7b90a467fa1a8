"""How long to wait before a request is sent again."""

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

TROUBLE = RequestFailure("temporary", "busy")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("3", 3), ("0.5", 0.5), (" 7 ", 7), ("0", 0), ("-4", 0), ("", None), ("soon", None), ("nan", None), ("inf", None),
     ("Wed, 21 Oct 2015 07:28:00 GMT", 0), ("Wed, 99 Oct 2015 07:28:00 GMT", None)],
)  # fmt: skip
def test_how_long_a_server_asks_to_wait(text, seconds):
    assert retry_after({"retry-after": text}) == seconds


def test_a_date_to_wait_for():
    assert retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)}) == pytest.approx(60, abs=3)
    assert retry_after({}) is None


def test_pauses_double_up_to_a_limit_and_are_not_all_the_same():
    pauses = [[patience.pause(TROUBLE) for _ in range(12)] for patience in (RetryDelays(12) for _ in range(20))]
    for i, column in enumerate(zip(*pauses, strict=True)):
        longest = min(0.5 * 2**i, LONGEST_PAUSE)
        assert all(longest / 2 <= pause <= longest for pause in column)
        assert len(set(column)) > 1


def test_patience_ends():
    patience = RetryDelays(2)
    assert [patience.pause(TROUBLE) is None for _ in range(4)] == [False, False, True, True]
    assert RetryDelays(0).pause(TROUBLE) is None


@pytest.mark.parametrize(
    ("asked", "waits"), [(0.0, True), (45.0, True), (LONGEST_REQUESTED, True), (LONGEST_REQUESTED + 1, False)]
)
def test_what_a_server_asks_for_is_the_least(asked, waits):
    pause = RetryDelays(1).pause(RequestFailure("temporary", "busy", 429, wait=asked))
    assert (pause is not None) is waits
    assert pause is None or pause >= max(asked, 0.25)
