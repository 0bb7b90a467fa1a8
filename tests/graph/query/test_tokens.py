"""Query tokens: lossless splitting, expansion of prefixed names, detection of SERVICE and LOAD."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
from functools import partial
from typing import ClassVar

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rdflib.plugins.sparql import prepareQuery

from kgqa.errors import QueryRejected
from kgqa.graph.query.prefixes import shorten_iris, used_prefixes
from kgqa.graph.query.tokens import (
    check_for_server,
    expand_prefixes,
    forbid_fetching,
    prepare_for_engine,
    tokens,
)

NS = "http://rdf.freebase.com/ns/"
DECLARED = f"PREFIX ns: <{NS}> PREFIX : <http://e/> "

FRAGMENTS = st.sampled_from(
    [
        "SELECT", "?x", "$y", "?a<?b", "?a<=?b", "{", "}", ".", ";", ",", "(", ")", "<http://e/a#b>", "<rel>", "ns:a.b.c",
        "ns:a\\.b", "ns:%20x", "ns:", ":x", ":", "_:b1", '"text"', "'it''s'", '"""a "quoted" b"""', "'''x\n'y'''", '"\\""',
        "@en-GB", "^^", "1", "-2.5", "1e6", ".5", "# comment ns:a.b\n", "#", "\n", " ", "\t", "&&", "||", "!=", "true", "a",
        "PREFIX", "BASE", "SERVICE", "\\u0053", '"', "'", "<", ">", "\\", "^", "é:ß", "\x00", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    ]
)  # fmt: skip


def body(query: str) -> str:
    """Return the part after the declarations of DECLARED."""
    return query.rsplit("<http://e/> ", 1)[1]


class TestTokens:
    @given(st.text())
    @example("\r\n\x85\u2028")
    @example('"""unfinished')
    @example("<no iri")
    def test_any_text_joins_back(self, text):
        assert "".join(token.text for token in tokens(text)) == text

    @given(st.lists(FRAGMENTS).map("".join))
    def test_pieces_of_sparql_join_back(self, text):
        found = list(tokens(text))
        assert "".join(token.text for token in found) == text
        assert all(token.text for token in found)

    @given(st.lists(FRAGMENTS).map("".join))
    def test_expansion_of_any_fragments(self, text):
        expand_prefixes(DECLARED + text)

    @pytest.mark.parametrize(
        "text, kinds",
        [
            ("?a<?b", ["variable", "mark", "variable"]),
            ("?a<=?b", ["variable", "mark", "variable"]),
            ("ns:a.b.c.", ["name", "mark"]),
            ('"a"@en-GB', ["string", "language"]),
            ('"a"^^ns:t', ["string", "mark", "name"]),
            ("'a\\'b'", ["string"]),
            ('"""a"b""c"""', ["string"]),
            ("_:b.1.", ["blank", "mark"]),
            ("<http://e/a#b>", ["iri"]),
            ("1.5e-3", ["number"]),
        ],
    )
    def test_token_kinds(self, text, kinds):
        assert [token.kind for token in tokens(text)] == kinds


class TestExpansion:
    @pytest.mark.parametrize(
        "written, expanded",
        [
            ("ns:people.person.place_of_birth", f"<{NS}people.person.place_of_birth>"),
            ("ns:m.0abc.", f"<{NS}m.0abc>."),  # a dot at the end ends the triple
            ("ns:a\\.b\\.", f"<{NS}a.b.>"),
            ("ns:a\\-b\\(c\\)\\,", f"<{NS}a-b(c),>"),
            ("ns:a:b", f"<{NS}a:b>"),
            (":x.y.z", "<http://e/x.y.z>"),
            (":", "<http://e/>"),
            ("ns:a/ns:b|^ns:c*", f"<{NS}a>/<{NS}b>|^<{NS}c>*"),
            ("?a<ns:b", f"?a<<{NS}b>"),
            ("other:x.y", "other:x.y"),
            ('"ns:a.b"', '"ns:a.b"'),
            ('"""x ns:a.b "y" """', '"""x ns:a.b "y" """'),
            ("# ns:a.b.c\n", "# ns:a.b.c\n"),
            ("<urn:x?ns:a.b>", "<urn:x?ns:a.b>"),
            ('"5"^^ns:type.int', f'"5"^^<{NS}type.int>'),
        ],
    )
    def test_names(self, written, expanded):
        assert body(expand_prefixes(DECLARED + written)) == expanded

    @pytest.mark.parametrize("keyword", ["PREFIX", "prefix", "Prefix"])
    def test_keyword_in_any_case(self, keyword):
        assert "<http://1/a.b.c>" in expand_prefixes(f"{keyword} p: <http://1/> SELECT * {{ p:a.b.c ?p ?o }}")

    def test_relative_declaration_is_left_to_the_engine(self):
        query = "BASE <http://b/> PREFIX p: <x#> SELECT * { p:a ?p ?o }"
        assert expand_prefixes(query) == query

    def test_relative_redeclaration_does_not_leave_the_older_one(self):
        query = "BASE <http://b/> PREFIX p: <http://1/> PREFIX p: <x#> SELECT * { p:a ?p ?o }"
        assert "<http://1/a>" not in expand_prefixes(query)

    @given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,12}[A-Za-z0-9_]", fullmatch=True))
    def test_any_dotted_name(self, local):
        assert body(expand_prefixes(f"{DECLARED}ns:{local}")) == f"<{NS}{local}>"


