"""Questions about a graph with a vocabulary of its own, loaded and asked without a language model."""

from __future__ import annotations

import json

import pytest

from tests.cli_runner import run_cli
from tests.ferries import FERRIES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ferries")
    (folder / "ferries.ttl").write_text(FERRIES, encoding="utf-8")
    done = run_cli("graph", "load", "ferries.ttl", "--into", "graph", cwd=folder)
    assert done.returncode == 0, done.err
    return folder


def test_questions_of_each_form(folder):
    expected = {
        "Which ferries have more than 800 seats?": ["Olga", "Petra"],
        "How many ferries have more than 1,000 seats?": ["1"],
        "Which ferries are red?": ["Olga", "Runa"],
        "Which ferry is the newest?": ["Runa"],
        "Does the Petra carry trucks?": ["false"],
        "Does the Petra sail at night?": ["true"],
        "Is the Petra longer than the Olga?": ["true"],
        "Is the Olga newer than the Petra?": ["false"],
        "Welche Fähre ist die längste?": ["Petra"],
        "Welche Fähren haben mehr als 1.000 seats?": ["Petra"],
        "Which person directs the operator of the Olga?": ["Ida Holm"],
        "When was the Runa launched?": ["2015-09-09"],
    }
    done = run_cli("ask", "--json", "--graph", "graph", input="\n".join(expected), cwd=folder)
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert {each["question"]: sorted(item["name"] for item in each["answers"]) for each in answers} == expected
    assert {each["query_class"] for each in answers} == {"exact"} and done.returncode == 0


def test_what_the_graph_does_not_say_is_not_left_out(folder):
    questions = ["Which ferries are haunted?", "Which ferries are red and longer than 100 m?", "Is the Petra haunted?"]
    done = run_cli("ask", "--json", "--graph", "graph", input="\n".join(questions), cwd=folder)
    assert [json.loads(line)["answers"] for line in done.out.splitlines()] == [[], [], []]


def test_a_time_that_no_date_takes_makes_the_answer_weak(folder):
    """The director has no dates of office; the year is neither her birth nor the launch of a ferry."""
    done = run_cli("ask", "--json", "Who was director of Northline in 1998?", "--graph", "graph", cwd=folder)
    found = json.loads(done.out)
    assert [each["name"] for each in found["answers"]] == ["Ida Holm"] and found["confidence"] < 0.6
    assert any("not applied: “in 1998”" in note for note in found["notes"])


def test_a_topic_that_is_in_no_triple_is_no_failure(folder):
    done = run_cli("ask", "Who is the director?", "--graph", "graph", "--topic", "http://a.example/b", cwd=folder)
    assert done.returncode == 3 and "No entity of this graph has the id" in done.out + done.err
