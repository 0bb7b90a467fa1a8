"""What to say of a request that brought no answer, and whether another try is of any use."""

from __future__ import annotations

from kgqa.errors import StoreUnavailable
from kgqa.words import clean


def never_sent(error: Exception) -> bool:
    """Whether nothing of a request has reached the server."""
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ProxyError

    return isinstance(error, (NewConnectionError, ConnectTimeoutError, ProxyError))


def worth_another_try(error: Exception, *, is_update: bool) -> bool:
    """Whether it may be different a moment later, and a second time does no harm: an update may have been carried out."""
    from urllib3.exceptions import LocationValueError

    if isinstance(error, LocationValueError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return False
    return never_sent(error) or not is_update


def failure_of(error: Exception, url: str, *, is_update: bool) -> StoreUnavailable:
    """The error to raise for one of urllib3's.

    Args:
        is_update: whether the request was to change something.
    """
    from urllib3.exceptions import LocationValueError, ProxyError, SSLError

    if isinstance(error, LocationValueError):
        return StoreUnavailable(f"{clean(url)[:200]} is no address of a server. Give another.")
    if isinstance(error, SSLError):
        return StoreUnavailable(
            f"No safe connection to {url} ({clean(str(error))[:200]}). If it is your own server, name the authority of "
            "its certificate in SSL_CERT_FILE."
        )
    if isinstance(error, ProxyError):
        return StoreUnavailable(f"The proxy on the way to {url} does not answer. See http_proxy and https_proxy.")
    if never_sent(error):
        return StoreUnavailable(
            f"Nothing answers at {url}. Is the server running (make virtuoso-status), and is this its SPARQL address?"
        )
    if is_update:
        return StoreUnavailable(
            f"The connection to {url} ended in the middle of an update, which may have been carried out. Look at the "
            "graph before you send it again."
        )
    return StoreUnavailable(
        f"The connection to {url} ended in the middle of a query. See whether the server still runs, and whether it ends "
        "on this query."
    )


def turned_away(status: int, url: str) -> StoreUnavailable:
    """The error to raise where a server has no time now. `status`: 429, 502 or 503."""
    what = "says there are too many requests" if status == 429 else "cannot answer now"
    return StoreUnavailable(
        f"{url} {what} (HTTP {status}). Try again later, or with less at once: endpoint.concurrency, endpoint.rate."
    )
