"""`kgqa ask` without a language model: scores, weak matches, and questions in another language than the graph."""

from __future__ import annotations

import json

CAPITAL = "What is the capital of Japan?"
POPULATION = "What is the population of Japan?"  # the demo graph has no populations


def test_answer_shows_its_score(kgqa):
    done = kgqa("ask", CAPITAL)
    assert done.returncode == 0 and done.out.startswith("Tokyo (m.demo_tokyo)\n")
    assert (
        "%: the share of right answers among answers with such a score (measured on kgqa's own test questions on other graphs)"
        in done.out
    )
    assert "returns exactly these answers; this does not show that they answer the question" in done.out
    found = json.loads(kgqa("ask", CAPITAL, "--json").out)
    assert found["confidence"] >= 0.8 and found["accepted"] and not found["weak"]


def test_unanswerable_questions_are_weak_or_declined(kgqa):
    questions = [POPULATION, "What is the meaning of life?", "What is the shoe size of Barack Obama?"]
    done = kgqa("ask", "--json", input="\n".join([*questions, "How do I bake sourdough bread?"]))
    found = [json.loads(line) for line in done.out.splitlines()]
    assert all(each["weak"] or not each["answers"] for each in found) and found[0]["weak"]
    assert kgqa("ask", POPULATION).out.startswith("Weak match (score ")


def test_min_score_declines_weak_matches(kgqa):
    done = kgqa("ask", POPULATION, "--min-score", "0.7")
    assert done.returncode == 3 and ", below --min-score 0.7 (" in done.out and "try    " in done.out
    found = json.loads(kgqa("ask", POPULATION, "--min-score", "0.7", "--json").out)
    assert found["status"] == "no_answer" and found["confidence"] < 0.7 and found["answers"] == [] and not found["weak"]
    assert kgqa("ask", CAPITAL, "--min-score", "0.7").returncode == 0


def test_min_score_is_at_most_one(kgqa):
    done = kgqa("ask", CAPITAL, "--min-score", "70")
    assert done.returncode == 2 and "ask.min_score (command line) must be at most 1" in done.err


def test_path_below_accept_is_not_accepted(kgqa):
    done = kgqa("ask", CAPITAL, "--accept", "9")
    assert done.returncode == 0 and done.out.startswith(
        "Weak match: no path scores above --accept. The best path found:"
    )
    found = json.loads(kgqa("ask", CAPITAL, "--accept", "9", "--json").out)
    assert not found["accepted"] and found["weak"] and found["answers"]
    done = kgqa("ask", CAPITAL, "--accept", "9", "--on-exhausted", "none")
    assert done.returncode == 3 and "No path scores above --accept 9" in done.out


def test_another_language_is_said(kgqa):
    for question in ("Wer schrieb Don Quixote?", "Was ist die Hauptstadt von Japan?"):
        done = kgqa("ask", question)
        assert "note   The question seems to be in German, but the names in this graph are in English." in done.out
    assert "seems to be" not in kgqa("ask", CAPITAL).out
    assert "seems to be in Japanese" in kgqa("ask", "日本の首都はどこですか").out  # 日本 is a name of Japan
    unlinked = kgqa("ask", "人生とは何ですか")
    assert unlinked.returncode == 3 and "in Japanese" in unlinked.out and "add --topic ID" in unlinked.out
