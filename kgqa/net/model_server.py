"""Servers with the interface of OpenAI: the openai library over our own HTTP client."""

from __future__ import annotations

import time
from typing import Any

from urllib3.exceptions import ConnectTimeoutError, NewConnectionError, ReadTimeoutError

from kgqa.errors import StoreError
from kgqa.net.client import CONNECT_SECONDS, NO_REPLY, HttpClient, Request, read_up_to

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
                        is_unreachable = isinstance(problem, (NewConnectionError, ConnectTimeoutError))
                        kind = httpx2.ConnectError if is_unreachable else httpx2.ReadError
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
