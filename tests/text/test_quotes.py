"""Finding and verifying quotes: positions, blanks, invisible characters, Unicode forms, answers in quotes."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.model import Literal, Named, QuoteEvidence, Span
from kgqa.text.quotes import find_name, find_quote, is_quote, stand_in_quotes

TEXT = "Ada Lovelace was born in London.\nShe wrote\u00a0the  first pro\u00adgram; it cost $1,363.00."

# few letters, so that quotes occur; accents, blanks, invisible characters, letters that decompose
letters = st.sampled_from("aeé\u0301\u0323 \n\u00a0\u00ad\u200bx각가\u11a8\u1100Åﬁ東")
texts = st.text(letters, max_size=12) | st.text(max_size=12)


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("born in London", "born in London"),
        (" London. She wrote", "London.\nShe wrote"),
        ("the first program", "the  first pro\u00adgram"),
        ("wrote the\tfirst", "wrote\u00a0the  first"),
        ("$1,363.00", "$1,363.00"),
        ("born in Paris", None),
        ("ada lovelace", None),
        ("", None),
        (" \n\u200b", None),
    ],
)
def test_found_quote(quote, found):
    place = find_quote(TEXT, quote)
    assert (place and TEXT[slice(*place)]) == found
    if place:
        assert is_quote(TEXT, *place, quote)


def test_unicode_forms_of_one_letter_are_equal():
    composed, decomposed = "café", unicodedata.normalize("NFD", "café")
    assert find_quote(f"un {decomposed}.", composed) == (3, 8)
    assert find_quote(f"un {composed}.", decomposed) == (3, 7)
    assert find_quote("a\u0301\u0323!", "a\u0323\u0301") == (0, 3)  # accents in another order
    assert find_quote("ﬁnal", "final") is None  # compatibility forms differ


@pytest.mark.parametrize(("text", "quote"), [("café", "cafe"), ("cafe\u0301", "cafe"), ("각", "가"), ("xé", "\u0301")])
def test_letter_and_its_accent_are_not_separated(text, quote):
    assert find_quote(text, quote) is None


@pytest.mark.parametrize("place", [(0, 0), (5, 3), (-4, 4), (0, 10**9), (1, 4)])
def test_quote_at_other_places(place):
    assert not is_quote(TEXT, *place, "Ada")
    assert is_quote(TEXT, 0, 3, "Ada")


@given(texts, texts)
def test_what_is_found_is_verified(text, quote):
    place = find_quote(text, quote)
    if place is not None:
        assert is_quote(text, *place, quote)


@given(texts)
def test_a_whole_text_is_its_own_quote_in_every_form(text):
    for form in ("NFC", "NFD"):
        changed = " \n ".join(unicodedata.normalize(form, text))
        assert is_quote(text, 0, len(text), changed) == is_quote(text, 0, len(text), text)


# ---- answers in quotes ----


def quoted(words: str, verified: bool = True) -> QuoteEvidence:
    return QuoteEvidence(Span("urn:d", "urn:c", 0, len(words)), words, verified)


def named(*names: str) -> list[Named]:
    return [Named(Literal(name), "", name) for name in names]


@pytest.mark.parametrize(
    ("names", "words", "stands"),
    [
        (["London"], ["was born in LONDON."], True),
        (["Ann"], ["an annual fair"], False),
        (["Ann"], ["an annual fair of Ann's"], True),
        (["London", "Paris"], ["in London", "in Paris"], True),
        (["London", "Paris"], ["in London"], False),
        (["363"], ["it cost $1,363.00."], False),
        (["1,363"], ["it cost $1,363.00."], True),
        (["3"], ["3.5 km"], False),
        (["1871"], ["on 12.05.1871 or May 5,1871."], True),
        (["ภูเก็ต"], ["เกิดที่ภูเก็ตในปี"], True),
        (["東京"], ["首都は東京です"], True),
        ([], ["in London"], False),
        (["London"], [], False),
    ],
)
def test_answers_in_quotes(names, words, stands):
    assert stand_in_quotes(named(*names), map(quoted, words)) is stands


def test_invented_quotes_ground_nothing():
    assert not stand_in_quotes(named("London"), [quoted("in London", verified=False)])


def test_place_of_a_name():
    text = "Straße 12 in İZMİR, an annual Fair of Ann"
    assert find_name(text, "STRASSE 12") == (0, 9) and find_name(text, "ANN") == (38, 41)
    assert find_name(text, "fair", 0, 30) is None and find_name(text, "fair", 30) == (30, 34)
