"""What the wording of a question says of the path: the order of its words, the number of hops, the kind of answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.explore.cues import MAX_WORDS, read_cues

HOPS = [
    ("what is the nationality of Ann?", 1),
    ("who is Ann's mother?", 1),
    ("what is Ann's mother's gender?", 2),
    ("what is the gender of Ann's mother?", 2),
    ("what gender is Ann's mother?", 2),
    ("the nationality of the husband of Ann's mother", 3),
    ("which city is the capital of the country whose anthem is Ann?", 2),
    ("who acted in the same film as Ann?", 2),
    ("where is the club that Ann plays for?", 2),
    ("what is the place of birth of Ann?", 1),
    ("what form of government does Ann have?", 1),
    ("where was Ann born?", 1),
    ("who directed Ann", 1),
    ("Ann", 1),
    ("", 1),
]
ASKED_FOR = [
    ("who directed Ann?", "person"),
    ("Where was Ann born?", "location place"),
    ("when did Ann die?", "date time"),
    ("what language do they speak in Ann?", "language"),
    ("which football team does Ann support?", "football team"),
    ("what is the capital of Ann?", "capital"),
    ("what kind of music does Ann play?", "music"),
    ("what did Ann do?", ""),
    ("name the films of Ann", ""),
    ("what", ""),
    ("what is Ann?", ""),
]


@pytest.mark.parametrize(("question", "hops"), HOPS)
def test_hops(question, hops):
    assert read_cues(question, ["Ann"]).hops == hops


@pytest.mark.parametrize(("question", "kind"), ASKED_FOR)
def test_what_is_asked_for(question, kind):
    assert read_cues(question, ["Ann"]).asked_for == kind


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("what is the gender of Ann's mother's husband?", "mother husband gender"),
        ("the place of birth of the son of Ann Lee", "son birth place"),
        ("what is ann_lee 's son 's job ?", "son job"),
        ("who was born in 1968?", "born 1968"),
        ("", ""),
    ],
)
def test_words_run_outward_from_the_mention(question, words):
    assert read_cues(question, ["Ann Lee", "Ann", "ann lee 's"]).words == tuple(words.split())


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_has_cues(question, names):
    cues = read_cues(question, names)
    assert cues.hops >= 1 and len(cues.words) <= MAX_WORDS


def test_a_name_is_no_pattern():
    assert read_cues("what is the job of A.C (x*) now", ["A.C (x*)"]).words == ("now", "job")
