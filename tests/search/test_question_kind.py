"""Question kinds that no path can answer, and plain questions that must not be declined."""

from __future__ import annotations

import pytest

from kgqa.search.conditions.requests import unsupported_kind

COUNTS = [
    "how many children did Henry VIII have?",
    "How many people live in Tokyo?",
    "in how many films did Song Kang-ho act?",
    "What is the number of languages spoken in Switzerland?",
    "how much does the president earn?",
    "what is the total area of France?",
    "Count the countries that border Germany.",
    "what is the count of teams in the league?",
    "Japan has how many islands?",
    "What number of children did Henry VIII have?",
]
YES_NO = [
    "Is Tokyo the capital of Japan?",
    "are there mountains in the Netherlands?",
    "Was Bong Joon-ho born in Daegu?",
    "were the Beatles from Liverpool?",
    "does Belgium border Germany?",
    "Do people in Brazil speak Spanish?",
    "did Einstein win a Nobel Prize?",
    "Has France ever had a king?",
    "have the Cubs won a World Series?",
    "can penguins fly?",
    "  Isn't Canberra the capital of Australia?",
    "France borders Spain, right?",
    "Tokyo is the capital of Japan, isn't it?",
]
SUPERLATIVES = [
    "what is the largest city in France?",
    "which country has the most people?",
    "What is the longest river in Africa?",
    "which state has the fewest counties?",
    "who is the youngest player of the team?",
    "what is the highest mountain in Japan?",
    "what was the first film of Bong Joon-ho?",
    "what is the last song on the album?",
    "which of its neighbours is the smallest?",
    "Who is the tallest president?",
    "what is the least populated country in Europe?",
    "which is the oldest university in Germany?",
    "what is Germany's biggest city?",
    "Which film was released earliest?",
    "what is the most recent film of Bong Joon-ho?",
    "who was the first president of South Korea?",
    "who was first president of South Korea?",
    "what is Beethoven's first symphony?",
    "who is her eldest child?",
]
COMPARISONS = [
    "which country has more people than Spain?",
    "which rivers are longer than the Rhine?",
    "who is older, Bong Joon-ho or Park Chan-wook?",
    "which country is bigger: Spain or France?",
]
PLAIN = [
    "which countries other than France border Spain?",
    "who is the father of Bong Joon-ho?",
    "which river is longer known as the Main or the Rhine",
    "what is the name of the first lady of France?",
    "which country is Tokyo the capital of?",
    "Which city is the capital of the country whose anthem is Kimigayo?",
    "Who wrote Everest?",
    "who climbed Mount Everest",
    "what forest is in the south of Germany?",
    "who was in West Side Story",
    "Who directed the film Parasite?",
    "who starred in The Last Samurai?",
    "who directed The First Wives Club?",
    "what is the first name of Beethoven?",
    "what is the last name of the coach?",
    "who sang The Greatest Love of All?",
    "who played in The Greatest Showman?",
    "who directed A Most Wanted Man?",
    "what does the Midwest produce?",
    "which countries are in the Middle East?",
    "who honest Abe was",
    "what harvest festival is celebrated in Korea?",
    "who conquered the Aztecs",
    "what protest did he lead?",
    "which guest appeared on the show?",
    "what was the final test of the hero?",
    "who is the priest of the church?",
    "what did Ernest Hemingway write?",
    "which team did Nest play for?",
    "where was the Treaty of Brest signed?",
    "who did Anakin Skywalker marry?",
    "what currency is used in Japan?",
    "where did Isaac Newton study?",
    "Willem Dafoe acted in which films?",
    "Canada borders which countries?",
    "who will play Batman?",
    "what can you see in Paris?",
    "in which county is the town?",
    "who is the Count of Monte Cristo played by?",
    "what language do people in almost all of Brazil speak?",
    "who was born earlier than 1990?",
    "Will Smith starred in which films?",
    "who discovered the element with atomic number 79?",
    "what is the phone number of the embassy?",
    "tell me the capital of Japan",
    "東京はどの国の首都ですか",
]


@pytest.mark.parametrize("question", COUNTS)
def test_count_questions(question):
    assert unsupported_kind(question) == "a count"


@pytest.mark.parametrize("question", YES_NO)
def test_yes_no_questions(question):
    assert unsupported_kind(question) == "a yes/no question"


@pytest.mark.parametrize("question", SUPERLATIVES)
def test_superlatives(question):
    assert str(unsupported_kind(question)).startswith("a superlative (")


@pytest.mark.parametrize("question", COMPARISONS)
def test_comparisons(question):
    assert unsupported_kind(question) == "a comparison"


@pytest.mark.parametrize("question", PLAIN)
def test_plain_questions_are_not_declined(question):
    assert unsupported_kind(question) is None


@pytest.mark.parametrize("question", ["", "   ", "?", "\n"])
def test_empty_text_has_no_kind(question):
    assert unsupported_kind(question) is None


def test_reason_names_the_word():
    assert unsupported_kind("what is the LARGEST city?") == "a superlative (largest)"
    assert "the most people)" in unsupported_kind("which country has the most people?")


@pytest.mark.parametrize("question", [*COUNTS, *YES_NO, *SUPERLATIVES, *COMPARISONS])
def test_case_does_not_matter(question):
    kind = unsupported_kind(question).split(" (")[0]
    for written in (question.upper(), question.lower()):
        assert str(unsupported_kind(written)).split(" (")[0] == kind


@pytest.mark.parametrize(
    "question",
    [
        "can you describe the movie Cast Away in a few words",
        "Could you tell me the capital of Japan?",
        "Does anyone know the currency of Peru?",
        "is Ludwig's father a man or a woman ?",
    ],
)
def test_requests_and_alternatives_are_not_yes_no_questions(question):
    assert unsupported_kind(question) is None
