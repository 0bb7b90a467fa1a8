"""SQL through the isql client of the server: quoting, reading and errors."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.isql import Login, quote, read_output, run_sql, start_client
from kgqa.virtuoso.process import free_port

HOSTILE = [
    "'; shutdown; --",
    "';\nshutdown;\n",
    "\\'; shutdown; --",
    "!touch /tmp/x\n",
    "$U{x} $ARGV[1] $+ 1 2",
    "a;b%3Bc%FFC3",
    'x","y"',
    "{ [ (",
    "EXIT;\nload /etc/passwd;",
    "Malmö \u2028 😀 \x85 \x01\x7f",
    " leading and trailing ",
    "",
]


def sql_text(server, texts):
    return server.sql("select " + ", ".join("?" for _ in texts), texts)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_round_trip(virtuoso_server, text):
    assert sql_text(virtuoso_server, [text, "next"]) == [(text, "next")]


@settings(max_examples=60)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40), min_size=1, max_size=6
    )
)
def test_text_round_trip(virtuoso_server, texts):
    assert sql_text(virtuoso_server, texts) == [tuple(texts)]


def test_rows_numbers_and_null(virtuoso_server):
    assert virtuoso_server.sql("select ?, ?, ?", (None, -3, 2.5)) == [("", "-3", "2.5")]
    assert virtuoso_server.sql("select null") == [("",)]
    assert virtuoso_server.sql("select 1 from DB.DBA.SYS_USERS where 1 = 0") == []
    assert ("dba", "1") in virtuoso_server.sql("select U_NAME, U_SQL_ENABLE from DB.DBA.SYS_USERS")


def test_long_values_are_complete(virtuoso_server):
    for text in ("x;ö" * 1000, "x" * 4000):
        assert virtuoso_server.sql("select ?", [text]) == [(text,)]


def test_truncated_value_is_an_error(virtuoso_server):
    with pytest.raises(ServerError, match="SQL client reports"):
        virtuoso_server.sql("select repeat('ab;', 30000)")


def test_errors_have_the_message_of_the_server(virtuoso_server):
    with pytest.raises(SqlError, match="SR185: Undefined procedure DB.DBA.no_such") as caught:
        virtuoso_server.sql("no_such(?)", ["sesame"])
    assert "sesame" not in str(caught.value)
    with pytest.raises(SqlError) as caught:
        virtuoso_server.sql("signal('22023', ?)", ["it failed\nat 100%; é"])
    assert (caught.value.state, str(caught.value)) == (
        "22023",
        "The server rejected an SQL statement: it failed at 100%; é",
    )


def test_statement_timeout(virtuoso_server):
    with pytest.raises(ServerError, match="within 0.3 s"):
        virtuoso_server.sql("delay(2)", timeout=0.3)


def test_connection_refused():
    with pytest.raises(SqlError) as caught:
        run_sql(Login(free_port(), "x"), "select 1")
    assert caught.value.state == "S2801"


@pytest.mark.parametrize("password", ["a'b\"c", "x\\y\\'", "$U{x};'", "é!", " blank ", "{[("])
def test_login_with_special_characters_in_the_password(virtuoso_server, password):
    virtuoso_server.folder.write("password-strange", "x")
    virtuoso_server.allow_updates("strange")
    virtuoso_server.sql("USER_SET_PASSWORD(?, ?)", ("strange", password))
    login = virtuoso_server.login()
    assert run_sql(Login(login.port, password, user="strange"), "select 1") == [("1",)]


def test_password_is_not_shown(virtuoso_server):
    login = virtuoso_server.login()
    assert login.password not in repr(login)
    client = start_client(login, "select 1")
    assert login.password not in " ".join(client.args)
    client.communicate()


def test_parameters(virtuoso_server):
    assert [quote(value) for value in (None, 3, 2.5)] == ["NULL", "3", "2.5"]
    with pytest.raises(ValueError, match="shorter"):
        virtuoso_server.sql("f(?)", [1, 2])


def test_read_output():
    assert read_output(b"a;b\n;\n%3B%25%0A%FFC3%FFA5\n", b"") == [("a", "b"), ("", ""), (";%\nå",)]
    with pytest.raises(ServerError, match="reports: isql-vt: something new"):
        read_output(b"", b"isql-vt: something new\n")
