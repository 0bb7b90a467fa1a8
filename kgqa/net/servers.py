"""The addresses and keys of servers."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import urljoin, urlsplit

from kgqa.errors import SettingsError
from kgqa.text.hints import Hint
from kgqa.text.words import clean

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
KEY_VARIABLE = "KGQA_LLM_KEY"
NO_OPENAI_KEY = f"Keep it with `kgqa keys set openai`, or set the environment variable {OPENAI_KEY_VARIABLE}."
"""What to do if the key of OpenAI is missing."""


def check_url(url: str, *, of: str, key: Hint | str) -> None:
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
        raise SettingsError(
            f"The URL of the {of} must start with http:// or https:// and name a host, not {clean(url)[:100]!r}."
        )


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


def redirect_target(response: Any) -> str:
    """Return where an HTTP response redirects to, without user and query; empty if it is not a redirect."""
    location = response.headers.get("location", "")
    if not 300 <= response.status_code < 400 or not location:
        return ""
    try:
        parts = urlsplit(urljoin(str(response.request.url), location))
    except ValueError:
        return "an invalid URL"
    return clean(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}")[:200]
