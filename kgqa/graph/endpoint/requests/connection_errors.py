"""Errors for requests that got no reply, and the decision whether to send such a request again."""

from __future__ import annotations

from urllib3.exceptions import ConnectTimeoutError, LocationValueError, NewConnectionError, ProxyError, SSLError

from kgqa.errors import StoreUnavailable
from kgqa.text.words import clean

_NEVER_SENT = (NewConnectionError, ConnectTimeoutError, ProxyError)
_MESSAGES: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str, str], ...] = (
    (LocationValueError, "{url} is not the address of a server.", "Check the address."),
    (
        SSLError,
        "No secure connection to {url} ({error}).",
        "If the server is your own, set the environment variable SSL_CERT_FILE to the certificate of its authority.",
    ),
    (
        ProxyError,
        "The proxy for {url} does not answer.",
        "Check the environment variables http_proxy and https_proxy.",
    ),
    (
        _NEVER_SENT,
        "Nothing answers at {url}.",
        "Check the address, and whether the server is running (for a server started by kgqa: kgqa virtuoso status).",
    ),
)
"""The message and the hint for each kind of error; the first that fits is used."""
_LOST_UPDATE = (
    "The connection to {url} was lost during an update, which may have been carried out.",
    "Check the graph before you send the update again.",
)
_LOST_QUERY = (
    "The connection to {url} was lost during a query.",
    "Check whether the server is running and whether this query crashes it.",
)


def never_sent(error: Exception) -> bool:
    """Return whether no part of the request reached the server."""
    return isinstance(error, _NEVER_SENT)


def is_retryable(error: Exception, *, is_update: bool) -> bool:
    """Return whether to send a request again; an update is not repeated if the server may have carried it out."""
    if isinstance(error, LocationValueError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return False
    return never_sent(error) or not is_update


def connection_error(error: Exception, url: str, *, is_update: bool) -> StoreUnavailable:
    """Convert an error of urllib3 to an error with a message for users."""
    lost = _LOST_UPDATE if is_update else _LOST_QUERY
    message, hint = next(((text, hint) for kind, text, hint in _MESSAGES if isinstance(error, kind)), lost)
    return StoreUnavailable(message.format(url=clean(url)[:200], error=clean(str(error))[:200]), hint)


def overload_error(status: int, url: str) -> StoreUnavailable:
    """Create the error for a server that is too busy: HTTP status 429, 502 or 503."""
    what = "received too many requests" if status == 429 else "cannot answer now"
    return StoreUnavailable(
        f"{url} {what} (HTTP {status}).", "Try again later, or lower endpoint.concurrency or endpoint.rate."
    )
