"""Any reply of a model is read without an error, and every fact that is kept has a true place."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.corpus.extraction.acceptance import Acceptor, Origin
from kgqa.corpus.extraction.names import NameFinder, folded_name
from kgqa.corpus.extraction.places import PlaceFinder
from kgqa.corpus.extraction.replies import ENTITIES, HYPEREDGES, TRIPLES, RawReply, read_lists
from kgqa.corpus.items import StatementItem
from tests.corpus.extraction.samples import BRIDGE, GOOD, facts_of, request_for

VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["Ann Li", "Lavern", "designed by", BRIDGE]),
    lambda each: (
        st.lists(each, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    "subject",
                    "Relation",
                    "object",
                    "quote",
                    "name",
                    "type",
                    "segment",
                    "participants",
                    "role",
                    "triples",
                    "entities",
                ]
            )
            | st.text(max_size=4),
            each,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(
    VALUE.map(lambda value: json.dumps(value, ensure_ascii=False))
    | st.text(max_size=60)
    | st.integers(0, 300).map(lambda cut: json.dumps(GOOD)[cut:])
    | st.integers(0, 300).map(lambda cut: json.dumps(GOOD)[:cut])
)
def test_any_text_is_a_reading(text):
    for names in (TRIPLES, HYPEREDGES):
        reading = read_lists(text, names, ENTITIES)
        assert (reading.value is None) == bool(reading.problem)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"triples":[' * 3000, "{" + '"a":{' * 50_000, '"' * 10_000, "<think>" * 5_000]
)
def test_hostile_texts_are_read_quickly(text):
    begin = time.process_time()
    assert read_lists(text, TRIPLES).value in (None, RawReply())
    assert time.process_time() - begin < 20


@given(st.lists(VALUE, max_size=5), st.lists(VALUE, max_size=5), st.booleans())
@settings(max_examples=200)
def test_any_values_are_accepted_or_rejected(facts, entities, from_image):
    request = request_for()
    for add in (Acceptor.triples, Acceptor.hyperedges):
        acceptor = Acceptor(request, Origin("m", "p"), 3, place=(0, 5) if from_image else None)
        add(acceptor, RawReply(tuple(facts), tuple(entities)))
        assert all(isinstance(each, str) for each in acceptor.rejected)
        for each in acceptor.additions:
            assert 0 <= each.begin <= each.end <= len(BRIDGE)
            assert not isinstance(each.item, StatementItem) or each.end


def test_a_triple_without_a_quote_needs_a_sentence_with_both_names():
    acceptor = Acceptor(request_for(), Origin("m", "p"), 9)
    acceptor.triples(RawReply((["Lavern", "crossed by bridge of", "Ann Li"], ["Ann Li", "opened on", "3 May 1921"])))
    assert facts_of(acceptor.additions, request_for().document) == {
        ("Lavern", "crossed by bridge of", "Ann Li", "The bridge over the Lavern was designed by Ann Li."),
        ("Ann Li", "opened on", ("1921-05-03", "date"), "It was opened on 3 May 1921."),
    }


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("the Person - centered  therapy", "person-centered therapy", "Person - centered  therapy"),
        ("by Dr. José Ñandú", "Jose Nandu", "José Ñandú"),
        ("in Jose\u0301 Park", "José", "Jose\u0301"),
        ("位于东京大学旁", "东京大学", "东京大学"),
        ("كِتَاب كبير", "كتاب", "كِتَاب"),
        ("हिन्दी भाषा", "हिन्दी", "हिन्दी"),
        ("C and C++ here", "C++", "C++"),
        ("costs $1,363.00 now", "$1,363.00", "$1,363.00"),
        ("👍 Halden 👍", "Halden", "Halden"),
        ("Halden's bridge", "Halden", "Halden"),
        ("Haldener", "Halden", None),
        ("Strasse", "Straße", "Strasse"),
        ("a b", "…", None),
        ("", "a", None),
    ],
)
def test_names_are_found_as_words(text, name, found):
    place = NameFinder(text).find(name)
    assert (place and text[slice(*place)]) == found
    assert (name in NameFinder(text)) == (found is not None)


@given(st.text(max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_a_name_with_words_is_found_where_it_stands(before, name, after):
    text = f"{before} {name} {after}"
    if folded_name(name):
        begin, end = NameFinder(text).find(name)
        assert folded_name(text[begin:end]) == folded_name(name)


def test_the_place_of_a_fact_is_the_sentence_with_its_names():
    text = "Ann Li met Bo. Bo saw Ann Li and wrote to Ann Li. Cai came later with two friends."
    finder = PlaceFinder(text)

    def place(*names):
        span = finder.fact_place(*names)
        return span and text[slice(*span)]

    assert place("Ann Li", "Bo", "met") == "Ann Li met Bo."
    assert place("Bo", "Ann Li", "wrote to") == "Bo saw Ann Li and wrote to Ann Li."
    assert place("Ann Li", "Cai") == "Cai came later with two friends."
    assert place("Ann Li", "came with friends") == "Cai came later with two friends."
    assert place("Ann Li", "Zeus") == "Ann Li met Bo."
    assert place("Zeus", "Hera") is None


FACT = {"subject": "Ann Li", "relation": "designed", "object": "Halden Bridge"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(FACT),
        f"{json.dumps(FACT)}\n{json.dumps(FACT | {'object': 'Lavern'})}",
        json.dumps({"triples": [FACT]}).replace(": ", "\uff1a").replace(", ", "\uff0c"),
        json.dumps({"triples": [FACT]}).replace('"', "\u201c"),
    ],
    ids=["one object", "lines", "wide punctuation", "curly quotes"],
)
def test_facts_without_a_list_and_with_other_punctuation_are_read(text):
    facts = read_lists(text, TRIPLES, ENTITIES).value.facts
    assert facts[0] == FACT and len(facts) == text.count("Ann Li")
