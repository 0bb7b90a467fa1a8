"""The table of server profiles, the detection of the profile, and time limits that never truncate a result."""

from __future__ import annotations

import math

import pytest

from kgqa.graph.endpoint.profiles import (
    ServerLimits,
    limit_in_error,
    profile_named,
    profile_of,
    read_limits,
)
from kgqa.model import Literal
from kgqa.testing.sparql_faults import qlever_limit
from kgqa.testing.sparql_server import table_bytes

NONE = math.inf


@pytest.mark.parametrize(
    ("url", "header", "name"),
    [
        ("http://127.0.0.1:8890/sparql", "Virtuoso/07.20.3229 (Linux) x86_64-pc-linux-gnu", "virtuoso"),
        ("http://127.0.0.1:8890/sparql", "", "generic"),
        ("http://127.0.0.1:9999/bigdata/sparql", "Jetty(9.4.z-SNAPSHOT)", "blazegraph"),
        ("https://query.wikidata.org/sparql", "", "wikidata"),
        ("https://QUERY.wikidata.org/sparql", "nginx/1.18.0", "wikidata"),
        ("https://qlever.dev/api/wikidata", "nginx", "qlever"),
        ("https://query.wikidata.org.example.com/sparql", "Apache", "generic"),
        ("http://e/sparql", "nginx", "generic"),
    ],
)
def test_profile_is_detected_by_host_and_server_header(url, header, name):
    assert profile_of(url, header).name == name


@pytest.mark.parametrize(
    ("name", "seconds", "sent_limit"),
    [
        ("virtuoso", 60, "60000"),
        ("virtuoso", 0.3, "1000"),
        ("virtuoso", 1.0004, "1001"),
        ("qlever", 60, "60s"),
        ("qlever", 0.2, "1s"),
        ("qlever", 2.1, "3s"),
        ("wikidata", 2.5, "2500"),
    ],
)
def test_sent_time_limit_is_not_shorter_than_ours(name, seconds, sent_limit):
    assert profile_named(name).time_limit(seconds) == sent_limit


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
    assert read_limits(body) == limits


def test_qlever_limit_error_is_recognised():
    reply = qlever_limit(30)
    assert limit_in_error(profile_named("qlever"), reply.status, reply.body) == 30
    assert limit_in_error(profile_named("qlever"), 200, reply.body) is None
    assert limit_in_error(profile_named("qlever"), 403, b"Forbidden") is None
    assert limit_in_error(profile_named("generic"), 403, reply.body) is None
