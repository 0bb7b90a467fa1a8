"""The language of a question, compared with the languages of a graph's names."""

from __future__ import annotations

import pytest

from kgqa.graph.opening import open_graph
from kgqa.search.question_language import language_notes, question_language
from tests.memory_graph import memory_graph


@pytest.mark.parametrize(
    "question, language",
    [
        ("Wer schrieb Don Quixote?", "de"),
        ("In welchem Jahr starb Frida Kahlo?", "de"),
        ("Quelle est la capitale du Japon ?", "fr"),
        ("¿Cuál es la capital de Japón?", "es"),
        ("Qual è la capitale del Giappone?", "it"),
        ("Qual é a capital do Japão?", "pt"),
        ("Wat is de hoofdstad van Japan?", "nl"),
        ("Кто снял фильм «Паразиты»?", "ru"),
        ("日本の首都はどこですか", "ja"),
        ("法国的首都是哪里?", "zh"),
        ("Who directed Das Boot?", "en"),
        ("In which year was La dolce vita made?", "en"),
        ("capital Japan", ""),
        ("hortense_de_beauharnais 's father 's wife 's son ?", ""),
    ],
)
def test_language_of_a_question(question, language):
    assert question_language(question) == language


def test_names_in_another_language_do_not_count():
    assert question_language("Qui vive, cast", ["Qui vive"]) == ""


def test_note_names_both_languages():
    with open_graph() as graph:
        (note,) = language_notes(graph, "Wer schrieb Don Quixote?", ["Don Quixote"])
        assert "in German" in note and "are in English. Ask in English." in note
        assert language_notes(graph, "Who wrote Don Quixote?", []) == []


def test_german_names_fit_a_german_question():
    lines = [
        f'<urn:e{n}> <http://www.w3.org/2000/01/rdf-schema#label> "{name}"@de .'
        for n, name in enumerate(("Tokio", "Wien", "Köln"))
    ]
    with memory_graph(lines, schema="rdfs") as graph:
        assert language_notes(graph, "Welches Land regiert man von Tokio?", ["Tokio"]) == []
        (note,) = language_notes(graph, "What is the capital of Japan?", [])
        assert "seems to be in English, but the names in this graph are in German" in note
