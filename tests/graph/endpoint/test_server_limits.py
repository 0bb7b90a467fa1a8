"""Time limits sent to a server, chosen so that it never truncates a result silently."""

from __future__ import annotations

import math

import pytest

from kgqa.graph.endpoint.profiles import profile_named
from kgqa.graph.endpoint.server_limits import UNKNOWN, ServerLimits, limit_in_error, read_limits
from kgqa.model import Literal
from kgqa.testing.sparql_faults import qlever_limit
from kgqa.testing.sparql_server import table_bytes

NONE = math.inf


@pytest.mark.parametrize(
    ("profile", "own", "seconds", "sent_limit"),
    [
        ("virtuoso", None, 5, False),  # the server would use the shorter one silently
        ("virtuoso", 10, 5, True),
        ("virtuoso", 10, 10, True),
        ("virtuoso", 10, 11, False),
        ("virtuoso", NONE, 1000, True),
        ("virtuoso", 1, 0.2, True),
        ("virtuoso", 0.5, 0.2, False),  # sent as one second
        ("qlever", None, 60, True),
        ("qlever", 30, 60, False),
        ("qlever", 30, 20, True),
        ("wikidata", None, 600, True),
        ("generic", NONE, 1, False),
    ],
)
def test_sent_time_limit(profile, own, seconds, sent_limit):
    assert ServerLimits(own).permit(seconds, profile_named(profile)) is sent_limit


@pytest.mark.parametrize(
    ("row", "limits"),
    [
        (("60", "10000"), ServerLimits(60, 10_000)),
        (("0", "0"), ServerLimits(NONE, NONE)),
        ((None, None), ServerLimits(NONE, NONE)),
        ((" 60 ", "x"), ServerLimits(60, None)),
        (("-1", "1e9"), ServerLimits(None, None)),
    ],
)
def test_limits_are_read_from_one_row(row, limits):
    body = table_bytes(["seconds", "rows"], [[Literal(text) if text is not None else None for text in row]])
    assert read_limits([body]) == limits


@pytest.mark.parametrize("body", [b"", b"<html>", table_bytes(["a", "b"], []), table_bytes(["a"], [[Literal("1")]])])
def test_other_rows_leave_the_limits_unknown(body):
    assert read_limits([body]) == UNKNOWN


def test_qlever_limit_error_is_recognised():
    reply = qlever_limit(30)
    assert limit_in_error(profile_named("qlever"), reply.status, reply.body) == 30
    assert limit_in_error(profile_named("qlever"), 200, reply.body) is None
    assert limit_in_error(profile_named("qlever"), 403, b"Forbidden") is None
    assert limit_in_error(profile_named("generic"), 403, reply.body) is None
