"""Errors of requests without a reply."""

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

from kgqa.graph.endpoint.requests.connection_errors import connection_error, is_retryable, never_sent, overload_error

URL = "http://e/sparql"
REFUSED = NewConnectionError(None, "Connection refused")  # type: ignore[arg-type]
BROKEN = ProtocolError("Connection aborted.", ConnectionResetError())


@pytest.mark.parametrize(
    ("error", "sent", "again", "updates_again", "message"),
    [
        (REFUSED, False, True, True, "whether the server is running"),
        (ConnectTimeoutError("slow"), False, True, True, "Nothing answers"),
        (ProxyError("no", OSError()), False, True, True, "http_proxy"),
        (BROKEN, True, True, False, "lost during a query"),
        (ConnectionResetError("reset"), True, True, False, "lost during a query"),
        (SSLError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed\n"), True, False, False, "SSL_CERT_FILE"),
        (SSLError("[SSL: WRONG_VERSION_NUMBER]"), True, True, False, "No secure connection"),
        (LocationParseError("x"), True, False, False, "not the address"),
    ],
)
def test_connection_error_messages(error, sent, again, updates_again, message):
    assert never_sent(error) is not sent
    assert is_retryable(error, is_update=False) is again
    assert is_retryable(error, is_update=True) is updates_again
    found = str(connection_error(error, URL, is_update=False))
    assert message in found and found.isprintable()


def test_interrupted_update_has_unknown_outcome():
    assert "may have been carried out" in str(connection_error(BROKEN, URL, is_update=True))
    assert "Nothing answers" in str(connection_error(REFUSED, URL, is_update=True))


def test_timeout_status_is_a_timeout():
    assert "too many requests (HTTP 429)" in str(overload_error(429, URL))
    assert "cannot answer now (HTTP 503)" in str(overload_error(503, URL))
