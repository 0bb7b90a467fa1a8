"""Login and limits for the requests to an endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Access:
    """Login and limits for the requests to an endpoint.

    Attributes:
        contact: whom to write to, for the User-Agent header.
        concurrency: requests at once. rate: requests per second. None for the values of the server's profile.
        connect_seconds: time to establish a connection.
        patience: seconds to keep trying while nothing answers.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    contact: str = ""
    concurrency: int | None = None
    rate: float | None = None
    connect_seconds: float = 5.0
    patience: float = 10.0
