"""Errors for requests that brought no reply, and whether to send such a request again."""

from __future__ import annotations

from kgqa.errors import StoreUnavailable
from kgqa.words import clean


def never_sent(error: Exception) -> bool:
    """Return whether no part of the request reached the server."""
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError

    return isinstance(error, (NewConnectionError, ConnectTimeoutError, ProxyError))


def is_retryable(error: Exception, *, is_update: bool) -> bool:
    """Return whether another attempt may succeed and does no harm: an update may already have been carried out."""
    from urllib3.exceptions import LocationValueError

    if isinstance(error, LocationValueError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return False
    return never_sent(error) or not is_update


def connection_error(error: Exception, url: str, *, is_update: bool) -> StoreUnavailable:
    """Turn one of urllib3's errors into one for users.

    Args:
        is_update: whether the request was an update.
    """
    from urllib3.exceptions import LocationValueError, ProxyError, SSLError

    if isinstance(error, LocationValueError):
        return StoreUnavailable(f"{clean(url)[:200]} is not the address of a server. Check the address.")
    if isinstance(error, SSLError):
        return StoreUnavailable(
            f"No secure connection to {url} ({clean(str(error))[:200]}). For a server of your own, set SSL_CERT_FILE "
            "to the certificate of its authority."
        )
    if isinstance(error, ProxyError):
        return StoreUnavailable(f"The proxy for {url} does not answer. Check http_proxy and https_proxy.")
    if never_sent(error):
        return StoreUnavailable(
            f"Nothing answers at {url}. Check the address, and whether the server is running (make virtuoso-status)."
        )
    if is_update:
        return StoreUnavailable(
            f"The connection to {url} was lost during an update, which may have been carried out. Check the graph "
            "before you send it again."
        )
    return StoreUnavailable(
        f"The connection to {url} was lost during a query. Check whether the server is running and whether this query "
        "crashes it."
    )


def overload_error(status: int, url: str) -> StoreUnavailable:
    """Create the error for a server that is too busy (HTTP `status` 429, 502 or 503)."""
    what = "received too many requests" if status == 429 else "cannot answer now"
    return StoreUnavailable(
        f"{url} {what} (HTTP {status}). Try again later, or lower endpoint.concurrency or endpoint.rate."
    )
