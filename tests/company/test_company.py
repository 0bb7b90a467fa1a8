"""The gold answers of the questions about the company are the results of their gold queries."""

from __future__ import annotations

import rdflib

from kgqa.evaluation.datasets.questions import read_questions
from tests.company import GRAPH, QUESTIONS


def test_gold_queries_return_the_gold_answers():
    graph = rdflib.Graph().parse(GRAPH)
    questions = read_questions(QUESTIONS)
    assert len({question.id for question in questions}) == len(questions) == 40
    for question in questions:
        found = sorted(str(value) for (value,) in graph.query(question.sparql[0]))
        assert found == sorted(answer.id or answer.name for answer in question.answers), question.id
