"""Encoding of names for a full-text index: distinct names stay distinct, and no text changes a pattern."""

from __future__ import annotations

import re
import string
from importlib.resources import files

import pyoxigraph
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery

from kgqa.errors import InvalidTerm
from kgqa.graph.names.server.name_tokens import MAX_CODE_LENGTH, MAX_TOKENS, NameTokens, encode, key_number, pattern
from kgqa.graph.names.server.names_graph import count_node, count_of, prefix_node
from kgqa.graph.query.templates import render, render_term
from kgqa.model import Entity, Literal
from kgqa.words import normalise

TOKENS = NameTokens.of("urn:kgqa:names:test")
WORDS = st.text(min_size=1, max_size=30).map(normalise).map(lambda text: text.replace(" ", "")).filter(bool)
NAMES = st.text(max_size=60).map(normalise).filter(bool)
SAFE = re.compile(r'\("k[a-z0-9]+\*?"( OR "k[a-z0-9]+\*?")*\)')
GRAPH = Entity("urn:kgqa:names:test")
TEMPLATES = {
    "facts": {"graph": GRAPH, "fact": Entity("urn:p")},
    "keys": {"graph": GRAPH, "keys": [Literal('"'), 17], "kinds": [Entity("urn:k")], "limit": 5},
    "labelled": {"view": [GRAPH], "predicates": [Entity("urn:p")]},
    "lists": {"graph": GRAPH, "beginnings": [Entity(prefix_node("東"))], "predicate": Entity("urn:p")},
    "matching": {
        "pattern": pattern([TOKENS.word("hitler"), TOKENS.word_prefix("you")], [TOKENS.length(2)]),
        "limit": 5,
    },
    "matching_count": {"pattern": pattern([TOKENS.word("hitler")])},
    "of": {"view": [GRAPH], "entities": [Entity("http://e/a")], "predicates": [Entity("urn:p"), Entity("urn:q")]},
    "words": {"graph": GRAPH, "words": [key_number("hitler"), 0], "predicate": Entity("urn:p")},
    "count": {"view": [GRAPH, Entity("urn:g")], "predicate": Entity("urn:p")},
    "page": {"view": [GRAPH], "predicate": Entity("urn:p"), "limit": 5, "offset": 10},
}


@given(WORDS, WORDS)
def test_code_keeps_the_prefix_of_its_word(left, right):
    assert set(encode(left)) <= set(string.ascii_lowercase + string.digits)
    assert encode(left).startswith(encode(right)) == left.startswith(right)
    assert (encode(left) == encode(right)) == (left == right)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hitler", "hitler"),
        ("q", "q35"),
        ("1995", "1995"),
        ("ø", "q6w"),
        ("ж", "qty"),
        ("東", "qykfl"),
        ("🙂", "qz2r7m"),
    ],
)
def test_codes(text, code):
    assert encode(text) == code and len(code) <= 6 * len(text)


@given(NAMES, NAMES)
def test_distinct_names_have_distinct_texts(left, right):
    assert (TOKENS.text(left) == TOKENS.text(right)) == (left == right)
    assert len(TOKENS.words_of(TOKENS.text(left))) == len(left.split())
    assert all(len(token) <= 65 for token in TOKENS.text(left).split()), "Virtuoso ignores longer words"


def test_text_of_a_name():
    mark = TOKENS.mark
    text = f"{mark}wunited {mark}wstates {mark}wof {mark}wamerica {mark}i3usa {mark}l4"
    assert TOKENS.text("united states of america") == text
    assert TOKENS.initials_length(text) == 3 and TOKENS.initials_length(TOKENS.text("paris")) == 0
    assert re.fullmatch("k[a-z0-9]{6}", mark) and mark != NameTokens.of("urn:kgqa:names:other").mark
    assert TOKENS.text(" ".join(["word"] * 40)).endswith("l9")


def test_long_words_stay_distinct():
    one, other = TOKENS.word("a" * 300), TOKENS.word("a" * 300 + "b")
    assert one != other and max(len(one), len(other)) <= len(TOKENS.mark) + 1 + MAX_CODE_LENGTH
    assert one.startswith(TOKENS.word_prefix("a" * 30).rstrip("*"))


@given(st.lists(st.lists(st.text(max_size=20), max_size=5), max_size=4))
def test_any_search_text_keeps_the_pattern_form(groups):
    tokens = [[TOKENS.word(word) for text in group for word in normalise(text).split()] for group in groups]
    if not tokens or not all(tokens) or sum(map(len, tokens)) > MAX_TOKENS:
        with pytest.raises(InvalidTerm):
            pattern(*tokens)
        return
    value = pattern(*tokens).value
    parts = value.split(" AND ")
    assert len(parts) == len(tokens) and all(SAFE.fullmatch(part) for part in parts)
    query = render("names_matching", pattern=pattern(*tokens), limit=5)
    assert query.count(render_term(pattern(*tokens))) == 1 and query.count("bif:contains") == 1


@pytest.mark.parametrize(
    "token",
    [
        'k1234567" OR "',
        "k1234567 AND",
        "k1234567'",
        "(k1234567)",
        "k12345678**",
        "*",
        "",
        "abc",
        "k1234567\n",
        "ké345678",
    ],
)
def test_invalid_token_is_refused(token):
    with pytest.raises(InvalidTerm):
        pattern([token])


def test_unencoded_words_are_refused():
    with pytest.raises(InvalidTerm):
        pattern(["hitler"])
    with pytest.raises(InvalidTerm):
        pattern()


@given(st.text(max_size=30))
def test_number_of_keys(key):
    assert 0 <= key_number(key) < 2**60 and key_number(key) == key_number(key)


@given(WORDS, st.integers(0, 10**9))
def test_nodes_are_iris(word, count):
    assert render_term(Entity(prefix_node(word))) and count_of(count_node(count)) == count


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_are_sparql(name):
    query = render(f"names_{name}", **TEMPLATES[name])
    prepareQuery(query)
    pyoxigraph.Store().query(query)
    assert "None" not in query and "{{" not in query and "{%" not in query


def test_all_templates_are_covered():
    found = [item.name for item in files("kgqa.queries").iterdir() if item.name.startswith("names_")]
    assert sorted(found) == sorted(f"names_{name}.rq" for name in TEMPLATES)
