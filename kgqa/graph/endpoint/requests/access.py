"""Login and limits for the requests to an endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field


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