class TestFetching:
    def test_refused_names_are_shown_without_control_characters(self):
        with pytest.raises(QueryRejected, match="^<bif:x> is not allowed"):
            check_for_server("SELECT * { <bif:\u2066x> ?b ?c }", reads="SELECT")
        with pytest.raises(QueryRejected, match="prefix of load:x with"):
            prepare_for_engine("SELECT * { load:\u200dx ?b ?c }")

    @pytest.mark.parametrize("escaped", ["\\u0053ERVICE", "SERV\\U00000049CE", "s\\u0065rvice", "\\u004cOAD"])
    @pytest.mark.parametrize(
        "text",
        [
            "SELECT * {{ {} <http://127.0.0.1:9/> {{ ?a ?b ?c }} }}",
            "SELECT * {{ ?s ?p <http://e/{}> }}",
            "SELECT * {{}} # {}",
        ],
    )
    def test_an_escape_hides_no_keyword(self, escaped, text):
        for check in (prepare_for_engine, partial(check_for_server, reads="SELECT")):
            with pytest.raises(QueryRejected, match="an escape of an ASCII"):
                check(text.format(escaped))

    @pytest.mark.parametrize("literal", ["caf\\u00e9", "\\\\u0041"])
    def test_other_escapes_stay_in_texts(self, literal):
        assert prepare_for_engine(f'SELECT * {{ ?s ?p "{literal}" }}') == f'SELECT * {{ ?s ?p "{literal}" }}'

    @pytest.mark.parametrize("keyword", ["SERVICE", "service", "SerVice"])
    def test_service_is_refused(self, keyword):
        with pytest.raises(QueryRejected, match="SERVICE is not allowed"):
            prepare_for_engine(f"SELECT * {{ {keyword} <http://127.0.0.1:9/> {{ ?a ?b ?c }} }}")

    @pytest.mark.parametrize("keyword", ["LOAD", "load", "LoAd"])
    def test_load_is_refused(self, keyword):
        with pytest.raises(QueryRejected, match="LOAD is not allowed"):
            prepare_for_engine(f"{keyword} <http://127.0.0.1:9/>")

    @pytest.mark.parametrize(
        "text",
        [
            "SELECT * { SERVICE?x { ?a ?b ?c } }",
            "SELECT * { SERVICE#\n<http://127.0.0.1:9/> { ?a ?b ?c } }",
            "SELECT * { ?s ?p ?o # a comment\nSERVICE <http://127.0.0.1:9/> { ?a ?b ?c } }",
            "SELECT * { ?s ?p '#' . SERVICE <http://127.0.0.1:9/> { ?a ?b ?c } }",
            "SELECT * { ?s ?p '''a'b''' . SERVICE <http://127.0.0.1:9/> { ?a ?b ?c } }",
            "SELECT * { FILTER(1<2) SERVICE <http://127.0.0.1:9/> { ?a ?b ?c } FILTER(2>1) }",
            "LOAD SILENT <http://127.0.0.1:9/> INTO GRAPH <http://e/g>",
            "INSERT DATA { <http://e/a> <http://e/b> 1 } ; LOAD <http://127.0.0.1:9/>",
        ],
    )
    def test_all_spellings_are_refused(self, text):
        with pytest.raises(QueryRejected):
            prepare_for_engine(text)

    @pytest.mark.parametrize(
        "text",
        [
            'SELECT * { ?s ?p "SERVICE <x>" }',
            'SELECT * { ?s ?p """a SERVICE " b""" }',
            "SELECT * { ?s ?p ?o } # SERVICE <x> { }",
            "SELECT * { ?s <http://e/service> ?o }",
            "SELECT ?service $load { ?service ?p $load }",
            "PREFIX ex: <http://e/> SELECT * { ?s ex:service ex:load }",
            'SELECT * { ?s ?p "x"@service }',
            "SELECT * { _:service ?p _:load }",
        ],
    )
    def test_keyword_in_text_is_accepted(self, text):
        forbid_fetching(text)
        prepare_for_engine(text)
        prepareQuery(text)


