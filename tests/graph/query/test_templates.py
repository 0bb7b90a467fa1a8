"""Query templates: only typed terms are accepted, and the text is valid SPARQL."""

from __future__ import annotations

from importlib.resources import files

import pyoxigraph as ox
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.parser import parseUpdate

from kgqa.errors import InvalidTerm
from kgqa.graph.query.operations import query_text
from kgqa.graph.query.text import Comment, PathPattern, Variable, pattern_text, render, render_term
from kgqa.graph.query.tokens import prepare_for_engine
from kgqa.model import Entity, Literal

A, B, R = Entity("http://e/a"), Entity("http://e/b"), Entity("http://e/r")
WALK = PathPattern(
    nodes=(A, Variable("e1"), Variable("answer")),
    edges=((A, R, Variable("e1")), (Variable("answer"), Entity("http://e/q"), Variable("e1"))),
    different=((Variable("answer"), A), (Variable("e1"), A)),
)
WORDS = dict(zip("subject predicate object mention document begin end".split(), (A, B, R, A, B, R, A)))
TEXT = Literal('" } DROP ALL #\n', language="en")
VALUES = {
    **dict.fromkeys(("confidence", "declared_by", "in_chunk", "marker", "model", "object", "relation", "segment", "subject", "text_relation"), R),
    **dict.fromkeys(("chunks", "entities", "kinds", "nodes", "pieces", "relations", "statements", "types"), (A, B)),
    **dict.fromkeys(("predicates", "type_predicates"), (R, B)),
    **dict.fromkeys(("limit", "most", "number", "offset", "shortest"), 5),
    "graph": A, "predicate": R, "node": Variable("object"), "is_object": True, "marks": [Literal("true"), A],
    "prefixes": [Literal("http://e/g.x"), Literal('"')], "languages": [Literal("de-AT"), Literal("")],
    "literals": True, "out": True, "places": [0, 1], "offsets": [1, 2], "vocabulary": WORDS, "names": [TEXT],
    "pattern": Literal("a"), "patterns": [Literal("a")], "triples": [(A, R, TEXT), (B, R, Literal("7", R.iri))],
    "adds": [(A, R, TEXT)], "removes": [(A, R, B)], "table": "relation_counts", "columns": [Variable("relation"), Variable("edges")],
}  # fmt: skip
"""A value of each variable of the templates."""
OTHERS = {
    "doctor_relations": [{"triples": 100}],
    "quoted_answers": [{"places": [(A, 1, 5), (B, 7, 2)]}],
    "last_edit": [{"number": R}],
    "edit_staged": [{"adds": B, "removes": R}],
    "evidence": [{}, {"statements": []}, {"chunks": []}],
    "declared_labels": [{}, {"languages": []}],
    "values_of": [{"predicate": predicate, "languages": each} for predicate in (Variable("p"), None) for each in ([], VALUES["languages"])],
    "mediator_edges": [{}, {"node": Variable("subject"), "is_object": False, "marker": None, "types": [], "type_predicates": []}],
    "present_triples": [{}, {"literals": False, "triples": [(A, R, B)]}],
    "relation_totals": [{}, {"out": False}],
    "page": [{}, {"table": "predicate_pairs", "columns": [Variable("subject")]}, {"table": "declared", "columns": [Variable("node")]}],
}  # fmt: skip
"""Other values for some templates."""
VIRTUOSO = ("names_matching", "virtuoso_limits")
"""Those that use functions of Virtuoso."""
UPDATES = ("insert_triples", "clear_graph", "edit", "edit_staged", "doctor_update")
TEMPLATES = sorted(
    item.name[:-3] for item in files("kgqa.queries").iterdir() if item.name[-3:] == ".rq" and item.name[0] != "_"
)


@pytest.mark.parametrize("view", [(), (A, B)])
@pytest.mark.parametrize("name", TEMPLATES)
def test_template_is_valid_sparql(name, view):
    for values in OTHERS.get(name, [{}]):
        text = render(name, view=view, **VALUES | values)
        assert "None" not in text and "{{" not in text and "{%" not in text
        if name in UPDATES:
            parseUpdate(text)
            ox.Store().update(text)
            continue
        if name not in VIRTUOSO:
            prepareQuery(text)
            ox.Store().query(prepare_for_engine(text))
        if name not in ("named_graphs", "virtuoso_limits"):  # those are about the server
            assert all(text.count(f"FROM <{graph.iri}>") == 1 for graph in view)


@pytest.mark.parametrize("value", ["<http://e/a>", "?x", "", None, 1.5, True, b"x", ["x"], object(), {"a": 1}])
def test_untyped_values_are_refused(value):
    for name, values in (("count_predicate", {"predicate": value}), ("any_triple", {"view": (value,)})):
        with pytest.raises(InvalidTerm, match="only typed terms"):
            render(name, **{"view": (), **values})
    with pytest.raises((InvalidTerm, TypeError)):
        render("values_of", **VALUES | {"view": (), "nodes": [A, value]})


INJECTIONS = [
    "http://e/a> } ; DROP ALL #", "http://e/a b", "http://e/a\n", "http://e/<a", 'http://e/"a', "http://e/{a}", "http://e/a|b", "http://e/a^b",
    "http://e/a`b", "http://e/a\\u003E", "http://e/a\x00", "http://e/a\x7f", "relative", "", ":x", "_:b0", "1http://e/a", "ünicode:a", "http",
]  # fmt: skip
TAGS = [
    "en ",
    "en\n",
    "e n",
    "en}",
    "@en",
    "en--ltr .",
    "1en",
    "-en",
    "en-",
    "toolonglanguage",
    "en-toolongsubtag",
    "é",
]


INVALID = [Entity(text) for text in INJECTIONS] + [Literal("x", datatype=text) for text in INJECTIONS]
INVALID += [Literal("x", language=tag) for tag in TAGS]
INVALID += [Variable(name) for name in ("", "x y", "x}", "?x", "1x", "x-y", "x.y", "é", "x\n")]


class TestTerms:
    @pytest.mark.parametrize("term", INVALID)
    def test_invalid_terms(self, term):
        with pytest.raises(InvalidTerm):
            render_term(term)

    @given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["", "en", "zh-Hans"]))
    @example("\\u0041", "")
    def test_any_literal_is_unchanged(self, value, language):
        literal = Literal(value, language=language)
        query = f"SELECT ({render_term(literal)} AS ?x) {{}}"
        (solution,) = ox.Store().query(prepare_for_engine(query))
        assert solution["x"].value == value and (solution["x"].language or "") == language.lower()

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_any_iri_is_refused_or_unchanged(self, text):
        try:
            written = render_term(Entity("http://e/" + text))
        except InvalidTerm:
            return
        assert written == f"<http://e/{text}>" and not set('<>"{}|^`\\ \n') & set(text)

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_comment_never_changes_a_query(self, text):
        query = query_text("SELECT ?answer", (), pattern_text(WALK))
        ox.Store().query(prepare_for_engine(f"{render_term(Comment(text))}\n{query}"))
