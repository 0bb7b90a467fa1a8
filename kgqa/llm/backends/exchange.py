"""One HTTP request to a model's server: its result or the kind of its failure, and the pauses between retries."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeVar

from kgqa.llm.backends.chat_response import UnreadableBody, message_of
from kgqa.servers import ReplyTooLarge, redirect_target

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
LONGEST_REQUESTED = 120.0
"""Seconds: the first pause, the longest pause, and the longest that a server may ask for."""
_TEMPORARY = (408, 409, 425, 429)
_FATAL = (401, 402, 403, 404, 405, 410)

T = TypeVar("T")


@dataclass(frozen=True)
class RequestFailure:
    """Why a request failed.

    Attributes:
        kind: "temporary" if a retry may succeed, "refused" if this request never will, "fatal" if no request will.
        cause: For people; it may contain the key.
        status: The HTTP status, 0 without one.
        error: The body of the error without its outer `error`.
        wait: Seconds that the server asks to wait.
    """

    kind: Literal["temporary", "refused", "fatal"]
    cause: str
    status: int = 0
    error: Any = None
    wait: float | None = None


def exchange(send: Callable[[], Any], read: Callable[[Any], T]) -> T | RequestFailure:
    """Send a request and read its JSON.

    Args:
        send: A call of the openai library with `with_raw_response`. It checks only the status, so that invalid or
            unexpected JSON is detected here and not in the library.
        read: Turns the JSON into a result; raises UnreadableBody.
    """
    from openai import APIConnectionError, APIStatusError, APITimeoutError

    # failures are returned, not raised: an exception would keep the request with its key
    try:
        response = send().http_response
    except APIStatusError as error:
        return _status_failure(error)
    except APITimeoutError as error:
        limit, missing = ("connect", "connection") if "Connect" in type(error.__cause__).__name__ else ("read", "reply")
        seconds = error.request.extensions.get("timeout", {}).get(limit)
        return RequestFailure("temporary", f"no {missing} within {seconds:g} s" if seconds else f"no {missing} in time")
    except APIConnectionError as error:
        cause = error.__cause__ or error
        return RequestFailure("temporary", f"{type(cause).__name__}: {cause}")
    except ReplyTooLarge as error:
        return RequestFailure("temporary", str(error))
    try:
        return read(response.json())
    except UnreadableBody as error:
        return RequestFailure("temporary", str(error))
    except (ValueError, RecursionError) as error:
        return RequestFailure("temporary", f"the reply is not JSON: {error}")


def _status_failure(error: Any) -> RequestFailure:
    """Classify an `openai.APIStatusError`."""
    status = error.status_code
    response = error.response
    if target := redirect_target(status, response.headers.get("location", ""), str(response.request.url)):
        return RequestFailure("fatal", f"{status}, it redirects to {target}, and redirects are not followed", status)
    cause = f"{status} {message_of(error.body) if error.body else response.reason_phrase}"
    if status in _FATAL or status < 400 or error.code == "insufficient_quota":
        return RequestFailure("fatal", cause, status)
    if status in _TEMPORARY or status >= 500:
        return RequestFailure("temporary", cause, status, wait=retry_after(response.headers))
    return RequestFailure("refused", cause, status, error.body)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, given as seconds or as an HTTP date; None if there are none."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


class RetryDelays:
    """The pauses between the attempts of one request, and their number."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._attempts = 0

    def pause(self, failure: RequestFailure) -> float | None:
        """Return the seconds until the next attempt; None if there is none.

        The pauses grow exponentially with jitter, so that threads which failed together do not retry together, and last
        at least as long as the server asks. A request is not repeated if the server asks for more than
        LONGEST_REQUESTED.
        """
        if self._attempts == self._retries or (failure.wait or 0) > LONGEST_REQUESTED:
            return None
        pause: float = min(FIRST_PAUSE * 2**self._attempts, LONGEST_PAUSE) * random.uniform(0.5, 1)
        self._attempts += 1
        return max(pause, failure.wait or 0)
