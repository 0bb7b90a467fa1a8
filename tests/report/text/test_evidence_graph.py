"""The evidence graph from events, and its drawing."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from kgqa.report.text.evidence_graph import MAX_FACTS, evidence_graph
from kgqa.report.text.graph_drawing import MAX_DRAWN, draw_graph
from kgqa.trace import EvidenceEdited, LocalFact
from tests.report.text.traces import ROUNDS


def edited(*facts: tuple[str, str, str], step: int = 0, **more) -> EvidenceEdited:
    return EvidenceEdited(step=step, added=tuple(LocalFact(*fact, "urn:c", "q") for fact in facts), **more)


def test_facts_grow_and_names_merge():
    graph = evidence_graph(ROUNDS)
    assert [(f.subject, f.relation, f.object, f.edit, f.removed) for f in graph.facts] == [
        ("Skerry Light", "architect", "Ines Marr", 0, None),
        ("Ines Marr", "born in", "Kirkwick", 0, None),
        ("Ines Marr", "died in", "Leith", 1, 2),
    ]
    assert [each.step for each in graph.edits] == [1, 2, 0] and graph.edits[0].refused == 1


def test_edits_without_changes_are_left_out():
    assert evidence_graph([EvidenceEdited(step=1)]).edits == []


def test_names_merged_in_a_circle():
    graph = evidence_graph([edited(("A", "r", "c"), merged=(("a", "b"), ("b", "c"), ("C", "A")))])
    assert (graph.facts[0].subject, graph.facts[0].object) == ("a", "a")
    assert len(draw_graph(graph.facts).nodes) == 1 and draw_graph(graph.facts).edges == ()


def test_many_facts_are_counted():
    many = [(f"a{n}", "r", f"b{n}") for n in range(MAX_FACTS + 5)]
    graph = evidence_graph([edited(*many)])
    assert graph.left_out == 5
    drawing = draw_graph(graph.facts)
    assert len(drawing.edges) == MAX_DRAWN and drawing.left_out == MAX_FACTS - MAX_DRAWN


def test_columns_are_distances_from_the_first_name():
    facts = evidence_graph([edited(("a", "r", "b"), ("c", "s", "b"), ("b", "t", "d"), ("x", "u", "y"))]).facts
    drawing = draw_graph(facts, answers=["D"])
    x = {node.name: node.x for node in drawing.nodes}
    assert x["a"] == x["x"] < x["b"] == x["y"] < x["c"] == x["d"]
    assert {node.name for node in drawing.nodes if node.kind == "answer"} == {"d"}
    assert len({(node.x, node.y) for node in drawing.nodes}) == 6
    assert all(0 < node.x < drawing.width and 0 < node.y < drawing.height for node in drawing.nodes)
    assert draw_graph([]) is None


def test_relations_of_the_same_names_share_a_line():
    facts = evidence_graph([edited(("a", "r", "b"), ("A", "s", "B"), ("b", "t", "a"))]).facts
    first, second, back = draw_graph(facts).edges
    assert first.path and not second.path and second.y > first.y and back.path != first.path


name = st.sampled_from("abcdefg")


@given(st.lists(st.tuples(name, st.just("r"), name), max_size=20))
def test_labels_do_not_cover_each_other(triples):
    """No two relations stand at the same place, and everything is inside of the drawing."""
    drawing = draw_graph(evidence_graph([edited(*dict.fromkeys(triples))]).facts)
    if drawing is None:
        return
    assert all(-10 <= edge.x <= drawing.width and -10 <= edge.y <= drawing.height for edge in drawing.edges)
    assert all(one != other for one, other in combinations([(e.x, e.y, e.aside) for e in drawing.edges], 2))