GRAPH = """
@prefix ns: <http://rdf.freebase.com/ns/> .
@prefix : <http://e/> .
ns:m.1 ns:people.person.parents ns:m.2, ns:m.3 ; ns:type.object.name "Ann"@en .
ns:m.2 ns:people.person.parents ns:m.4 ; ns:type.object.name "Bob"@en ; :age 40 .
ns:m.3 :age 20 ; ns:type.object.name "ns:m.1 SERVICE # 'x'" .
ns:m.4 :age 70 ; :x.y "a.b" .
"""
QUERIES = [
    "SELECT ?x { ns:m.1 ns:people.person.parents ?x . }",
    "SELECT ?x { ns:m.1 ns:people.person.parents/ns:people.person.parents ?x }",
    "SELECT ?x { ?x ^ns:people.person.parents|ns:type.object.name ns:m.1 }",
    "SELECT ?x ?y { ?x :age ?a . ?y :age ?b FILTER(?a<?b && ?b>?a) } # ns:m.9",
    "SELECT ?x { ?x ns:type.object.name 'ns:m.1 SERVICE # \\'x\\'' }",
    "SELECT (COUNT(DISTINCT ?x) AS ?n) { ?x ns:people.person.parents ?y ; :age ?a } GROUP BY ?a HAVING(?a<100)",
    "SELECT ?x { VALUES ?x { ns:m.1 ns:m.2 :x.y } ?x ns:type.object.name ?n FILTER(lang(?n)='en') }",
    "ASK { ns:m.4 ns:people.person.parents [] }",
]


@pytest.mark.parametrize("query", QUERIES)
def test_engine_result_equals_rdflib(graph, query, shared):
    expected = graph.query(DECLARED + query)
    if expected.type == "ASK":
        assert shared.ask(DECLARED + query) == expected.askAnswer
    else:
        got = shared.select(DECLARED + query)
        assert sorted(tuple(_text(v) for v in row) for row in got) == _result(expected)


PREFIXES = {"ns": NS, "e": "http://e/", "vocab": "http://e/vocab#", "k": "urn:k:e:", "rdf": "http://r/"}


class TestShortening:
    """Queries shortened with prefixes mean the same."""

    @pytest.mark.parametrize("query", QUERIES)
    def test_shortened_query_has_the_same_meaning(self, graph, query):
        full = prepare_for_engine(DECLARED + query).removeprefix(DECLARED)
        short = shorten_iris(full, PREFIXES)
        assert short.startswith("PREFIX") and "<" + NS not in short.partition(f"<{NS}>")[2]
        assert _result(graph.query(short)) == _result(graph.query(full))

    def test_only_iris_are_shortened(self):
        """The longest namespace is used; what needs an escape, or stands in a text or comment, stays."""
        query = "SELECT ?x { <http://e/vocab#a> <http://e/b.c.d> <http://e/b.>, <urn:k:e:d>, '<http://e/a>' } # <http://e/a>"
        short = shorten_iris(query, PREFIXES)
        head = "PREFIX vocab: <http://e/vocab#>\nPREFIX e: <http://e/>\nPREFIX k: <urn:k:e:>\n"
        assert short == head + "SELECT ?x { vocab:a e:b.c.d <http://e/b.>, k:d, '<http://e/a>' } # <http://e/a>"
        assert expand_prefixes(short) == head + query and shorten_iris(short, PREFIXES) == short
        assert used_prefixes([query], PREFIXES) == {name: PREFIXES[name] for name in ("vocab", "e", "k")}


@pytest.fixture(scope="module")
def graph():
    return rdflib.Graph().parse(data=GRAPH, format="turtle")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    from kgqa.graph.embedded.loading import load_graph
    from kgqa.graph.embedded.store import EmbeddedStore

    folder = tmp_path_factory.mktemp("shared")
    file = folder / "graph.ttl"
    file.write_text(GRAPH)
    load_graph(folder / "graph", [file])
    with EmbeddedStore(folder / "graph", workers=1) as store:
        yield store


def _result(result) -> list[tuple[str | None, ...]] | bool:
    if result.type == "ASK":
        return result.askAnswer
    return sorted(tuple(None if v is None else str(v) for v in row) for row in result)


def _text(value) -> str | None:
    return None if value is None else getattr(value, "iri", None) or value.value


@pytest.mark.parametrize("escape", ["\\u0027", "\\u0022", "\\U00000027", "\\u0023"])
def test_escape_in_an_iri_hides_nothing(escape):
    with pytest.raises(QueryRejected):
        prepare_for_engine(
            f"SELECT * {{ OPTIONAL {{ <http://x/{escape}#> ?p ?o }} SERVICE SILENT <http://127.0.0.1:1/> {{ ?a ?b ?c }} }}"
        )


