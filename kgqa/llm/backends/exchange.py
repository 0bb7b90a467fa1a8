"""A single HTTP request to a model's server, the classification of its failures, and the pauses between retries."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from kgqa.llm.backends.chat_response import UnreadableBody, message_of
from kgqa.net.servers import redirect_target

FIRST_PAUSE = 0.5  # seconds
LONGEST_PAUSE = 30.0  # seconds
LONGEST_REQUESTED = 120.0
"""Longest wait, in seconds, that a server may ask for; if it asks for more, the request is not repeated."""
_TEMPORARY = (408, 409, 425, 429)
_FATAL = (401, 402, 403, 404, 405, 410)

NOTHING_ANSWERS = "nothing answers"
"""The cause if there is no server at the address."""

T = TypeVar("T")


@dataclass(frozen=True)
class RequestFailure:
    """Why a request failed.

    Attributes:
        kind: "temporary" if a retry may succeed, "refused" if this request cannot succeed, "fatal" if no request can.
        cause: The cause in words. It may contain the API key; mask this key before the cause is shown to the user.
        status: The HTTP status; 0 if there was no response.
        error: The error in the body of a response with status 400 or 422, without an outer `error` object.
        wait: Seconds that the server asks to wait; None if it asks for none.
    """

    kind: Literal["temporary", "refused", "fatal"]
    cause: str
    status: int = 0
    error: Any = None
    wait: float | None = None


def exchange(
    send: Callable[[], Any],
    read: Callable[[Any], T],
    *,
    retries: int,
    sleep: Callable[[float], object],
    stopped: Callable[[], bool] = lambda: False,
) -> T | RequestFailure:
    """Send a request, again after temporary failures, and return the JSON response or the last failure.

    Args:
        send: A call of the openai library with `with_raw_response`, so that the library checks only the HTTP status and
            leaves the JSON to this function.
        read: Turns the JSON into a result, or raises UnreadableBody.
        retries: Most attempts after the first one.
        sleep: Waits the given number of seconds.
        stopped: Whether no further attempt is wanted.
    """
    result = _attempt(send, read)
    for attempt in range(retries):
        pause = retry_pause(result, attempt) if isinstance(result, RequestFailure) else None
        if pause is None:
            break
        sleep(pause)
        if stopped():
            break
        result = _attempt(send, read)
    return result


def _attempt(send: Callable[[], Any], read: Callable[[Any], T]) -> T | RequestFailure:
    from httpx2 import ConnectError
    from openai import APIConnectionError, APIStatusError, APITimeoutError

    # failures are returned, not raised, because an exception would keep the request, which contains the API key
    try:
        response = send().http_response
    except APIStatusError as error:
        return _status_failure(error)
    except APITimeoutError as error:
        return RequestFailure("temporary", f"no reply within {error.request.extensions['timeout']['read']:g} s")
    except APIConnectionError as error:
        is_silent = isinstance(error.__cause__, ConnectError)
        return RequestFailure("temporary", NOTHING_ANSWERS if is_silent else str(error.__cause__ or error))
    try:
        return read(response.json())
    except UnreadableBody as error:
        return RequestFailure("temporary", str(error))
    except (ValueError, RecursionError) as error:
        return RequestFailure("temporary", f"the reply is not JSON: {error}")


def _status_failure(error: Any) -> RequestFailure:
    """Classify an `openai.APIStatusError`."""
    from kgqa.net.client import retry_after

    status = error.status_code
    response = error.response
    if target := redirect_target(response):
        cause = f"status {status}: the server redirects to {target}, and redirects are not followed"
        return RequestFailure("fatal", cause, status)
    cause = f"{status} {message_of(error.body) if error.body else response.reason_phrase}"
    if status in _FATAL or status < 400 or error.code == "insufficient_quota":
        return RequestFailure("fatal", cause, status)
    if status in _TEMPORARY or status >= 500:
        return RequestFailure("temporary", cause, status, wait=retry_after(response.headers))
    return RequestFailure("refused", cause, status, error.body if status in (400, 422) else None)


def retry_pause(failure: RequestFailure, attempt: int) -> float | None:
    """Return the seconds until the next attempt; None if the request must not be repeated.

    Pauses grow exponentially and are partly random, so that threads whose requests failed at the same time do not
    repeat them at the same time. A pause is never shorter than the server asks for. If the failure is not temporary, or
    the server asks for more than LONGEST_REQUESTED seconds, the request is not repeated.

    Args:
        failure: Why the last attempt failed.
        attempt: Number of the last attempt, from 0.
    """
    if failure.kind != "temporary" or (failure.wait or 0) > LONGEST_REQUESTED:
        return None
    pause: float = max(min(FIRST_PAUSE * 2**attempt, LONGEST_PAUSE) * random.uniform(0.5, 1), failure.wait or 0)
    return pause
