"""Question kinds that no path can answer, and plain questions that must not be declined."""

from __future__ import annotations

import pytest

from kgqa.search.conditions.requests import unsupported_kind

KINDS = {
    "a count": (
        "how many children did Henry VIII have?",
        "What is the number of languages spoken in Switzerland?",
        "how much does the president earn?",
        "Count the countries that border Germany.",
    ),
    "a yes/no question": (
        "Is Tokyo the capital of Japan?",
        "  Isn't Canberra the capital of Australia?",
        "France borders Spain, right?",
        "Tokyo is the capital of Japan, isn't it?",
    ),
    "a superlative": (
        "which country has the most people?",
        "what is the last song on the album?",
        "what is Germany's biggest city?",
        "Which film was released earliest?",
        "who was first president of South Korea?",
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
    "Who wrote Everest?",
    "who was in West Side Story",
    "who starred in The Last Samurai?",
    "who directed A Most Wanted Man?",
    "what harvest festival is celebrated in Korea?",
    "who is the Count of Monte Cristo played by?",
    "what language do people in almost all of Brazil speak?",
    "who was born earlier than 1990?",
    "Will Smith starred in which films?",
    "what is the phone number of the embassy?",
    "can you describe the movie Cast Away in a few words",
    "Does anyone know the currency of Peru?",
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
