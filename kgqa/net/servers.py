"""Servers: their addresses and keys, what their headers ask for, and clients of those with the interface of OpenAI."""

from __future__ import annotations

import ipaddress
import time
from typing import Any
from urllib.parse import urljoin, urlsplit

from kgqa.errors import SettingsError, StoreError
from kgqa.text.words import clean

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
KEY_VARIABLE = "KGQA_LLM_KEY"
NO_OPENAI_KEY = f"Keep it with `kgqa keys set openai`, or set the environment variable {OPENAI_KEY_VARIABLE}."
"""What to do if the key of OpenAI is missing."""
LARGEST_REPLY = 8 << 20
"""Maximum size of a decompressed reply in bytes. Replies of language models have at most about 100,000 bytes."""
_LARGEST_ERROR = 1 << 16
"""Maximum bytes read from an error reply; this is enough to quote its message."""
_NO_LIMIT = 1e7
"""Seconds; a model may take any time for a reply whose parts arrive in time."""
_OWN_HEADERS = ("accept", "authorization", "content-type", "user-agent")
"""Headers that are sent to every server. Others may come from the environment and are meant for OpenAI."""
_BODY_HEADERS = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that describe the encoded body and are wrong for the decoded body."""


def check_url(url: str, *, of: str, key: str) -> None:
    """Check the URL of a server.

    Args:
        of: what the server offers, for error messages. key: where its key or password belongs, for error messages.

    Raises:
        SettingsError: the URL does not start with http or https, or contains a user, a password or a query.
    """
    if any(sign in url for sign in "@?#"):
        raise SettingsError(f"The URL of the {of} must not contain a user, password or query.", key)
    try:
        parts = urlsplit(url)
        (parts.hostname or "").encode("idna")
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or set(url) & set(' <>"\\'):
        raise SettingsError(f"The URL of the {of} must start with http:// or https://, not {clean(url)[:100]!r}.")


def base_url(url: str, *, of: str = "language model", key: str = KEY_VARIABLE) -> str:
    """Normalise a base URL; endpoints such as `/chat/completions` are appended to it. The default path is `/v1`.

    `key` is the environment variable that contains the server's API key. `of` and errors: see `check_url`.
    """
    url = url.strip()
    check_url(url, of=of, key=f"Keep the key with `kgqa keys set URL`, or put it into {key}.")
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix("/chat/completions").removesuffix("/embeddings").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path or '/v1'}"


def is_loopback(url: str) -> bool:
    """Return whether a server is on this machine, which is certain for `localhost` and for addresses in numbers."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


class ModelServer:
    """A server with the interface of OpenAI, asked through the openai library and our own HTTP client. Thread-safe.

    Only the given API key is sent to it, not what the environment sets for OpenAI, unless the server is OpenAI's own.

    Args:
        timeout: seconds to wait for the next data of a reply.
        retries: number of retries of the library.
        largest: maximum size of a decompressed reply, in bytes. An error reply is read only in part.

    Attributes:
        api: the `openai.OpenAI` client. A redirect to another server is an `openai.APIStatusError`.

    Raises:
        SettingsError: the environment names a proxy that cannot be used.
    """

    def __init__(
        self, url: str, key: str, *, timeout: float, is_openai: bool, retries: int = 0, largest: int = LARGEST_REPLY
    ) -> None:
        import httpx2
        from openai import OpenAI, Timeout
        from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ReadTimeoutError

        from kgqa.net.client import CONNECT_SECONDS, NO_REPLY, HttpClient, Request, read_up_to

        key = key or "none"  # the library requires a key
        self._client = client = HttpClient(url)
        self._probe = Request("GET", f"{url}/models", {"Authorization": f"Bearer {key}"})

        class Transport(httpx2.BaseTransport):
            def handle_request(self, request: httpx2.Request) -> httpx2.Response:
                headers = {name: text for name, text in request.headers.items() if is_openai or name in _OWN_HEADERS}
                sent = Request(request.method, str(request.url), {**headers, "accept-encoding": "gzip"}, request.read())
                with client.deadline(time.monotonic() + _NO_LIMIT) as deadline:
                    try:
                        response = client.send(sent, deadline, read_seconds=timeout)
                        most = largest if response.status < 400 else _LARGEST_ERROR
                        body = read_up_to(client.chunks(response, deadline), most)
                    except StoreError as error:
                        raise httpx2.ReadError(error.message) from None
                    except ReadTimeoutError as problem:
                        raise httpx2.ReadTimeout(str(problem)) from None
                    except NO_REPLY as problem:
                        nobody = isinstance(problem, (NewConnectionError, ConnectTimeoutError))
                        kind = httpx2.ConnectError if nobody else httpx2.ReadError
                        raise kind(client.error_of(problem).message) from None
                response.close()
                if response.status < 400 and len(body) > most:
                    raise httpx2.ReadError(f"the reply is larger than {most >> 20} MB")
                headers = {name: text for name, text in response.headers.items() if name.lower() not in _BODY_HEADERS}
                return httpx2.Response(response.status, headers=headers, content=body)

        self.api: Any = OpenAI(
            base_url=url,
            api_key=key,
            timeout=Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
            max_retries=retries,
            http_client=httpx2.Client(transport=Transport(), trust_env=False),
            default_headers={"Authorization": f"Bearer {key}"},  # OPENAI_CUSTOM_HEADERS may have another one
        )

    def responds(self, seconds: float) -> bool:
        """Return whether the server replied in the last `seconds`, or replies to a request now."""
        return self._client.responds(self._probe, seconds)

    def close(self) -> None:
        """Cut the requests in progress."""
        self._client.close()
