"""SQL through the isql client of the server: quoting, reading and errors."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kgqa.errors import ServerError, SqlError

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
    "x;ö" * 1000,
]
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)


@settings(max_examples=60)
@given(st.lists(texts, min_size=1, max_size=6))
@example(HOSTILE)
def test_text_round_trip(virtuoso_server, values):
    assert virtuoso_server.sql("select " + ", ".join("?" for _ in values), values) == [tuple(values)]


def test_rows_numbers_and_null(virtuoso_server):
    assert virtuoso_server.sql("select ?, ?, ?", (None, -3, 2.5)) == [("", "-3", "2.5")]
    assert virtuoso_server.sql("select 1 from DB.DBA.SYS_USERS where 1 = 0") == []
    assert ("dba", "1") in virtuoso_server.sql("select U_NAME, U_SQL_ENABLE from DB.DBA.SYS_USERS")


def test_truncated_and_late_values_are_errors(virtuoso_server):
    with pytest.raises(ServerError, match="SQL client reports"):
        virtuoso_server.sql("select repeat('ab;', 30000)")
    with pytest.raises(ServerError, match="within 0.3 s"):
        virtuoso_server.sql("delay(20)", timeout=0.3)


def test_errors_have_the_message_of_the_server(virtuoso_server):
    with pytest.raises(SqlError, match="SR185: Undefined procedure DB.DBA.no_such") as caught:
        virtuoso_server.sql("no_such(?)", ["sesame"])
    assert "sesame" not in str(caught.value)
    with pytest.raises(SqlError, match="rejected an SQL statement: it failed at 100%; é") as caught:
        virtuoso_server.sql("signal('22023', ?)", ["it failed\nat 100%; é"])
    assert caught.value.state == "22023"
