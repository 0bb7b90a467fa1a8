"""The update guard: an update can write only to the named graph."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.errors import QueryRejected
from kgqa.graph.endpoint.requests.access import Access
from kgqa.graph.endpoint.store import EndpointStore
from kgqa.graph.query.tokens import prepare_for_server
from kgqa.graph.query.update_guard import check_update
from tests.conftest import SOAK

OWN, OTHER = "http://e/own", "http://e/other"
S = "<http://e/s> <http://e/p> <http://e/o>"
# with DISTINCT this takes Virtuoso a minute on a server with many graphs
ALL_GRAPHS = "sparql select ?g where { graph ?g { ?s ?p ?o } } group by ?g"

ALLOWED = [
    f"INSERT DATA {{ GRAPH <{OWN}> {{ {S} }} }}",
    f"insert data{{graph<{OWN}>{{{S}}}}}",
    f"DELETE DATA {{ GRAPH <{OWN}> {{ {S} . {S} }} }}",
    f'INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> "a\\"}} }} ; DROP GRAPH <{OTHER}> #", "ä"@de, 1.5, true . }} }}',
    f"INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> 'x' , '''y }} ''' }} }}",
    f"INSERT DATA {{ # a comment }} ; DROP ALL\n GRAPH <{OWN}> {{ {S} }} }}",
    f"PREFIX e: <http://e/> INSERT DATA {{ GRAPH <{OWN}> {{ e:s e:p e:o }} }}",
    f"INSERT DATA {{ GRAPH <{OWN}> {{ _:b <http://e/p> [] }} }}",
    f"INSERT DATA {{ GRAPH <{OWN}> {{ {S} }} }} ; DELETE DATA {{ GRAPH <{OWN}> {{ {S} }} }}",
    f"INSERT {{ GRAPH <{OWN}> {{ ?s ?p ?o }} }} WHERE {{ GRAPH <{OTHER}> {{ ?s ?p ?o }} }}",
    f"INSERT {{ GRAPH <{OWN}> {{ ?s ?p ?o }} }} USING <{OTHER}> WHERE {{ ?s ?p ?o }}",
    f"DELETE {{ GRAPH <{OWN}> {{ ?s ?p ?o }} }} INSERT {{ GRAPH <{OWN}> {{ ?s ?p 1 }} }} WHERE {{ GRAPH <{OWN}> {{ ?s ?p ?o }} }}",
    f"DELETE WHERE {{ GRAPH <{OWN}> {{ ?s <http://e/none> ?o }} }}",
    f"WITH <{OWN}> DELETE {{ ?s ?p ?o }} INSERT {{ ?s ?p 2 }} WHERE {{ ?s ?p ?o }}",
    f"WITH <{OTHER}> INSERT {{ GRAPH <{OWN}> {{ ?s ?p ?o }} }} WHERE {{ ?s ?p ?o }}",
]  # fmt: skip

REFUSED = [
    "",
    "nonsense",
    f"SELECT * WHERE {{ {S} }}",
    # another graph, or none
    f"INSERT DATA {{ GRAPH <{OTHER}> {{ {S} }} }}",
    f"INSERT DATA {{ {S} }}",
    f"INSERT DATA {{ GRAPH <{OWN}> {{ {S} }} {S} }}",
    f"INSERT DATA {{ GRAPH <{OWN}> {{ {S} }} GRAPH <{OTHER}> {{ {S} }} }}",
    f"INSERT DATA {{ GRAPH <{OWN}> {{ }} GRAPH <{OTHER}> {{ {S} }} }}",
    f"INSERT DATA {{ GRAPH <{OWN}#> {{ {S} }} }}",
    f"INSERT DATA {{ GRAPH <{OWN.upper()}> {{ {S} }} }}",
    "DELETE WHERE { ?s ?p ?o }",
    "DELETE WHERE { GRAPH ?g { ?s ?p ?o } }",
    f"DELETE {{ GRAPH ?g {{ ?s ?p ?o }} }} WHERE {{ GRAPH ?g {{ ?s ?p ?o }} FILTER(?g = <{OWN}>) }}",
    f"INSERT {{ GRAPH ?g {{ {S} }} }} WHERE {{ BIND(<{OTHER}> AS ?g) }}",
    "DELETE { ?s ?p ?o } WHERE { ?s ?p ?o }",
    f"DELETE {{ ?s ?p ?o }} USING <{OWN}> WHERE {{ ?s ?p ?o }}",
    f"WITH <{OTHER}> DELETE {{ ?s ?p ?o }} WHERE {{ ?s ?p ?o }}",
    f"WITH <{OWN}> DELETE {{ GRAPH <{OTHER}> {{ ?s ?p ?o }} }} WHERE {{ ?s ?p ?o }}",
    f"WITH <{OWN}> DELETE {{ ?s ?p ?o GRAPH ?g {{ ?s ?p ?o }} }} WHERE {{ GRAPH ?g {{ ?s ?p ?o }} }}",
    f"DELETE {{ GRAPH <{OWN}> {{ ?s ?p ?o }} }} INSERT {{ GRAPH <{OTHER}> {{ ?s ?p ?o }} }} WHERE {{ GRAPH <{OWN}> {{ ?s ?p ?o }} }}",
    # a second operation, with ; as the standard has it, or without as Virtuoso takes it
    *(
        f"INSERT DATA {{ GRAPH <{OWN}> {{ {S} }} }} {between} {second}"
        for between in (";", "", "\n#\n", ";;", "; #\n")
        for second in (f"INSERT DATA {{ GRAPH <{OTHER}> {{ {S} }} }}", f"DROP GRAPH <{OTHER}>", "CLEAR ALL")
    ),
    # prefixes and bases
    f"PREFIX e: <http://e/> INSERT DATA {{ GRAPH e:other {{ {S} }} }}",
    f"PREFIX e: <http://e/> INSERT DATA {{ GRAPH e:own {{ {S} }} }}",
    f"PREFIX e: <http://e/> INSERT DATA {{ GRAPH <{OWN}> {{ {S} }} }} ; PREFIX e: <http://f/> INSERT DATA {{ GRAPH e:own {{ {S} }} }}",
    f"BASE <http://e/> INSERT DATA {{ GRAPH <own> {{ {S} }} }}",
    f"INSERT DATA {{ GRAPH <own> {{ {S} }} }}",
    f"INSERT DATA {{ GRAPH <> {{ {S} }} }}",
    # other operations than INSERT and DELETE
    *(
        f"{verb} {silent} {what}"
        for silent in ("", "SILENT")
        for verb, what in [
            ("CLEAR", f"GRAPH <{OWN}>"), ("CLEAR", "DEFAULT"), ("CLEAR", "NAMED"), ("CLEAR", "ALL"),
            ("DROP", f"GRAPH <{OTHER}>"), ("DROP", "ALL"), ("CREATE", f"GRAPH <{OTHER}>"),
            ("COPY", f"<{OWN}> TO <{OTHER}>"), ("MOVE", f"<{OTHER}> TO <{OWN}>"), ("ADD", f"<{OTHER}> TO <{OWN}>"),
            ("LOAD", f"<http://127.0.0.1:1/x> INTO GRAPH <{OWN}>"),
        ]
    ),
    # extensions of Virtuoso
    f"INSERT INTO <{OTHER}> {{ {S} }}",
    f"INSERT DATA INTO <{OTHER}> {{ {S} }}",
    f"INSERT IN GRAPH <{OTHER}> {{ {S} }}",
    f"DELETE FROM <{OTHER}> {{ {S} }}",
    f"MODIFY <{OTHER}> DELETE {{ {S} }} INSERT {{ {S} }}",
    f"define sql:log-enable 2 INSERT DATA {{ GRAPH <{OWN}> {{ {S} }} }}",
    # escapes, which readers resolve before or after tokenizing
    f'INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> "x\\u0022 }} }} ; DROP GRAPH <{OTHER}> ; INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> \\u0022y" }} }}',
    f'INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> "x\\u0022 . <http://e/s> <http://e/p> "}} }} ; DROP GRAPH <{OTHER}> ; INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> " . <http://e/s> <http://e/p> \\u0022 y" }} }}',
    f'INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> "x\\U0000005C" }} }} ; DROP GRAPH <{OTHER}> # " }} }}',
    f"\\u0044ROP GRAPH <{OTHER}>",
    f"INSERT DATA {{ GRAPH <http://e/o\\u0074her> {{ {S} }} }}",
    # quotes that readers interpret differently
    f'INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> """a"" }} }} ; DROP GRAPH <{OTHER}> ; INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> " }} }}',
    f"INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s> <http://e/p> \"x\n\" }} }}",
    f"INSERT DATA {{ GRAPH <{OWN}> {{ <http://e/s }} }} ; DROP ALL #> <http://e/p> 1 }} }}",
]  # fmt: skip


