"""Opens clients of OpenAI-compatible servers for chat and embeddings, from a base URL and an API key.

The client of the openai library is configured to limit the size of replies and not to follow redirects.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any
from urllib.parse import urljoin, urlsplit

from kgqa.errors import SettingsError
from kgqa.text.words import clean

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
KEY_VARIABLE = "KGQA_LLM_KEY"
NO_OPENAI_KEY = f"Keep it with `kgqa keys set openai`, or set the environment variable {OPENAI_KEY_VARIABLE}."
"""What to do if the key of OpenAI is missing."""
CONNECT_SECONDS = 10.0
LARGEST_REPLY = 8 << 20
"""Maximum size of a decompressed reply in bytes. Replies of language models have at most about 100,000 bytes."""
_GATEWAY_ERRORS = (502, 503, 504)
"""HTTP status codes with which a proxy reports that the server behind it does not respond."""
_LARGEST_ERROR = 1 << 16
"""Maximum bytes read from an error reply; this is enough to quote its message."""


class ReplyTooLarge(Exception):
    """A reply exceeds the size limit and was not read completely."""


def base_url(url: str, *, of: str = "language model", key: str = KEY_VARIABLE) -> str:
    """Normalise a base URL; endpoints such as `/chat/completions` are appended to it. The default path is `/v1`.

    Args:
        of: what the server offers, for error messages.
        key: environment variable that contains the server's API key, for error messages.

    Raises:
        SettingsError: the URL does not start with http or https, or contains a user, a password or a query.
    """
    if any(sign in url for sign in "@?#"):
        raise SettingsError(
            f"The URL of the {of} must not contain a user, password or query.",
            f"Keep the key with `kgqa keys set URL`, or put it into {key}.",
        )
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        (parts.hostname or "").encode("idna")
    except ValueError:
        usable = False
    if not usable:
        raise SettingsError(f"The URL of the {of} must start with http:// or https://, not {clean(url)[:100]!r}.")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/embeddings").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def usable_key(key: str, variable: str) -> str:
    """Remove spaces around an API key and check the key. `variable`: environment variable that contains the key.

    Raises:
        SettingsError: the key contains characters that cannot be sent in a header.
    """
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError(
            f"The key in {variable} contains characters that are not allowed in a key.", "Copy it again."
        )
    return key


def redirect_target(status: int, location: str, url: str) -> str:
    """Return the target of a redirect from `url`, without user and query; empty if the reply is not a redirect."""
    if not 300 <= status < 400 or not location:
        return ""
    try:
        parts = urlsplit(urljoin(url, location))
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an invalid URL"
    return clean(f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}")[:200]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from the header Retry-After (a number or an HTTP date); None if it is missing."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def open_client(
    url: str, key: str, *, timeout: float, is_openai: bool, retries: int = 0, largest: int = LARGEST_REPLY
) -> Any:
    """Open an `openai.OpenAI` client that sends only the given API key.

    For any server except OpenAI's own, headers that the environment sets for OpenAI are removed. A call raises
    ReplyTooLarge for a large reply. For a redirect, it raises `openai.APIStatusError`, so that prompt and key are sent
    to `url` only.

    Args:
        timeout: seconds to wait for the next data of a reply.
        retries: number of retries.
        largest: maximum size of a decompressed reply, in bytes. An error reply is read only in part.
    """
    from openai import OpenAI, Timeout

    key = key or "none"  # the library requires a key
    return OpenAI(
        base_url=url,
        api_key=key,
        timeout=Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
        max_retries=retries,
        http_client=_bounded_client(largest),
        # an Authorization in OPENAI_CUSTOM_HEADERS would override the key
        default_headers={**({} if is_openai else _omitted_headers()), "Authorization": f"Bearer {key}"},
    )


@cache
def _certificates() -> Any:
    """Return the SSL context of all clients; loading the trusted certificates takes some 30 ms."""
    from httpx2 import create_ssl_context

    return create_ssl_context()


def _bounded_client(largest: int) -> Any:
    from openai import DefaultHttpxClient

    class BoundedClient(DefaultHttpxClient):
        """Limits the size of replies and does not follow redirects."""

        replied = 0.0
        """Time of the last reply from the server itself, not from a proxy, in seconds of `time.monotonic`."""

        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            response = super().send(request, **{**options, "stream": True, "follow_redirects": False})
            if response.status_code not in _GATEWAY_ERRORS:
                self.replied = time.monotonic()
            try:
                body = _read_up_to(response, largest if response.is_success else _LARGEST_ERROR)
            finally:
                response.close()
            if response.is_success and len(body) > largest:
                raise ReplyTooLarge(f"the reply is larger than {largest >> 20} MB")
            headers = [(name, value) for name, value in response.headers.multi_items() if name not in _BODY_HEADERS]
            return type(response)(response.status_code, headers=headers, content=body, request=request)

    return BoundedClient(verify=_certificates())


_BODY_HEADERS = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that describe the encoded body and are wrong for the decoded body."""


def _read_up_to(response: Any, size: int) -> bytes:
    """Read and decompress the body in pieces, and stop after slightly more than `size` bytes."""
    body = bytearray()
    for part in response.iter_bytes():
        body += part
        if len(body) > size:
            break
    return bytes(body)


def responds(client: Any, seconds: float) -> bool:
    """Check whether a client's server replied in the last `seconds`, or replies to a request now.

    Earlier replies count, because a server that handles one request at a time may not reply to a second request.
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
        return error.status_code not in _GATEWAY_ERRORS
    except ReplyTooLarge:
        return True
    except APIConnectionError:
        return replied_since(started)
    return True


def _omitted_headers() -> dict[str, Any]:
    from openai import Omit

    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n")
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    names = [name for name in names if name.lower() != "authorization"]
    return {name: Omit() for name in ("OpenAI-Organization", "OpenAI-Project", *names)}
