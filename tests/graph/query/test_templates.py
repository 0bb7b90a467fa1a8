"""Query templates: only typed terms are accepted, and the text is valid SPARQL."""

from __future__ import annotations

from importlib.resources import files

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.parser import parseUpdate

from kgqa.errors import InvalidTerm
from kgqa.graph.query.export import StatementVocabulary
from kgqa.graph.query.operations import query_text
from kgqa.graph.query.patterns import PathPattern, pattern_text
from kgqa.graph.query.templates import Comment, Variable, render, render_term
from kgqa.graph.query.tokens import prepare_for_engine
from kgqa.model import Entity, Literal

A, B, R = Entity("http://e/a"), Entity("http://e/b"), Entity("http://e/r")
WALK = PathPattern(
    nodes=(A, Variable("e1"), Variable("answer")),
    edges=((A, R, Variable("e1")), (Variable("answer"), Entity("http://e/q"), Variable("e1"))),
    different=((Variable("answer"), A), (Variable("e1"), A)),
)
FULL = {
    "all_nodes": [{}],
    "all_triples": [{}],
    "any_relation": [{"relations": [R, A]}],
    "any_triple": [{}],
    "name_languages": [{"predicate": R, "limit": 5}],
    "named_graphs": [{"limit": 100}],
    "count_predicate": [{"predicate": R}],
    "count_up_to": [{"most": 5}],
    "count_triples": [{}],
    "relation_totals": [{"entities": [A, B], "out": out} for out in (True, False)],
    "subject_count": [{}],
    "doctor_pairs": [{"relation": R, "limit": 20}],
    "doctor_relations": [{"triples": 100}],
    "doctor_rows": [{"limit": 10}],
    "doctor_slow": [{"places": [0, 1]}],
    "doctor_texts": [{"nodes": [A, B]}],
    "declared": [{"declared_by": R, "kinds": [A, B]}],
    "declared_labels": [
        {"declared_by": R, "kinds": [A], "predicate": B, "languages": languages}
        for languages in ([], [Literal("de"), Literal("")])
    ],
    "evidence": [
        {"statements": statements, "chunks": chunks, "vocabulary": StatementVocabulary(A, B, R, A, B, R, A)}
        for statements, chunks in (([A], []), ([], [B]), ([A, B], [B, R]))
    ],
    "has_predicate": [{"predicate": R}],
    "values_of": [
        {"nodes": [A, B], "predicates": predicates, "predicate": predicate, "languages": languages}
        for predicate in (Variable("predicate"), None)
        for predicates, languages in (([R], []), ([R, B], [Literal("de-AT"), Literal("")]))
    ],
    "declarations": [{"predicates": [R]}, {"predicates": [R, A]}],
    "mediator_edges": [
        {"node": Variable("object"), "is_object": True, "prefixes": [Literal("http://e/g.x"), Literal('"')], "types": [A, B], "type_predicates": [R, B], "marker": R, "marks": [Literal("true"), A]},
        {"node": Variable("subject"), "is_object": False, "prefixes": [], "types": [], "type_predicates": [], "marker": None, "marks": []},
        {"node": Variable("subject"), "is_object": False, "prefixes": [Literal("http://e/")], "types": [], "type_predicates": [R], "marker": None, "marks": []},
    ],
    "predicate_pairs": [{"predicate": R}],
    "last_edit": [{"number": R}],
    "facts_in_chunks": [{"chunks": [A], "in_chunk": R, "vocabulary": StatementVocabulary(A, B, R, A, B, R, A)}],
    "places": [{"pieces": [A, B], "vocabulary": StatementVocabulary(A, B, R, A, B, R, A), "confidence": R, "model": R, "segment": R}],
    "relation_counts": [{}],
    "page": [
        {"table": table, "columns": [Variable(name) for name in names], "limit": 50, "offset": 100, **values}
        for table, names, values in (
            ("relation_counts", ("relation", "edges"), {}),
            ("predicate_pairs", ("subject", "object"), {"predicate": R}),
            ("declared", ("node",), {"declared_by": R, "kinds": [A, B]}),
        )
    ],
    "quoted_answers": [{"places": [(A, 1, 5), (B, 7, 2)], "text_relation": R}],
    "relation_examples": [{"relation": R, "limit": 5}],
    "present_triples": [
        {"literals": False, "triples": [(A, R, B), (B, R, A)]},
        {"literals": True, "triples": [(A, R, Literal("x")), (A, R, Literal('" } DROP ALL #\n', language="en"))]},
    ],
}  # fmt: skip
UPDATES = {
    "insert_triples": {"graph": A, "triples": [(A, R, B), (B, R, Literal('" } DROP ALL #\n', language="en")), (B, R, Literal("7", R.iri))]},
    "clear_graph": {"graph": A},
    "edit": {"graph": A, "adds": [(A, R, Literal('" } DROP ALL #\n'))], "removes": [(A, R, B)]},
    "edit_staged": {"graph": A, "adds": B, "removes": R},
    "doctor_update": {"graph": A, "subject": A, "relation": R, "object": B},
}  # fmt: skip
CASES = [
    (name, values, view)
    for name, sets in FULL.items()
    for values in sets
    for view in ((), (Entity("http://e/g1"), Entity("http://e/g2")))
]


