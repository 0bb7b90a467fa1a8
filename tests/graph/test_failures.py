"""What is said of a request without an answer."""

from __future__ import annotations

import pytest
from urllib3.exceptions import (
    ConnectTimeoutError,
    LocationParseError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    SSLError,
)

from kgqa.graph.endpoint.requests.connection_errors import failure_of, never_sent, turned_away, worth_another_try

URL = "http://e/sparql"
REFUSED = NewConnectionError(None, "Connection refused")  # type: ignore[arg-type]
BROKEN = ProtocolError("Connection aborted.", ConnectionResetError())


@pytest.mark.parametrize(
    ("error", "sent", "again", "updates_again", "says"),
    [
        (REFUSED, False, True, True, "Is the server running"),
        (ConnectTimeoutError("slow"), False, True, True, "Nothing answers"),
        (ProxyError("no", OSError()), False, True, True, "http_proxy"),
        (BROKEN, True, True, False, "in the middle of a query"),
        (ConnectionResetError("reset"), True, True, False, "in the middle of a query"),
        (SSLError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed\n"), True, False, False, "SSL_CERT_FILE"),
        (SSLError("[SSL: WRONG_VERSION_NUMBER]"), True, True, False, "No safe connection"),
        (LocationParseError("x"), True, False, False, "no address"),
    ],
)
def test_each_has_its_words_and_its_use(error, sent, again, updates_again, says):
    assert never_sent(error) is not sent
    assert worth_another_try(error, is_update=False) is again
    assert worth_another_try(error, is_update=True) is updates_again
    found = str(failure_of(error, URL, is_update=False))
    assert says in found and found.isprintable()


def test_of_an_update_that_broke_off_it_is_said_that_nobody_knows():
    assert "may have been carried out" in str(failure_of(BROKEN, URL, is_update=True))
    assert "Nothing answers" in str(failure_of(REFUSED, URL, is_update=True))


def test_a_server_without_time_is_told_by_its_status():
    assert "too many requests (HTTP 429)" in str(turned_away(429, URL))
    assert "cannot answer now (HTTP 503)" in str(turned_away(503, URL))
