"""Cues in the wording of a question: order of words, number of hops, kind of answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.search.cues import MAX_WORDS, asking_clause, read_cues

HOPS = [
    ("what is Ann's mother's gender?", 2),
    ("the nationality of the husband of Ann's mother", 3),
    ("which city is the capital of the country whose anthem is Ann?", 2),
    ("who acted in the same film as Ann?", 2),
    ("what is the place of birth of Ann?", 1),
    ("what form of government does Ann have?", 1),
    ("who directed the films written by Ann", 2),
    ("when did the films starred by Ann come out", 2),
    ("which is the name of the film that Ann wrote", 2),
    ("Ann directed which films", 1),
    ("who wrote films together with Ann", 2),
]
ANSWER_KINDS = [
    ("Where was Ann born?", "location place"),
    ("what kind of film is Ann?", "type genre"),
    ("what was Ann best known for?", "profession"),
    ("what did Ann do in 1990?", ""),
    ("where did Ann go to school?", "organization"),
    ("what is Ann?", ""),
]


@pytest.mark.parametrize(("question", "hops"), HOPS)
def test_hops(question, hops):
    assert read_cues(question, ["Ann"]).hops == hops


@pytest.mark.parametrize(("question", "kind"), ANSWER_KINDS)
def test_answer_kind(question, kind):
    assert read_cues(question, ["Ann"]).asked_for == kind


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("what is the gender of Ann's mother's husband?", "mother husband gender"),
        ("what is ann_lee 's son 's job ?", "son job"),
        ("the films written by Ann Lee were in which languages", "written films languages"),
        ("who acted in the film Ann Lee", "acted"),
    ],
)
def test_words_are_ordered_outward_from_the_mention(question, words):
    assert read_cues(question, ["Ann Lee", "Ann", "ann lee 's"]).words == tuple(words.split())


@pytest.mark.parametrize(
    ("question", "value", "noun", "asks_topic"),
    [
        ("When did Ann retire?", "date", "", False),
        ("What year did Ann retire?", "year", "year", False),
        ("How tall is Ann?", "number", "", False),
        ("Who made Ann?", "thing", "", False),
        ("Where was Ann made?", "thing", "", False),
        ("Which town has Ann?", "", "town", False),
        ("Which Ann were made by someone?", "", "", True),
        ("List all Ann.", "", "", False),
        ("Where are the Ann?", "thing", "", False),
        ("When were the Ann made?", "date", "", False),
        ("Who directed the Ann?", "thing", "", False),
    ],
)
def test_what_the_question_word_asks_for(question, value, noun, asks_topic):
    cues = read_cues(question, ["Ann"])
    assert (cues.value, cues.noun, cues.asks_topic) == (value, noun, asks_topic)


@given(st.text(max_size=200), st.lists(st.text(max_size=20), max_size=3))
def test_any_text_has_cues(question, names):
    cues = read_cues(question, names)
    assert cues.hops >= 1 and len(cues.words) <= MAX_WORDS


def test_clause_without_pronoun_is_no_apposition():
    assert "films" in read_cues("who starred in the films Ann directed", ["Ann"]).words


@pytest.mark.parametrize(
    ("question", "clause"),
    [
        ("Ann is a great film, so who directed it?", "who directed Ann?"),
        ("I liked Ann so much: in which country are its actors born?", "in which country are Ann's actors born?"),
        ("Our list has Ann on it, but which film is that about?", "which film is Ann about?"),
        ("Where did Ann live when she was young?", None),
        ("Films with Ann in which she sings", None),
        ("Ann was in Paris, where did Bob live?", None),
        ("List films of Ann, which may be old", None),
    ],
)
def test_clause_that_asks(question, clause):
    assert asking_clause(question, ["Ann", "Bob"]) == (clause or question)