@pytest.mark.parametrize("stray", ["\\", '"', "'"])
def test_stray_quote_or_backslash_is_refused(stray):
    with pytest.raises(QueryRejected):
        prepare_for_engine(f"PREFIX : <http://x/> SELECT * {{ ?s ?p ?o {stray}\n }}")


@pytest.mark.parametrize("name", ["ns:a.b.SERVICE", "ns:a.b.service", "ns:SERVICE", "SERVICE:x", "ns:a.LOAD"])
@pytest.mark.parametrize("head", ["BASE <http://x/> PREFIX ns: <y#>", ""])
def test_keyword_inside_an_unresolvable_name(head, name):
    """The engine ends an unresolvable name before the keyword."""
    with pytest.raises(QueryRejected):
        prepare_for_engine(f"{head} SELECT * {{ ?s ?p {name} <http://127.0.0.1:1/> {{ ?a ?b ?c }} }}")


class TestHiddenService:
    """Queries built from pieces that have hidden SERVICE before. Accepted ones run in the bare engine, which has a network
    here, against a port that counts connections."""

    HEADS: ClassVar = ["", "BASE <http://e/>\n", "PREFIX a: <http://e/>\n", "PREFIX a: <x>\n", "BASE <http://e/>\nPREFIX a: <x>\n", "PREFIX : <http://e/>\n"]  # fmt: skip
    NAMES: ClassVar = ["a:b", "a:b.c", "a:b.c.d", "a:b.SERVICE", "a:b.c.SERVICE", "SERVICE:x", "z:SILENT", ":x.y.z", "<http://e/\\u0027>", "<http://e/x>"]  # fmt: skip
    NOISE: ClassVar = ["", " ", "\n", "# x\n", "# x\r", "#\\u000A", '"a"', "'", '"""q"""', "\\u0022", "\\u0027", "?x", "."]  # fmt: skip
    WORDS: ClassVar = ["SERVICE", "service", "SerVice", "\\u0053ERVICE", "SERVIC\\u0045", "SERVICE SILENT", "\\U00000053ERVICE", "OPTIONAL", ""]  # fmt: skip

    @pytest.fixture
    @staticmethod
    def accepts():
        """Return `accepts(query, target -> "<...>") -> bool`, which fails if the engine connects."""
        server = socket.create_server(("127.0.0.1", 0))
        came: list[object] = []

        def hang_up():
            with contextlib.suppress(OSError):
                while True:
                    connection, address = server.accept()
                    came.append(address)
                    connection.close()

        threading.Thread(target=hang_up, daemon=True).start()
        target = f"<http://127.0.0.1:{server.getsockname()[1]}/>"
        # every prefix of the name must be in the data, or the engine does not evaluate the rest of the query
        store = ox.Store()
        for space, local in itertools.product(
            ("http://e/", "http://e/x"), ("b", "b.c", "b.c.d", "x", "x.y", "x.y.z", "")
        ):
            name = ox.NamedNode(space + local)
            store.extend(
                [ox.Quad(ox.NamedNode("http://e/s"), ox.NamedNode("http://e/p"), name), ox.Quad(name, name, name)]
            )

        def accepts(head: str, middle: str, inner: str = "?s ?p ?o") -> bool:
            try:
                prepared = prepare_for_engine(f"{head}SELECT * WHERE {{ {middle} {target} {{ {inner} }} }}")
            except QueryRejected:
                return False
            with contextlib.suppress(SyntaxError, OSError, TypeError, ValueError):
                list(itertools.islice(iter(store.query(prepared)), 1))
            assert not came, prepared
            return True

        yield accepts
        server.shutdown(socket.SHUT_RDWR)
        server.close()

    def test_keyword_at_the_end_of_a_name(self, accepts):
        every = itertools.product(self.HEADS, self.NAMES, self.NOISE)
        assert sum(accepts(head, f"?s ?p {name}{after}") for head, name, after in every) > 100

    @pytest.mark.soak
    def test_keyword_among_other_fragments(self, accepts):
        accepted = []
        some = st.sampled_from

        @settings(max_examples=4000 if os.environ.get("KGQA_SOAK") else 400, derandomize=True, deadline=None)
        @given(
            some(self.HEADS), some(self.NAMES), some(self.NAMES), some(self.NOISE), some(self.WORDS), some(self.NOISE)
        )
        def check(head, one, two, before, word, after):
            if accepts(head, f"{one} {two} ?o {before} . {word} {after}"):
                accepted.append(word)

        check()
        assert len(accepted) > 20, "nothing was accepted, so nothing was tried"
