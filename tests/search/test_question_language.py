"""The language of a question, compared with the languages of a graph's names."""

from __future__ import annotations

import pytest

from kgqa.graph.opening import open_graph
from kgqa.search.question_language import in_english, language_notes, question_language


@pytest.mark.parametrize(
    "question, language",
    [
        ("In welchem Jahr starb Frida Kahlo?", "de"),
        ("¿Cuál es la capital de Japón?", "es"),
        ("Qual é a capital do Japão?", "pt"),
        ("Кто снял фильм «Паразиты»?", "ru"),
        ("日本の首都はどこですか", "ja"),
        ("法国的首都是哪里?", "zh"),
        ("Who directed Das Boot?", "en"),
        ("capital Japan", ""),
        ("hortense_de_beauharnais 's father 's wife 's son ?", ""),
    ],
)
def test_language_of_a_question(question, language):
    assert question_language(question) == language


@pytest.mark.parametrize(
    "question, form",
    [
        ("Welche Brücke ist die längste?", "which Brücke is the longest?"),
        ("Wie viele Filme von Die Brücke gibt es?", "how many Filme of Die Brücke are there?"),
        ("Welche Fähren sind länger als 1.500,5 m?", "which Fähren are longer than 1,500.5 m?"),
        ("¿Cuántas estaciones hay?", "¿how many estaciones are there?"),
        ("¿Cuál es el puente más largo?", "¿which is the puente longest?"),
        ("Qual é a capital do Japão?", "Qual é a capital do Japão?"),
        ("Who directed Die Brücke?", "Who directed Die Brücke?"),
    ],
)
def test_form_words_become_english_and_names_stay(question, form):
    assert in_english(question, ["", "Die Brücke"]) == form


def test_note_names_both_languages():
    with open_graph() as graph:
        (note,) = language_notes(graph, "Wer schrieb Don Quixote?", ["Don Quixote"])
        assert "in German" in note and "are in English. Ask in English." in note
        assert language_notes(graph, "Who wrote Don Quixote?", []) == []
        (note,) = language_notes(graph, "谁导演了 Parasite？", ["Parasite"])
        assert "in Chinese" in note
