"""How a query is worded as a request."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest

from kgqa import __version__
from kgqa.graph.endpoint.profiles import FIXED_ORDER_MARK, profile_named
from kgqa.graph.endpoint.requests.request_builder import MAX_GET_CHARS, RequestBuilder, user_agent

URL = "http://127.0.0.1:8890/sparql"
GENERIC = profile_named("generic")


@pytest.fixture
def requests():
    return RequestBuilder(URL, contact="a@e.org", compressed=False)


def asked(requests, text="SELECT ?x WHERE { ?x ?p ?o }", *, is_ask=False, profile=GENERIC, limit=None):
    return requests.query(text, is_ask=is_ask, profile=profile, limit=limit)


def fields_of(request):
    text = urlsplit(request.url).query if request.body is None else request.body.decode()
    return parse_qs(text, strict_parsing=True)


def test_a_short_query_stands_in_the_address(requests):
    request = asked(requests)
    assert (request.method, request.body) == ("GET", None)
    assert request.url == "http://127.0.0.1:8890" + request.target
    assert fields_of(request) == {"query": ["SELECT ?x WHERE { ?x ?p ?o }"]}


@pytest.mark.parametrize("text", ["ASK { ?s ?p '%s' }" % ("x" * MAX_GET_CHARS), "ASK { ?s ?p 'Köln 漢字 😀' }"])
def test_a_long_query_and_one_in_other_letters_is_a_form(requests, text):
    request = asked(requests, text, is_ask=True)
    assert (request.method, request.target) == ("POST", "/sparql")
    assert {name.lower(): value for name, value in request.headers.items()}["content-type"] == (
        "application/x-www-form-urlencoded"
    )
    assert fields_of(request) == {"query": [text]}


def test_no_address_is_so_long_that_servers_refuse_it(requests):
    assert len(asked(requests, "<" * MAX_GET_CHARS).url) < 5000


@pytest.mark.parametrize("is_ask", [True, False])
def test_json_is_asked_for_by_its_type_and_nothing_else_is_added(requests, is_ask):
    request = asked(requests, is_ask=is_ask)
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert headers.keys() == {"accept", "user-agent"} and len(headers) == len(request.headers)
    assert "application/sparql-results+json" in headers["accept"]
    assert headers["user-agent"] == f"kgqa/{__version__} (a@e.org)"


def test_packing_is_asked_for_where_it_is_wanted():
    request = asked(RequestBuilder("https://e/sparql", contact="", compressed=True))
    assert {name.lower(): value for name, value in request.headers.items()}["accept-encoding"] == "gzip"


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
def test_a_time_limit_is_told_in_the_way_of_the_profile(requests, profile, fields, header):
    request = asked(requests, profile=profile_named(profile), limit=2.5)
    assert fields_of(request).keys() == {"query", *fields}
    assert fields_of(request).items() >= fields.items()
    assert {name.lower(): value for name, value in request.headers.items()}.get("x-bigdata-max-query-millis") == header
    untold = asked(requests, profile=profile_named(profile), limit=None)
    assert fields_of(untold).keys() == {"query"} and len(untold.headers) == 2


def test_an_update_is_a_form_to_its_own_address(requests):
    asked(requests, profile=profile_named("virtuoso"), limit=5)
    request = requests.update("CLEAR ALL", url="http://127.0.0.1:8890/sparql-auth")
    assert (request.method, request.target) == ("POST", "/sparql-auth")
    assert fields_of(request) == {"update": ["CLEAR ALL"]}


def test_the_agent_names_tool_version_and_contact_in_one_plain_line():
    assert user_agent("") == f"kgqa/{__version__}"
    assert user_agent("https://e.org/bot") == f"kgqa/{__version__} (https://e.org/bot)"
    assert user_agent("x\r\nX-Evil: 1\x1b") == f"kgqa/{__version__} (x X-Evil: 1)"
    assert user_agent("Jürgen").isascii()


@pytest.mark.parametrize("name", ["generic", "virtuoso", "qlever", "blazegraph", "wikidata"])
def test_only_what_asks_for_it_is_joined_in_its_order_and_only_where_that_can_be_said(requests, name):
    profile = profile_named(name)
    text = f"{FIXED_ORDER_MARK}ASK {{ ?s ?p ?o }}"
    assert (name == "virtuoso") == bool(profile.fixed_order)
    said = f"{profile.fixed_order}\n{text}" if profile.fixed_order else text
    assert fields_of(asked(requests, text, profile=profile))["query"] == [said]
    assert fields_of(asked(requests, f"ASK {{}} {text}", profile=profile))["query"] == [f"ASK {{}} {text}"]
