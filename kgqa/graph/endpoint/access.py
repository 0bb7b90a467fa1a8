"""The address of an endpoint, and login and limits for the requests to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgqa.net.servers import check_url
from kgqa.text.hints import Hint, Option

PASSWORD_VARIABLE = "KGQA_ENDPOINT_PASSWORD"


@dataclass(frozen=True)
class Access:
    """Login and limits for the requests to an endpoint.

    Attributes:
        contact: e-mail address or URL of a person to contact, for the User-Agent header.
        concurrency: the largest number of concurrent requests; None for the value of the server's profile.
        rate: the largest number of requests per second; None for the value of the server's profile.
        patience: seconds during which a request is repeated while the server does not answer.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    contact: str = ""
    concurrency: int | None = None
    rate: float | None = None
    patience: float = 10.0


def check_address(url: str) -> str:
    """Check the address of an endpoint, and return it without surrounding spaces.

    Raises:
        SettingsError: see `check_url`.
    """
    url = url.strip()
    login = f"Set endpoint.user and {PASSWORD_VARIABLE} for a login, and name graphs with "
    check_url(url, of="SPARQL endpoint", key=Hint(login, Option("graph-iri"), "."))
    return url