def sent_text(update: str) -> str | None:
    """Return the text that the store would send, None if it refuses the update."""
    try:
        update = prepare_for_server(update)
        check_update(update, OWN)
    except QueryRejected as error:
        assert str(error).isprintable()  # noqa: PT017 - it need not fail
        return None
    return update


@pytest.mark.parametrize("update", ALLOWED)
def test_update_within_the_graph_is_allowed(update):
    assert sent_text(update)


@pytest.mark.parametrize("update", REFUSED)
def test_update_outside_the_graph_is_refused(update):
    assert sent_text(update) is None


def test_plain_data_is_checked_quickly():
    lines = "".join(f'<http://e/s{n}> <http://e/p> "value \\" {{{n}}} \\\\u0022 ä\\u00e4"@en .\n' for n in range(500))
    started = time.perf_counter()
    assert sent_text(f"INSERT DATA {{ GRAPH <{OWN}> {{\n{lines}}} }}")
    assert time.perf_counter() - started < 0.5  # rdflib's parser takes seconds


def test_unterminated_data_is_checked_quickly():
    started = time.perf_counter()
    assert sent_text(f"INSERT DATA {{ GRAPH <{OWN}> {{ " + '"x" ' * 100_000 + "'") is None
    assert time.perf_counter() - started < 20  # one pass per reader, without backtracking


