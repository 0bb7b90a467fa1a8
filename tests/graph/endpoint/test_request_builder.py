"""Building the HTTP request of a query."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
import SPARQLWrapper

from kgqa import __version__
from kgqa.graph.endpoint.profiles import FIXED_ORDER_MARK, profile_named
from kgqa.graph.endpoint.request_builder import MAX_GET_CHARS, RequestBuilder

URL = "http://127.0.0.1:8890/sparql"
GENERIC = profile_named("generic")


@pytest.fixture
def requests():
    return RequestBuilder(URL, contact="a@e.org", compressed=False)


def build_request(requests, text="SELECT ?x WHERE { ?x ?p ?o }", *, is_ask=False, profile=GENERIC, limit=None):
    return requests.query(text, is_ask=is_ask, profile=profile, limit=limit)


def fields_of(request):
    text = urlsplit(request.url).query if request.body is None else request.body.decode()
    return parse_qs(text, strict_parsing=True)


def test_short_query_is_in_the_url(requests):
    request = build_request(requests)
    assert (request.method, request.body) == ("GET", None)
    assert fields_of(request) == {"query": ["SELECT ?x WHERE { ?x ?p ?o }"]}


@pytest.mark.parametrize("text", ["ASK { ?s ?p '%s' }" % ("x" * MAX_GET_CHARS), "ASK { ?s ?p 'Köln 漢字 😀' }"])
def test_long_or_non_ascii_query_is_a_form(requests, text):
    request = build_request(requests, text, is_ask=True)
    assert (request.method, request.url) == ("POST", URL)
    assert {name.lower(): value for name, value in request.headers.items()}["content-type"] == (
        "application/x-www-form-urlencoded"
    )
    assert fields_of(request) == {"query": [text]}


@pytest.mark.parametrize("is_ask", [True, False])
def test_request_accepts_json_only(requests, is_ask):
    request = build_request(requests, is_ask=is_ask)
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers.keys() == {"accept", "user-agent"} and len(headers) == len(request.headers)
    assert "application/sparql-results+json" in headers["accept"]
    assert headers["user-agent"] == f"kgqa/{__version__} (a@e.org)"


@pytest.mark.parametrize(
    ("profile", "fields", "header"),
    [
        ("virtuoso", {"timeout": ["2500"]}, None),
        ("qlever", {"timeout": ["3s"]}, None),
        ("blazegraph", {}, "2500"),
        ("wikidata", {}, "2500"),
        ("generic", {}, None),
    ],
)
def test_time_limit_parameter_of_the_profile(requests, profile, fields, header):
    request = build_request(requests, profile=profile_named(profile), limit=2.5)
    assert fields_of(request).keys() == {"query", *fields}
    assert fields_of(request).items() >= fields.items()
    assert {name.lower(): value for name, value in request.headers.items()}.get("x-bigdata-max-query-millis") == header
    untold = build_request(requests, profile=profile_named(profile), limit=None)
    assert fields_of(untold).keys() == {"query"} and len(untold.headers) == 2


def test_update_is_a_form_to_its_own_url(requests):
    build_request(requests, profile=profile_named("virtuoso"), limit=5)
    request = requests.update("CLEAR ALL", url="http://127.0.0.1:8890/sparql-auth")
    assert (request.method, request.url) == ("POST", "http://127.0.0.1:8890/sparql-auth")
    assert fields_of(request) == {"update": ["CLEAR ALL"]}


def test_version_of_the_library_whose_private_method_is_called():
    """`RequestBuilder` calls `SPARQLWrapper._createRequest`, as it is in version 2.0.0."""
    assert SPARQLWrapper.__version__.startswith("2.0."), "check that RequestBuilder works with this version"


@pytest.mark.parametrize("name", ["generic", "virtuoso", "qlever", "blazegraph", "wikidata"])
def test_fixed_join_order_only_where_requested_and_supported(requests, name):
    profile = profile_named(name)
    text = f"{FIXED_ORDER_MARK}ASK {{ ?s ?p ?o }}"
    assert (name == "virtuoso") == bool(profile.fixed_order)
    expected_query = f"{profile.fixed_order}\n{text}" if profile.fixed_order else text
    assert fields_of(build_request(requests, text, profile=profile))["query"] == [expected_query]
    assert fields_of(build_request(requests, f"ASK {{}} {text}", profile=profile))["query"] == [f"ASK {{}} {text}"]
