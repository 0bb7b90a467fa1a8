"""Servers with OpenAI's interface, for chat and for embeddings: their URL, their key, and the client of the openai
library for the two, which reads replies up to a size and follows no redirect.
"""

from __future__ import annotations

import os
import time
from typing import Any
from urllib.parse import urljoin, urlsplit

from kgqa.errors import SettingsError
from kgqa.words import clean

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
KEY_VARIABLE = "KGQA_LLM_KEY"
CONNECT_SECONDS = 10.0
LARGEST_REPLY = 8 << 20
"""Bytes of a reply, decompressed. The largest replies of language models have some hundred thousand."""
_GONE = (502, 503, 504)
"""Replies of something in front of a server that is not there."""
_LARGEST_ERROR = 1 << 16
"""Bytes of an error that are read: enough to quote it."""


class ReplyTooLarge(Exception):
    """A server sent more than a reply may have; the rest of it was not read."""


def base_url(
    url: str, *, endpoint: str = "/chat/completions", of: str = "language model", key: str = KEY_VARIABLE
) -> str:
    """The URL that an endpoint is put behind; `/v1` where the given one has no path.

    Args:
        of, key: what is there, and the variable that its key is put into, for messages.

    Raises:
        SettingsError: not http or https, or something in it that does not belong there, such as a password.
    """
    if any(sign in url for sign in "@?#"):
        raise SettingsError(f"The URL of the {of} must not hold a user, a password or a query: put the key into {key}.")
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(f"The URL of the {of} must begin with http:// or https://: {clean(url)[:100]!r}.")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/embeddings").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def usable_key(key: str, variable: str) -> str:
    """The key without blanks around it; `variable` is the one of the environment that people put it into.

    Raises:
        SettingsError: it cannot stand in a header.
    """
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(f"The key in {variable} has characters that no key has: copy it once more.")
    return key


def redirect_target(status: int, location: str, url: str) -> str:
    """The URL that a reply of the server at `url` points to, without user and query; empty if it is no redirect."""
    if not 300 <= status < 400 or not location:
        return ""
    try:
        parts = urlsplit(urljoin(url, location))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that is not valid"
    return clean(f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}")[:200]


def open_client(
    url: str, key: str, *, timeout: float, is_openai: bool, retries: int = 0, largest: int = LARGEST_REPLY
) -> Any:
    """Open an `openai.OpenAI` that sends this key and no other, and, unless it is for OpenAI, nothing else that the
    environment says of OpenAI's own service.

    Its calls raise ReplyTooLarge, and `openai.APIStatusError` for a redirect: the prompt and the key reach no other
    address than `url`.

    Args:
        timeout: seconds until something of a reply has to come.
        retries: times it tries again.
        largest: bytes that a reply may have, decompressed. Only the beginning of an error is read.
    """
    from openai import OpenAI, Timeout

    key = key or "none"  # the library refuses to do without
    return OpenAI(
        base_url=url,
        api_key=key,
        timeout=Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        max_retries=retries,
        http_client=_bounded_client(largest),
        # an Authorization in OPENAI_CUSTOM_HEADERS would go before the key
        default_headers={**({} if is_openai else _kept_back()), "Authorization": f"Bearer {key}"},
    )


def _bounded_client(largest: int) -> Any:
    from openai import DefaultHttpxClient

    class BoundedClient(DefaultHttpxClient):
        """Reads replies up to a size, and follows no redirect."""

        replied = 0.0
        """When a reply last came that was not of something in front of the server, in seconds of `time.monotonic`."""

        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            response = super().send(request, **{**options, "stream": True, "follow_redirects": False})
            if response.status_code not in _GONE:
                self.replied = time.monotonic()
            try:
                body = _beginning(response, largest if response.is_success else _LARGEST_ERROR)
            finally:
                response.close()
            if response.is_success and len(body) > largest:
                raise ReplyTooLarge(f"the reply is larger than {largest >> 20} MB")
            headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_BODY]
            return type(response)(response.status_code, headers=headers, content=body, request=request)

    return BoundedClient()


_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that are no longer true of a body that has been read."""


def _beginning(response: Any, size: int) -> bytes:
    """The body as far as it comes, or somewhat more than `size` bytes of it. It is decompressed piece by piece."""
    body = bytearray()
    for part in response.iter_bytes():
        body += part
        if len(body) > size:
            break
    return bytes(body)


def responds(client: Any, seconds: float) -> bool:
    """Whether the server of a client of `open_client` has sent a reply to anything in the last `seconds`, or sends one to a
    small request now: one that works on one request after the other may have no time for it.
    """
    from openai import APIConnectionError, APIStatusError

    started = time.monotonic()
    http = getattr(client, "_client", None)

    def replied_since(moment: float) -> bool:
        return getattr(http, "replied", 0.0) > moment

    if replied_since(started - seconds):
        return True
    try:
        client.with_options(timeout=seconds, max_retries=0).models.with_raw_response.list()
    except APIStatusError as error:
        return error.status_code not in _GONE
    except ReplyTooLarge:
        return True
    except APIConnectionError:
        return replied_since(started)
    return True


def _kept_back() -> dict[str, Any]:
    from openai import Omit

    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    names = [name for name in names if name.lower() != "authorization"]
    return {name: Omit() for name in ("OpenAI-Organization", "OpenAI-Project", *names)}
