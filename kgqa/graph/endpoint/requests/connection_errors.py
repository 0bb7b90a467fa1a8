"""Errors for requests that got no reply, and the decision whether to send such a request again."""

from __future__ import annotations

from kgqa.errors import StoreUnavailable
from kgqa.words import clean


def never_sent(error: Exception) -> bool:
    """Return whether no part of the request reached the server."""
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError

    return isinstance(error, (NewConnectionError, ConnectTimeoutError, ProxyError))


def is_retryable(error: Exception, *, is_update: bool) -> bool:
    """Return whether to send a request again; an update is not repeated if the server may have carried it out."""
    from urllib3.exceptions import LocationValueError

    if isinstance(error, LocationValueError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return False
    return never_sent(error) or not is_update


def connection_error(error: Exception, url: str, *, is_update: bool) -> StoreUnavailable:
    """Convert an error of urllib3 to an error with a message for users."""
    from urllib3.exceptions import LocationValueError, ProxyError, SSLError

    if isinstance(error, LocationValueError):
        return StoreUnavailable(f"{clean(url)[:200]} is not the address of a server.", "Check the address.")
    if isinstance(error, SSLError):
        return StoreUnavailable(
            f"No secure connection to {url} ({clean(str(error))[:200]}).",
            "If the server is your own, set the "
            "environment variable SSL_CERT_FILE to the certificate of its authority.",
        )
    if isinstance(error, ProxyError):
        return StoreUnavailable(
            f"The proxy for {url} does not answer.", "Check the environment variables http_proxy and https_proxy."
        )
    if never_sent(error):
        return StoreUnavailable(
            f"Nothing answers at {url}.",
            "Check the address, and whether the server is running (for a server started by "
            "kgqa: kgqa virtuoso status).",
        )
    if is_update:
        return StoreUnavailable(
            f"The connection to {url} was lost during an update, which may have been carried out.",
            "Check the graph before you send the update again.",
        )
    return StoreUnavailable(
        f"The connection to {url} was lost during a query.",
        "Check whether the server is running and whether this query crashes it.",
    )


def overload_error(status: int, url: str) -> StoreUnavailable:
    """Create the error for a server that is too busy: HTTP status 429, 502 or 503."""
    what = "received too many requests" if status == 429 else "cannot answer now"
    return StoreUnavailable(
        f"{url} {what} (HTTP {status}).", "Try again later, or lower endpoint.concurrency or endpoint.rate."
    )
