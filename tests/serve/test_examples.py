"""Example questions about any graph, and an example query."""

from __future__ import annotations

from kgqa import ask, open_resources
from kgqa.serve.examples import MAX_EXAMPLES, example_query, graph_examples
from kgqa.serve.tools.query_tools import run_query
from kgqa.settings.values import resolve
from tests.memory_graph import memory_graph

LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


def test_examples_read_like_questions_and_are_answered(demo):
    found = graph_examples(demo)
    assert len(set(found)) == MAX_EXAMPLES and all(text.startswith("What is the ") for text in found)
    resources = open_resources(demo, settings=resolve({"rank.embeddings": "off"}))
    answered = [ask(text, resources=resources).status == "answered" for text in found]
    assert sum(answered) >= MAX_EXAMPLES - 1


def test_only_relations_whose_name_is_a_noun_make_examples():
    verbs = ("won", "contains", "containedby", "directedBy", "directed", "playsFor", "adjoin_s", "partof", "stars",
             "locatedin", "hascapital", "languages_spoken", "memberOfTeam", "starring", "notable", "winners")  # fmt: skip
    nouns = ("capital", "place_of_birth", "status", "currencyCode")
    lines = []
    for number, name in enumerate((*verbs, *nouns)):
        lines += [
            f"<urn:t:a{number}> <urn:t:{name}> <urn:t:b> .",
            f'<urn:t:a{number}> {LABEL} "Ada {name}" .',
            f'<urn:t:b> {LABEL} "Bo" .',
        ]
    found = graph_examples(memory_graph(lines, schema="rdfs"))
    words = ("capital", "place of birth", "status", "currency code")
    assert sorted(found) == sorted(f"What is the {each} of Ada {name}?" for each, name in zip(words, nouns))


def test_the_example_query_returns_rows_and_a_graph_without_relations_has_none(demo):
    query = example_query(demo)
    assert query.startswith("PREFIX ns: <http://rdf.freebase.com/ns/>\nSELECT")
    assert run_query(demo, query, seconds=5, rows=10)["rows"]
    assert example_query(memory_graph([])) == ""
