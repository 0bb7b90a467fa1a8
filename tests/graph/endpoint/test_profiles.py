"""The table of server profiles, the detection of the profile, and time limits that never truncate a result."""

from __future__ import annotations

import math

import pytest

from kgqa.graph.endpoint.profiles import profile_named, profile_of


@pytest.mark.parametrize(
    ("url", "header", "name"),
    [
        ("http://127.0.0.1:8890/sparql", "Virtuoso/07.20.3229 (Linux) x86_64-pc-linux-gnu", "virtuoso"),
        ("http://127.0.0.1:8890/sparql", "", "generic"),
        ("http://127.0.0.1:9999/bigdata/sparql", "Jetty(9.4.z-SNAPSHOT)", "blazegraph"),
        ("https://QUERY.wikidata.org/sparql", "nginx/1.18.0", "wikidata"),
        ("https://qlever.dev/api/wikidata", "nginx", "qlever"),
        ("https://query.wikidata.org.example.com/sparql", "Apache", "generic"),
    ],
)
def test_profile_is_detected_by_host_and_server_header(url, header, name):
    assert profile_of(url, header).name == name


@pytest.mark.parametrize(
    ("profile", "own", "seconds", "sent_limit"),
    [
        ("virtuoso", 10, 10, "10000"),
        ("virtuoso", math.inf, 1000, "1000000"),
        ("virtuoso", 0.5, 0.2, ""),  # would be sent as one second
        ("virtuoso", 2, 1.0004, "1001"),
        ("qlever", 30, 2.1, "3s"),
    ],
)
def test_sent_time_limit_is_not_shorter_than_ours_nor_longer_than_the_servers(profile, own, seconds, sent_limit):
    assert profile_named(profile).time_limit(seconds, own) == sent_limit
