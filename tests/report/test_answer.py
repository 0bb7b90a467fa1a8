"""An answer as text and as JSON: its graph, its evidence, its response."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kgqa.model import (
    Answer,
    Citation,
    Entity,
    GraphId,
    HyperedgeEvidence,
    Literal,
    Named,
    Participant,
    PathEvidence,
    Question,
    QuoteEvidence,
    RelationPath,
    Span,
    StatementEvidence,
    Step,
    Triple,
    Usage,
)
from kgqa.model.conditions import Condition, Operation
from kgqa.report.answer import MAX_SHOWN, answer_text, cost_line, graph_line
from kgqa.storage.answer_json import answer_object, json_text
from tests.report.agents.traces import TOOL_TURNS, acting_answer
from tests.report.text.traces import text_answer

SERVER = GraphId("http://h:8890/sparql", ("http://a", "http://b"), "remote-1", 1_234_567, "freebase")


@pytest.mark.parametrize(
    "graph, line",
    [
        (
            SERVER,
            "http://h:8890/sparql <http://a> <http://b>, 1,234,567 triples, fingerprint remote-1, schema freebase",
        ),
        (GraphId("folder", schema="rdfs"), "folder, triples not counted, schema rdfs"),
        (GraphId("x\x1b[31m", (), "f", 1, "s\u202e"), "x[31m, 1 triple, fingerprint f, schema s"),
    ],
)
def test_graph_line(graph, line):
    assert graph_line(graph) == line


def test_graph_in_text_is_optional():
    answer = Answer(Question("x"), "no_answer", reason="Nothing.", graph=SERVER)
    assert "remote-1" not in answer_text(answer)
    assert f"  graph  {graph_line(SERVER)}" in answer_text(answer, graph=True).splitlines()
    assert "graph" not in answer_text(Answer(Question("x"), "failed"), graph=True)


def test_graph_in_json():
    found = answer_object(Answer(Question("x"), "failed", graph=SERVER))["graph"]
    assert found == {
        "place": "http://h:8890/sparql",
        "iris": ("http://a", "http://b"),
        "fingerprint": "remote-1",
        "triples": 1_234_567,
        "schema": "freebase",
    }
    assert answer_object(Answer(Question("x"), "failed"))["graph"] is None


def test_long_list_of_answers_is_cut():
    named = tuple(Named(f"city {number}", "", f"city {number}") for number in range(MAX_SHOWN + 2))
    lines = answer_text(Answer(Question("x"), "answered", named)).splitlines()
    assert lines[MAX_SHOWN - 1 : MAX_SHOWN + 1] == ["city 29", "... and 2 more (use --json to see all)"]
    assert "more" not in answer_text(Answer(Question("x"), "answered", named[:MAX_SHOWN]))


def test_long_name_of_an_entity_is_cut_but_no_text():
    long = "x" * 10_000
    entity, text = (
        Answer(Question("q"), "answered", (Named(each, "", long),)) for each in (Entity("e:1"), Literal(long))
    )
    assert len(answer_text(entity).split("\n")[0]) < 400 and long in answer_text(text)


def test_answer_of_a_model_names_its_source():
    answer = Answer(Question("x"), "answered", (Named("Paris", "", "Paris"),), grounding="model")
    assert "  source the language model's own knowledge" in answer_text(answer)
    assert "source" not in answer_text(Answer(Question("x"), "answered", answer.answers, grounding="graph"))
    over_text = answer_text(replace(answer, response="It is Paris."))
    assert "  source the language model; no verified quote contains the answer\n" in over_text


EVIL = "x\x1b[31m\u202e\x07y"
SPAN = Span("urn:doc:1", f"urn:chunk:{EVIL}", 5, 10)
TRIPLE = Triple(Entity("urn:e:1"), f"urn:{EVIL}", Literal(EVIL))
ALL_EVIDENCE = (
    PathEvidence(RelationPath(Entity("urn:e:1"), (Step("urn:r"),)), f"the path {EVIL}"),
    StatementEvidence("urn:s:1", TRIPLE, f"the statement {EVIL}", (SPAN,), 0.5, EVIL),
    HyperedgeEvidence("urn:h:1", f"the segment {EVIL}", (Participant(EVIL, Named(Literal(EVIL), "", EVIL)),), (SPAN,)),
    QuoteEvidence(SPAN, f"the quote {EVIL}", True),
    QuoteEvidence(SPAN, f"the invention {EVIL}", False),
)
FULL = Answer(
    Question("x"),
    "answered",
    (Named(Literal("Paris"), "", "Paris"),),
    evidence=ALL_EVIDENCE,
    grounding="text",
    response=f"Two\nlines {EVIL}",
    citations=(Citation(f"claim {EVIL}", "urn:p", SPAN, f"cited {EVIL}", True), Citation("bare claim", "urn:piece")),
    evidence_sparql=f"SELECT {EVIL}",
    evidence_class="exact",
)


def test_all_evidence_is_shown_without_control_characters():
    text = answer_text(FULL)
    lines = text.splitlines()
    assert lines[:3] == ["Paris", "", "Two"]
    for part in ("the path", "the statement", "the segment", "“the quote", "claim", "“cited", "SELECT", "5–10",
                 "every answer stands in a verified quote", "checked: returns", "urn:piece"):  # fmt: skip
        assert part in text
    assert text.count("(not found in the text)") == 2  # the invention and the claim without a quote
    assert text.replace("\n", "").isprintable()


def test_evidence_in_json():
    found = json.loads(json_text(answer_object(FULL)))
    assert [each["kind"] for each in found["paths"]] == ["path"]
    assert [each["kind"] for each in found["evidence"]] == ["statement", "hyperedge", "quote", "quote"]
    span = {"document": SPAN.document, "chunk": SPAN.chunk, "begin": 5, "end": 10, "source": ""}
    statement, hyperedge, quote, invention = found["evidence"]
    assert statement["triple"] == ["urn:e:1", TRIPLE.relation, EVIL] and statement["spans"] == [span]
    assert (statement["confidence"], statement["iri"]) == (0.5, "urn:s:1")
    assert hyperedge["participants"][0]["role"] == EVIL and hyperedge["participants"][0]["name"] == EVIL
    assert (quote["span"], quote["verified"], invention["verified"]) == (span, True, False)
    assert found["citations"][1] == {
        "claim": "bare claim", "piece": "urn:piece", "span": None, "quote": "", "verified": False
    }  # fmt: skip
    assert (found["grounding"], found["evidence_class"]) == ("text", "exact")


def test_notes_are_optional_and_defects_are_not():
    answer = Answer(Question("x"), "answered", notes=("two topics",), defects=("a query failed",))
    assert "  note   two topics" in answer_text(answer)
    assert "two topics" not in answer_text(answer, notes=False)
    assert "  DEFECT a query failed" in answer_text(answer, notes=False)


def test_cost_line():
    assert cost_line(Answer(Question("x"), "answered", usage=Usage(hops=1, queries=2, seconds=0.5))) == (
        "0 candidates of 1 hop, 0 comparisons, 2 SPARQL queries, 0.50 s"
    )
    usage = Usage(calls=3, rounds=1, prompt_tokens=1000, completion_tokens=20, cost=0.0125)
    assert "3 model calls in 1 round, 1,020 tokens, 0.0125 USD, 0.00 s" in cost_line(
        Answer(Question("x"), "answered", usage=usage)
    )


def test_conditions_and_the_operation_are_shown_in_words():
    office = RelationPath(Entity("urn:office"), (Step("urn:holder"),))
    conditions = (Condition(1, (Step("urn:to"),), negated=True),)
    words = ("there is no “to” of ?answer",)
    evidence = PathEvidence(
        office, "office → holder", (), (), (), None, False, conditions, Operation("count"), words, "Count."
    )
    answer = Answer(Question("x"), "answered", (Named(Literal("1"), "", "1"),), evidence=(evidence,))
    assert "  path   office → holder\n  where  there is no “to” of ?answer\n  then   Count.\n" in answer_text(answer)
    (path,) = answer_object(answer)["paths"]
    assert [each["words"] for each in path["conditions"]] == list(words) and path["operation"]["words"] == "Count."


def test_weak_answer_from_text():
    weak = replace(FULL, accepted=False, evidence=())
    assert answer_text(weak).startswith("Weak match: the answer was not accepted. The best one found:\nParis\n")
    assert answer_text(replace(weak, citations=())).startswith("Weak match: the answer was not accepted.")
    assert "no path was accepted" in answer_text(replace(FULL, accepted=False))


def test_steps_and_citations_of_answers_from_turns_and_from_text():
    lines = answer_text(acting_answer()).splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("  steps  step 1, plan: The question"))
    assert lines[0] == "Kirkwick (c1)" and lines[start + 1] == "         step 1: Retrieve[Skerry Light] → Skerry Light"
    unproved = "  source the language model; what it found in the graph does not prove the answer"
    assert unproved in answer_text(acting_answer(TOOL_TURNS))
    lines = answer_text(text_answer()).splitlines()
    assert lines[0] == "Kirkwick" and lines[2].startswith("The architect of the Skerry Light")
    cited = "  cites  Ines Marr was the architect.: “Its architect was Ines Marr” [docs/Skerry Light.txt, 36–63] ✓"
    assert cited in lines
    assert "  cites  She lived in Oban.: “She lived in Oban” (not found in the text)" in lines
    assert not any(line.startswith("  quote") for line in lines)  # the citations show it
    start = lines.index("  steps  the question → not in the passages")
    assert lines[start + 1] == "         round 1: insufficient; missing: the birthplace of Ines Marr"
