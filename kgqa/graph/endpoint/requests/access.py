"""The address of an endpoint, and login and limits for the requests to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from kgqa.errors import SettingsError
from kgqa.text.hints import Option

PASSWORD_VARIABLE = "KGQA_ENDPOINT_PASSWORD"


@dataclass(frozen=True)
class Access:
    """Login and limits for the requests to an endpoint.

    Attributes:
        contact: e-mail address or URL of a person to contact, for the User-Agent header.
        concurrency: the largest number of concurrent requests; None for the value of the server's profile.
        rate: the largest number of requests per second; None for the value of the server's profile.
        connect_seconds: time limit for establishing a connection.
        patience: seconds during which a request is repeated while the server does not answer.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    contact: str = ""
    concurrency: int | None = None
    rate: float | None = None
    connect_seconds: float = 5.0
    patience: float = 10.0


def check_address(url: str) -> str:
    """Check the address of an endpoint, and return it without surrounding spaces.

    Raises:
        SettingsError: the address is not http or https, has no host, or contains a login or a query string.
    """
    url = url.strip()
    if "@" in url:
        raise SettingsError(
            "The address of an endpoint must not contain a login.",
            f"Set endpoint.user and the environment variable {PASSWORD_VARIABLE} instead.",
        )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or set(url) & set(' <>"\\'):
        raise SettingsError(
            f"{url[:100]!r} is not the address of a SPARQL endpoint.", "Example: http://127.0.0.1:8890/sparql"
        )
    if parts.query or parts.fragment:
        raise SettingsError(
            "The address of a SPARQL endpoint must not contain ? or #.",
            "Remove them; name graphs with ",
            Option("graph-iri"),
            ".",
        )
    return url
