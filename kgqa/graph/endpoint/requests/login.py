"""HTTP login to an endpoint. The password is sent only after the endpoint itself has asked for a login."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import threading
from collections.abc import Sequence

from kgqa.errors import SettingsError, StoreUnavailable

_HASHES = {"md5": hashlib.md5, "sha": hashlib.sha1, "sha-256": hashlib.sha256}


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
        digest = _parameters(offers.get("digest", ""))
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

    def header(self, method: str, target: str) -> bytes | None:
        """Return the Authorization header of a request, in UTF-8; None before the server's first challenge.

        Args:
            target: the path of the URL with the query string.
        """
        with self._lock:
            if self._scheme != "digest":
                pair = f"{self._user}:{self._password}".encode()
                return b"Basic " + base64.b64encode(pair) if self._scheme else None
            self._count += 1
            return self._digest(self._challenge, method, target, self._count).encode("utf-8")

    def _digest(self, challenge: dict[str, str], method: str, target: str, count: int) -> str:
        realm, nonce, algorithm = (challenge.get(name, "") for name in ("realm", "nonce", "algorithm"))

        def hashed(*parts: str) -> str:
            return _HASHES[algorithm.lower() or "md5"](":".join(parts).encode("utf-8")).hexdigest()

        who, what = hashed(self._user, realm, self._password), hashed(method, target)
        fields = {"username": self._user, "realm": realm, "nonce": nonce, "uri": target}
        bare = {"algorithm": algorithm} if algorithm else {}
        if "qop" in challenge:
            number, own = f"{count:08x}", secrets.token_hex(8)
            fields |= {"cnonce": own, "response": hashed(who, nonce, number, own, "auth", what)}
            bare |= {"qop": "auth", "nc": number}
        else:
            fields["response"] = hashed(who, nonce, what)
        if "opaque" in challenge:
            fields["opaque"] = challenge["opaque"]
        quoted = [f'{name}="' + re.sub(r'(["\\])', r"\\\1", value) + '"' for name, value in fields.items()]
        return "Digest " + ", ".join([*quoted, *(f"{name}={value}" for name, value in bare.items())])


def _parameters(text: str) -> dict[str, str]:
    from urllib.request import parse_http_list, parse_keqv_list

    try:
        return {
            name.lower(): value for name, value in parse_keqv_list(list(filter(None, parse_http_list(text)))).items()
        }
    except ValueError:
        return {}
