"""The address of an endpoint, and login and limits for the requests to it.

The password is sent only after the endpoint itself has asked for a login.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.request import AbstractDigestAuthHandler, HTTPPasswordMgr, parse_http_list, parse_keqv_list
from urllib.request import Request as LibraryRequest

from kgqa.errors import SettingsError, StoreUnavailable
from kgqa.net.client import Request
from kgqa.net.servers import check_url
from kgqa.text.hints import Hint, Option

PASSWORD_VARIABLE = "KGQA_ENDPOINT_PASSWORD"
_HASHES = {"md5": hashlib.md5, "sha-256": hashlib.sha256}


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


class Login:
    """A user and password for HTTP Basic (RFC 7617) or Digest (RFC 7616). Thread-safe.

    The first request is sent without a login; requests after the server's challenge contain the login.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        if not user.isprintable() or not password.isprintable() or '"' in user:
            raise SettingsError(
                "The endpoint's login contains control characters, or its user name a quotation mark.",
                "Correct the setting endpoint.user or the environment variable KGQA_ENDPOINT_PASSWORD.",
            )
        self._url, self._user, self._password = url, user, password
        self._lock = threading.Lock()
        self._digest = _Digest()
        self._challenge: dict[str, str] | None = None

    def accept(self, challenges: Sequence[str]) -> bool:
        """Choose a login scheme, Basic or Digest, from the server's WWW-Authenticate headers.

        Returns:
            Whether to repeat the request with a login: False if there is no user or no challenge.

        Raises:
            StoreUnavailable: the server offers neither Basic nor a Digest algorithm that kgqa supports.
        """
        offers = {scheme.lower(): details for scheme, _, details in (each.partition(" ") for each in challenges)}
        if not self._user or not offers:
            return False
        # a parameter without a value would be an error of `parse_keqv_list`
        details = [part for part in parse_http_list(offers.get("digest", "")) if "=" in part]
        digest = {name.lower(): value for name, value in parse_keqv_list(details).items()}
        digest |= {"qop": digest["qop"].replace(" ", "")} if "qop" in digest else {}
        supported = digest.get("algorithm", "MD5").lower() in _HASHES and {"realm", "nonce"} <= digest.keys()
        supported &= "auth" in digest.get("qop", "auth").split(",")
        if not supported and "basic" not in offers:
            raise StoreUnavailable(
                f"{self._url} asks for a kind of login that kgqa does not support.",
                "On the server, enable HTTP Basic, or Digest with MD5 or SHA-256.",
            )
        self._challenge = digest if supported else {}
        return True

    def headers(self, request: Request) -> dict[str, bytes]:
        """Return the header Authorization of a request, in UTF-8; nothing before the server's first challenge."""
        if self._challenge is None:
            return {}
        if not self._challenge:
            return {"Authorization": b"Basic " + base64.b64encode(f"{self._user}:{self._password}".encode())}
        with self._lock:  # the library counts the requests
            self._digest.passwd.add_password(self._challenge["realm"], request.url, self._user, self._password)
            sent = LibraryRequest(request.url, method=request.method)
            return {"Authorization": f"Digest {self._digest.get_authorization(sent, self._challenge)}".encode()}


class _Digest(AbstractDigestAuthHandler):
    """The library's computation, with names in UTF-8 and with SHA-256."""

    passwd: HTTPPasswordMgr

    def get_algorithm_impls(self, algorithm: str) -> tuple[Callable[[str], str], Callable[[str, str], str]]:
        def digest(text: str) -> str:
            return _HASHES[algorithm.lower()](text.encode()).hexdigest()

        return digest, lambda secret, data: digest(f"{secret}:{data}")