pieces = st.sampled_from(
    [
        *itertools.chain.from_iterable(update.split(" ") for update in (*ALLOWED[:6], *REFUSED[3:30])),
        ";",
        "}",
        "{",
        "#",
        "\n",
        '"',
        "'",
        "\\u0022",
        "\\",
    ]
)
mutated = st.builds(
    lambda text, place, length, piece: text[:place] + f" {piece} " + text[place + length :],
    st.sampled_from(ALLOWED), st.integers(0, 200), st.integers(0, 12), pieces,
)  # fmt: skip


@settings(max_examples=1000 if SOAK else 60)
@given(update=mutated)
def test_mutated_updates_stay_within_the_graph(update, guarded):
    store, everything_else = guarded
    sent = sent_text(update)
    if sent is None:
        return
    try:
        store.update(update)
    except QueryRejected:
        pass  # the server refuses to parse it
    assert everything_else() == 1


@pytest.fixture(scope="module")
def guarded(virtuoso_server):
    """A store that may write to one graph of a real Virtuoso, and how many triples there are in the other graph and in
    any that was not there before."""
    password = virtuoso_server.allow_updates("guarded").read_text(encoding="utf-8").strip()
    access = Access(user="guarded", password=password)
    with EndpointStore(virtuoso_server.url, writable=OTHER, access=access) as other:
        other.update(f"INSERT DATA {{ GRAPH <{OTHER}> {{ {S} }} }}")
    store = EndpointStore(virtuoso_server.url, writable=OWN, access=access)
    before = {row[0] for row in virtuoso_server.sql(ALL_GRAPHS)}

    def everything_else() -> int:
        after = {row[0] for row in virtuoso_server.sql(ALL_GRAPHS)}
        assert after - before <= {OWN}
        return len(store.select(f"SELECT ?s ?p ?o FROM <{OTHER}> WHERE {{ ?s ?p ?o }}", fresh=True))

    yield store, everything_else
    store.close()


@pytest.mark.parametrize("update", ALLOWED)
def test_allowed_updates_on_a_real_server(update, guarded):
    store, everything_else = guarded
    if "_:b" in update:
        with pytest.raises(QueryRejected, match="Blank node"):  # Virtuoso accepts none in data
            store.update(update)
    else:
        store.update(update)
    assert everything_else() == 1


@pytest.mark.parametrize("escape", ["\\uD800", "\\udfff", "\\U0000D912", "\\U00110000", "\\UFFFFFFFF"])
def test_invalid_escapes(escape):
    for update in (
        f'INSERT DATA {{ GRAPH <http://e/g> {{ <http://e/a> <http://e/r> "x{escape}" }} }}',
        f'WITH <http://e/g> DELETE {{ ?s ?p "{escape}" }} WHERE {{ ?s ?p ?o }}',
    ):
        with pytest.raises(QueryRejected, match="stands for no character"):
            check_update(update, "http://e/g")


@pytest.mark.parametrize("escape", ["\\uD7FF", "\\uE000", "\\U0001F600", "\\U0010FFFF"])
def test_escapes_at_token_boundaries(escape):
    check_update(f'INSERT DATA {{ GRAPH <http://e/g> {{ <http://e/a> <http://e/r> "x{escape}" }} }}', "http://e/g")


@pytest.mark.parametrize(
    "update",
    [
        f"INSERT DATA {{ GRAPH <{OWN}> {{ {S} }} }} #\r; INSERT DATA {{ GRAPH <{OTHER}> {{ {S} }} }}",
        f"DELETE DATA {{ GRAPH <{OWN}> {{ {S} }} }} # a\r\n#\r; DROP GRAPH <{OTHER}>",
    ],
)
def test_carriage_return_ends_a_comment(update):
    with pytest.raises(QueryRejected, match="carriage return"):
        check_update(update, OWN)


def test_server_functions_are_refused(guarded):
    store, everything_else = guarded
    call = f'<bif:exec>("sparql insert into <{OTHER}> {{ <u:x> <u:y> <u:z> }}")'
    with pytest.raises(QueryRejected, match="bif:exec"):
        store.update(f"INSERT {{ GRAPH <{OWN}> {{ <u:a> <u:b> ?x }} }} WHERE {{ BIND({call} AS ?x) }}")
    assert everything_else() == 1