class TestTemplates:
    def test_all_templates_are_covered(self):
        names = {
            item.name.removesuffix(".rq")
            for item in files("kgqa.queries").iterdir()
            if item.name.endswith(".rq") and not item.name.startswith("_")
        }
        # test_name_tokens covers those of names, test_virtuoso the one for Virtuoso only
        names = {name for name in names if not name.startswith("names_")} - {"virtuoso_limits"}
        assert names == set(FULL) | set(UPDATES)

    @pytest.mark.parametrize("name, values", UPDATES.items(), ids=list(UPDATES))
    def test_is_an_update(self, name, values):
        text = render(name, **values)
        parseUpdate(text)
        ox.Store().update(text)
        assert text.count(f"<{values['graph'].iri}>") >= 1

    @pytest.mark.parametrize("name, values, view", CASES, ids=[case[0] for case in CASES])
    def test_is_valid_sparql(self, name, values, view):
        text = render(name, view=view, **values)
        prepareQuery(text)
        ox.Store().query(prepare_for_engine(text))
        assert "None" not in text and "{{" not in text and "{%" not in text
        for graph in view if name != "named_graphs" else ():  # this one lists the graphs
            assert text.count(f"FROM <{graph.iri}>") == 1

    @pytest.mark.parametrize("name, values, view", CASES[::3], ids=[case[0] for case in CASES[::3]])
    def test_missing_value_is_an_error(self, name, values, view):
        from jinja2 import UndefinedError

        for key in values:
            try:
                render(name, view=view, **{k: v for k, v in values.items() if k != key})
            except (UndefinedError, InvalidTerm):
                continue
            assert key in (
                "marks",
                "kept",
                "chosen",
                "cap",
                "keep",
                "previous",
                "marker",
                "type_predicates",
                "is_object",
            )

    @pytest.mark.parametrize("value", ["<http://e/a>", "?x", "x", "", None, 1.5, True, b"x", ["x"], object(), {"a": 1}])
    def test_untyped_values_are_refused(self, value):
        for name, key in (("count_predicate", "predicate"), ("has_predicate", "predicate")):
            with pytest.raises(InvalidTerm, match="only typed terms"):
                render(name, view=(), **{key: value})
        with pytest.raises((InvalidTerm, TypeError)):
            render("values_of", view=(), nodes=[A, value], predicates=[R], predicate=None, languages=[])
        with pytest.raises(InvalidTerm):
            render("any_triple", view=(value,))


INJECTIONS = [
    "http://e/a> } ; DROP ALL #",
    "http://e/a b",
    "http://e/a\n",
    "http://e/a\t",
    "http://e/<a",
    'http://e/"a',
    "http://e/{a}",
    "http://e/a|b",
    "http://e/a^b",
    "http://e/a`b",
    "http://e/a\\u003E",
    "http://e/a\x00",
    "http://e/a\x7f",
    "relative",
    "",
    ":x",
    "_:b0",
    "1http://e/a",
    "ünicode:a",
    "http",
]


def test_distinct_only_where_duplicates_are_possible():
    one, two = (render("relation_counts", view=[Entity(f"http://e/g{n}") for n in range(count)]) for count in (1, 2))
    assert "DISTINCT" not in one and "DISTINCT" not in render("relation_counts", view=()) and "DISTINCT" in two


class TestTerms:
    @pytest.mark.parametrize("iri", INJECTIONS)
    def test_invalid_iri(self, iri):
        with pytest.raises(InvalidTerm):
            render_term(Entity(iri))
        with pytest.raises(InvalidTerm):
            render_term(Literal("x", datatype=iri))

    @pytest.mark.parametrize(
        "tag",
        [
            "en ",
            "en\n",
            "e n",
            "en}",
            "@en",
            "en--ltr .",
            "en .",
            "1en",
            "-en",
            "en-",
            "toolonglanguage",
            "en-toolongsubtag",
            "é",
        ],
    )
    def test_invalid_language(self, tag):
        with pytest.raises(InvalidTerm):
            render_term(Literal("x", language=tag))

    @pytest.mark.parametrize("name", ["", "x y", "x}", "?x", "1x", "x-y", "x.y", "é", "x\n"])
    def test_invalid_variable(self, name):
        with pytest.raises(InvalidTerm):
            render_term(Variable(name))

    @pytest.mark.parametrize(
        "term, text",
        [
            (A, "<http://e/a>"),
            (Entity("urn:x:é"), "<urn:x:é>"),
            (Variable("answer"), "?answer"),
            (Literal("x"), '"x"'),
            (Literal("x", language="en-GB"), '"x"@en-GB'),
            (Literal("5", "http://e/t"), '"5"^^<http://e/t>'),
            (Literal('a"b\\c\nd\re\tf\bg\fh'), '"a\\"b\\\\c\\nd\\re\\tf\\bg\\fh"'),
            (7, "7"),
            (Comment("a\nb\r\nc\x0bd\u2028e\x85f\x1bg\u202eh"), "# a b c d e f g h"),
            (Comment(""), "# "),
            (Comment("a\\u000A} DROP ALL \\U0000000D"), "# a u000A} DROP ALL U0000000D"),
        ],
    )
    def test_text(self, term, text):
        assert render_term(term) == text

    @given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["", "en", "zh-Hans"]))
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

    @given(st.text())
    def test_any_comment_is_one_line(self, text):
        written = render_term(Comment(text))
        assert len((written + "\n").splitlines()) == 1 and written.startswith("# ")
        assert all(c.isprintable() for c in written)

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_comment_never_changes_a_query(self, text):
        query = query_text("SELECT ?answer", (), pattern_text(WALK))
        ox.Store().query(prepare_for_engine(f"{render_term(Comment(text))}\n{query}"))

    def test_injection_stays_a_literal(self):
        """Literals that look like SPARQL stay literals."""
        text = render(
            "values_of",
            view=(),
            nodes=[Literal('" } DROP ALL #'), Entity("http://e/a")],
            predicates=[R],
            predicate=None,
            languages=[],
        )
        assert '"\\" } DROP ALL #"' in text
        prepareQuery(text)
