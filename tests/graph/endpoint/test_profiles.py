"""The table of server profiles and the detection of the profile."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from kgqa.errors import SettingsError
from kgqa.graph.endpoint.profiles import profile_named, profile_of, profiles, reply_signs
from kgqa.settings.table import own_settings


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


def test_setting_lists_all_profiles():
    choices = own_settings()["endpoint.profile"].choices
    assert set(choices or ()) == {"auto", *profiles()}


def test_unknown_profile_is_an_error():
    with pytest.raises(SettingsError, match="virtuoso, qlever"):
        profile_named("oracle")


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


def test_templates_and_expressions_are_valid():
    for profile in profiles().values():
        if profile.limits_query:
            assert (files("kgqa.queries") / f"{profile.limits_query}.rq").is_file()
        if profile.limit_error:
            assert "seconds" in re.compile(profile.limit_error).groupindex
        assert profile.concurrency >= 1
        # a limit that truncates silently is safe only above the limit of the server
        assert not profile.truncates_on_timeout or profile.limits_query


def test_error_signs_are_collected_from_all_profiles():
    for profile in profiles().values():
        assert "x-sql-state" in reply_signs(profile, "timeout_headers")
        assert "operation timed out" in reply_signs(profile, "timeout_texts")
