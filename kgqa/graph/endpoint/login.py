"""HTTP login to an endpoint. The password is sent only after the endpoint itself has asked for a login."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import threading
from collections.abc import Sequence
from urllib.parse import urlsplit
from urllib.request import parse_http_list, parse_keqv_list

from kgqa.errors import SettingsError, StoreUnavailable
from kgqa.net.client import Request

_HASHES = {"md5": hashlib.md5, "sha-256": hashlib.sha256}


class Login:
    """A user and password for HTTP Basic (RFC 7617) or Digest (RFC 7616). Thread-safe.

    The first request is sent without a login; requests after the server's challenge contain the login.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        if not user.isprintable() or not password.isprintable():
            raise SettingsError(
                "The endpoint's login contains control characters.",
                "Correct the setting endpoint.user or the environment variable KGQA_ENDPOINT_PASSWORD.",
            )
        self._url, self._user, self._password = url, user, password
        self._lock = threading.Lock()
        self._scheme = ""
        self._challenge: dict[str, str] = {}
        self._count = 0

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
        kinds = [kind.strip().lower() for kind in digest.get("qop", "auth").split(",")]
        supported = digest and digest.get("algorithm", "MD5").lower() in _HASHES and "auth" in kinds
        if not supported and "basic" not in offers:
            raise StoreUnavailable(
                f"{self._url} asks for a kind of login that kgqa does not support.",
                "On the server, enable HTTP Basic, or Digest with MD5 or SHA-256.",
            )
        with self._lock:
            if digest.get("nonce") != self._challenge.get("nonce"):
                self._count = 0  # the count of requests starts at 0 for each nonce
            self._scheme, self._challenge = "digest" if supported else "basic", digest
        return True

    def headers(self, request: Request) -> dict[str, bytes]:
        """Return the header Authorization of a request, in UTF-8; nothing before the server's first challenge."""
        with self._lock:
            self._count += 1
            if not self._scheme:
                return {}
            if self._scheme == "basic":
                pair = f"{self._user}:{self._password}".encode()
                return {"Authorization": b"Basic " + base64.b64encode(pair)}
            return {"Authorization": self._digest(self._challenge, request, f"{self._count:08x}").encode("utf-8")}

    def _digest(self, challenge: dict[str, str], request: Request, number: str) -> str:
        realm, nonce = challenge.get("realm", ""), challenge.get("nonce", "")
        parts, own = urlsplit(request.url), secrets.token_hex(8)
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"

        def hashed(*parts: str) -> str:
            return _HASHES[challenge.get("algorithm", "MD5").lower()](":".join(parts).encode("utf-8")).hexdigest()

        who, what = hashed(self._user, realm, self._password), hashed(request.method, target)
        rest = (number, own, "auth") if "qop" in challenge else ()
        fields = {"username": self._user, "realm": realm, "nonce": nonce, "uri": target}
        fields["response"] = hashed(who, nonce, *rest, what)
        fields |= {"cnonce": own} if rest else {}
        fields |= {"opaque": challenge["opaque"]} if "opaque" in challenge else {}
        bare = {"algorithm": challenge["algorithm"]} if "algorithm" in challenge else {}
        bare |= {"qop": "auth", "nc": number} if rest else {}
        quoted = [f'{name}="' + re.sub(r'(["\\])', r"\\\1", value) + '"' for name, value in fields.items()]
        return "Digest " + ", ".join([*quoted, *(f"{name}={value}" for name, value in bare.items())])
