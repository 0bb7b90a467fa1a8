"""Lets only requests through that come from a known client, to a known host, and are small and prompt."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from kgqa.serve import limits
from kgqa.serve.errors import RequestError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

WRITE_BYTES = 64 << 10
SECURITY_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
OPEN_PATHS = re.compile(r"/|/a/[^/]*|/static/.*|/docs(?:/.*)?|/openapi\.json|/health|/favicon\.ico")
"""The paths that need no token: they show no data of the graph."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_LENGTH = re.compile("[0-9]{1,20}")


class Guard:
    """Checks the host, origin, token and size of each request before the application `app` sees it.

    Args:
        hosts: Names of this service, without ports. IP addresses are always accepted: a page of another origin cannot
            have them in its place of a name (DNS rebinding).
        tokens: Tokens of clients; empty if none is needed.
    """

    def __init__(self, app: Any, *, hosts: Iterable[str], tokens: Iterable[str]) -> None:
        self._app = app
        self._hosts = {host.lower().rstrip(".") for host in hosts}
        self._tokens = [_digest(token.encode()) for token in tokens]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                known = {name.lower() for name, _ in message.get("headers", ())}
                added = [each for each in SECURITY_HEADERS if each[0] not in known]
                cached = [] if b"cache-control" in known else [(b"cache-control", b"no-store")]
                message = {**message, "headers": [*message.get("headers", ()), *added, *cached]}
            body = message.get("body", b"")
            last = max(0, len(body) - 1) // WRITE_BYTES * WRITE_BYTES
            for at in range(0, last, WRITE_BYTES):  # a client that reads slowly holds up one part, and not all of it
                await send({**message, "body": body[at : at + WRITE_BYTES], "more_body": True})
            await send({**message, "body": body[last:]} if last else message)

        try:
            headers = _headers(scope)
            self._check_host(headers)
            self._check_origin(headers, scope["path"])
            scope.setdefault("state", {})["client"] = self._client(scope, headers)
            body = await self._body(headers, receive, scope["method"])
        except RequestError as error:
            await error.response(scope, receive, send_with_headers)
            return
        sent = False

        async def receive_again() -> MutableMapping[str, Any]:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, receive_again, send_with_headers)

    def _check_host(self, headers: dict[str, str]) -> None:
        name = _host_name(headers.get("host", ""))
        if name is None or not (name in self._hosts or _is_address(name)):
            raise RequestError(421, "This service has another name.", "Add the name to the setting serve.hosts.")

    def _check_origin(self, headers: dict[str, str], path: str) -> None:
        origin = headers.get("origin")
        wrong = origin is not None and origin.partition("://")[2].lower() != headers["host"].lower()
        # browsers say so themselves if a page of another site sends a request, also one without an Origin
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site") and not OPEN_PATHS.fullmatch(path)
        if wrong or elsewhere:
            raise RequestError(403, "Pages of other origins may not use this service.", "Open the page of the service.")

    def _client(self, scope: Scope, headers: dict[str, str]) -> str:
        """Return the name of the client for limits and logs: the number of its token, or else its address."""
        address = str((scope.get("client") or ("unknown",))[0])
        if not self._tokens:
            return address
        scheme, _, given = headers.get("authorization", "").partition(" ")
        token = given.strip().encode("utf-8", "surrogateescape") if scheme.lower() == "bearer" else b""
        # every token is compared, by digests of the same length, in constant time
        matches = [hmac.compare_digest(_digest(token), known) for known in self._tokens]
        if any(matches):
            return f"token {matches.index(True) + 1}"
        if OPEN_PATHS.fullmatch(scope["path"]):
            return address
        raise RequestError(
            401,
            "This service needs a token." if not token else "The token is wrong.",
            "Send the header Authorization: Bearer TOKEN.",
            {"WWW-Authenticate": "Bearer"},
        )

    async def _body(self, headers: dict[str, str], receive: Receive, method: str) -> bytes:
        if "transfer-encoding" in headers and "content-length" in headers:
            # a proxy may believe the other of the two, and take a part of the body for a request
            raise RequestError(400, "The request has two lengths.", "", {"Connection": "close"})
        length = headers.get("content-length", "0")
        too_large = RequestError(
            413, f"The request is larger than {limits.BODY_BYTES >> 10:,} KB.", "Send less.", {"Connection": "close"}
        )
        if not _LENGTH.fullmatch(length) or int(length) > limits.BODY_BYTES:
            raise too_large
        if method in ("POST", "PUT", "PATCH") and not _is_json(headers.get("content-type", "")):
            raise RequestError(415, "The request is not JSON.", "Send the header Content-Type: application/json.")
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(limits.READ_SECONDS):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError(408, "The connection was closed.")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > limits.BODY_BYTES:
                        raise too_large
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RequestError(
                408, f"The request did not arrive within {limits.READ_SECONDS:g} s.", "", {"Connection": "close"}
            ) from None
        return b"".join(parts)


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers by their names in lower case; a name may occur once, except for lists.

    Raises:
        RequestError: a header that is checked occurs twice.
    """
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "authorization", "content-length", "content-type"):
            raise RequestError(400, f"The header {key} occurs twice.")
        found[key] = value.decode("utf-8", "surrogateescape")
    return found


def _host_name(host: str) -> str | None:
    match = _HOST.fullmatch(host.strip())
    return match[1].lower().rstrip(".") if match else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"
