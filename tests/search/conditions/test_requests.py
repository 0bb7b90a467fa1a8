"""What questions ask to compute and exclude, and the rest of their words."""

from __future__ import annotations

import pytest

from kgqa.model import Entity
from kgqa.search.conditions.applying import without_excluded
from kgqa.search.conditions.requests import read_request, unsupported_kind
from kgqa.search.masking import topic_spans


@pytest.mark.parametrize(
    ("question", "kind", "text", "noun"),
    [
        ("In how many films did Song Kang-ho act?", "count", "In which films did Song Kang-ho act?", "films"),
        ("What is the second highest mountain in Nepal?", "extreme", "What is the mountain in Nepal?", "mountain"),
        ("Which film by Ann was released first?", "extreme", "Which film by Ann ?", "film"),
        ("Which country in Africa has the most rivers?", "most of", "Which country in Africa ?", "country"),
        ("Who directed the most films?", "most of", "Who directed films?", "person"),
        ("Which city in Peru has the largest area?", "extreme", "Which city in Peru has the ?", "city"),
        ("What is the most downloaded package?", "extreme", "What is the package?", "package"),
        ("Which act earned the most at Expo?", "extreme", "Which act at Expo?", ""),
        ("Which song did Ann record first?", "extreme", "Which song did Ann record ?", "song"),
        ("In which country is the oldest brewery?", "extreme", "In which country is the brewery?", "brewery"),
        ("Is Bonn the capital of Germany?", "exists", "Bonn the capital of Germany?", ""),
        ("How many metres higher is A than B?", "difference", "How many metres higher is A than B?", ""),
        ("What is the average elevation of the mountains in Peru?", "average", "mountains in Peru?", "mountains"),
    ],
)
def test_kind_and_rest(question, kind, text, noun):
    found = read_request(question)
    assert (found.kind, found.text, found.noun) == (kind, text, noun)


@pytest.mark.parametrize(
    ("question", "most", "scale", "word"),
    [
        ("Who is the oldest president?", False, "day", "birth"),
        ("What is the least populous state?", False, "number", "population"),
        ("Which is higher, the Eiger or the Fuji?", True, "number", "elevation"),
        ("Who was born later, Ann or Bob?", True, "day", "birth"),
        ("Which package was downloaded more, Ann or Bob?", True, "number", "downloaded"),
        ("Which match was better attended, the Final or the Opener?", True, "number", "attended"),
        ("Which was less downloaded, Ann or Bob?", False, "number", "downloaded"),
        ("What is the least visited museum?", False, "number", "visited"),
        ("Which festival has the cheapest ticket?", False, "number", "ticket"),
        ("Which country has the largest area?", True, "number", "area"),
        ("Who scored the least?", False, "number", "scored"),
        ("What is the fıfth HİGHEſT town?", True, "number", "elevation"),
    ],
)
def test_measure(question, most, scale, word):
    measure = read_request(question).measure
    assert (measure.most, measure.scale) == (most, scale) and word in measure.words


@pytest.mark.parametrize(
    "question",
    [
        "How many languages are spoken in the largest country of Europe?",
        "What is the average length of the longest rivers of Germany?",
        "How many mountains are higher than the Eiger?",
        "How many older brothers does Ann have?",
        "How many times did Ann marry?",  # occasions are not in the graph
        "Isn't Bonn the capital?",
    ],
)
def test_no_part_of_a_request_is_dropped(question):
    assert read_request(question) is None


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many kings were there no later than 1862?", "count"),
        ("How many films other than Alien did Ann direct?", "count"),
        ("How many people acted in the longest yard?", "count"),
        ("Is the Oder longer than the Weser?", "compare"),
        ("Who directed The Longest Day?", ""),
    ],
)
def test_words_like_a_second_request(question, kind):
    found = read_request(question, ["The Longest Day", "the longest yard"])
    assert (found.kind if found else "") == kind


@pytest.mark.parametrize(
    ("question", "text", "excluded"),
    [
        ("Which countries other than Germany speak German?", "Which countries speak German?", ["Germany"]),
        ("Which countries besides Austria and Germany use it?", "Which countries use it?", ["Austria", "Germany"]),
        ("Which films by Ann are not in the genre Drama?", "Which films by Ann?", ["Drama"]),
        ("Which films by Ann are in the genre Drama?", "Which films by Ann are in the genre Drama?", []),
    ],
)
def test_excluded_entities(question, text, excluded):
    names = {Entity(f"urn:{name}"): [name] for name in ("Germany", "Austria", "Ann", "Drama")}
    found, entities = without_excluded(question, topic_spans(question, names))
    assert found.replace(" ?", "?") == text
    assert [entity.iri for entity in entities] == [f"urn:{name}" for name in excluded]


KINDS = {
    "a count": (
        "how many children did Henry VIII have?",
        "how much does the president earn?",
        "Count the countries that border Germany.",
    ),
    "a yes/no question": (
        "Is Tokyo the capital of Japan?",
        "  Isn't Canberra the capital of Australia?",
        "France borders Spain, right?",
    ),
    "a superlative": (
        "which country has the most people?",
        "what is the last song on the album?",
        "what is Germany's biggest city?",
        "what is Beethoven's first symphony?",
    ),
    "a comparison": (
        "which country has more people than Spain?",
        "who is older, Bong Joon-ho or Park Chan-wook?",
        "which country is bigger: Spain or France?",
    ),
}
PLAIN = (
    "which countries other than France border Spain?",
    "which river is longer known as the Main or the Rhine",
    "what is the name of the first lady of France?",
    "who starred in The Last Samurai?",
    "who directed A Most Wanted Man?",
    "who is the Count of Monte Cristo played by?",
    "what language do people in almost all of Brazil speak?",
    "who was born earlier than 1990?",
    "Will Smith starred in which films?",
    "can you describe the movie Cast Away in a few words",
    "is Ludwig's father a man or a woman ?",
    "東京はどの国の首都ですか",
    " " * 4000 + "of which of which",
)


@pytest.mark.parametrize(("kind", "question"), [(kind, each) for kind, every in KINDS.items() for each in every])
def test_kind_in_any_case(kind, question):
    for written in (question, question.upper(), question.lower()):
        assert str(unsupported_kind(written)).split(" (")[0] == kind


@pytest.mark.parametrize("question", PLAIN)
def test_plain_questions_are_not_declined(question):
    assert unsupported_kind(question) is None
