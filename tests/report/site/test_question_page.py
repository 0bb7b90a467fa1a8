"""The page of a question: what is right, wrong or unknown looks like that."""

from __future__ import annotations

import re
from dataclasses import replace

from kgqa.evaluation.datasets.questions import GoldAnswer
from kgqa.evaluation.metrics.scores import score_record
from kgqa.evaluation.runs.records import Record
from kgqa.report.site.question_page import question_page
from tests.report.test_pages import CONTEXT

FIRST, SECOND = ({"iri": f"http://x/m.{n}", "id": f"m.{n}", "name": name} for n, name in ((1, "Bern"), (2, "Rome")))
TOPIC = {"iri": "http://x/m.0", "id": "m.0", "name": "Italy"}
ANSWER = {
    "status": "answered",
    "grounding": "graph",
    "answers": [FIRST, SECOND],
    "paths": [
        {
            "words": "Italy → capital",
            "topic": "http://x/m.0",
            "steps": [{"relation": "http://x/capital", "direction": "out"}],
            "walks": [[TOPIC, FIRST], [TOPIC, SECOND]],
        }
    ],
}


def page_of(*gold: GoldAnswer) -> str:
    record = Record("i", "d", "Capital of Italy?", ANSWER, gold)
    if gold:
        record = replace(record, scores=score_record(ANSWER, record.readings))
    return "".join(question_page(record, CONTEXT)).partition("</style>")[2].partition("<script>")[0]


def parts(page: str, pattern: str) -> list[str]:
    """Return the texts of the elements that begin like the pattern, without their markup and tooltips."""
    found = re.findall(rf"<{pattern}[^>]*>(.*?)</(?:li|g)>", page, re.DOTALL)
    return [" ".join(re.sub(r"<title>.*?</title>|<[^>]+>", " ", each).split()) for each in found]


def test_wrong_answers_differ_by_sign_and_word_and_colour():
    page = page_of(GoldAnswer("m.2", "Rome"), GoldAnswer("m.3", "Turin"))
    assert parts(page, 'li class="wrong"') == ["Bern m.1 wrong"] and parts(page, 'li class="right"') == [
        "Rome m.2 right"
    ]
    assert parts(page, 'li class="missed"') == ["Turin m.3 missed"]
    assert parts(page, 'g class="node answer wrong"') == ["✗ Bern"]
    assert parts(page, 'g class="node answer right"') == ["✓ Rome"]
    assert "◐</span> partly right" in page


def test_page_of_a_wrong_answer_has_nothing_in_the_colour_of_right_ones():
    page = page_of(GoldAnswer("m.3", "Turin"))
    assert "✗</span> wrong" in page and page.count("✗") == 5  # badge, two nodes, and two stacked names
    assert not re.search(r'class="[^"]*\bright\b', page) and "✓" not in page


def test_answers_without_gold_are_neither_right_nor_wrong():
    page = page_of()
    assert "no gold answers" in page and not re.search(r'class="[^"]*\b(right|wrong)\b', page)
    assert parts(page, 'g class="node answer"') == ["Bern", "Rome"]


def test_matches_are_headed_once(by_model):
    page = "".join(question_page(next(by_model.records()), CONTEXT)).partition("</style>")[2]
    stages = page[page.index("<h2>Tournament</h2>") :].split("<h3>")[1:]
    assert len(stages) > 1 and all(
        len(re.findall(r"\bmatch(?:es)?\b", re.sub(r"<[^>]+>", " ", each))) <= 1 for each in stages
    )


def test_queries_have_the_prefixes_of_the_graph():
    """What a record says about prefixes may be damaged."""
    prefixes = {"vel": "http://velo.example/race/", "bad": "x> } #/", "n": 7}
    query = "SELECT ?a { ?a <http://velo.example/race/won> <http://velo.example/race/giro> }"
    record = Record("i", "d", "Who?", {**ANSWER, "sparql": query, "evidence_sparql": query, "prefixes": prefixes}, ())
    page = "".join(question_page(record, CONTEXT))
    assert page.count("PREFIX vel: &lt;http://velo.example/race/&gt;\nSELECT ?a { ?a vel:won vel:giro }") == 2
    assert "bad:" not in page
