"""One request to a server: what comes back, or what kind of trouble it is and whether waiting helps."""

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
LONGEST_ASKED = 120.0
"""Seconds: the pause before the second try, the longest one, the longest that a server is granted if it asks."""
_PASSING = (408, 409, 425, 429)
_FATAL = (401, 402, 403, 404, 405, 410)

T = TypeVar("T")


@dataclass(frozen=True)
class RequestFailure:
    """Why a request brought nothing.

    Attributes:
        kind: "passing", it may go well another time; "refused", this request will not; "fatal", none will.
        cause: for people; it may repeat the key.
        status: HTTP status, 0 without one.
        error: the body of the error, its outer `error` taken off.
        wait: seconds that the server asks for.
    """

    kind: Literal["passing", "refused", "fatal"]
    cause: str
    status: int = 0
    error: Any = None
    wait: float | None = None


def exchange(send: Callable[[], Any], read: Callable[[Any], T]) -> T | RequestFailure:
    """Send a request and read its JSON.

    Args:
        send: a call of the openai library with `with_raw_response`: it looks at nothing but the status, so that a
            body which is no JSON, or other JSON than it should be, is read here and not by the library.
        read: makes something of the JSON; raises UnreadableBody.
    """
    from openai import APIConnectionError, APIStatusError, APITimeoutError

    # trouble is returned, not raised: an exception would drag the request with its key along
    try:
        response = send().http_response
    except APIStatusError as error:
        return _of_status(error)
    except APITimeoutError as error:
        limit, missing = ("connect", "connection") if "Connect" in type(error.__cause__).__name__ else ("read", "reply")
        seconds = error.request.extensions.get("timeout", {}).get(limit)
        return RequestFailure("passing", f"no {missing} within {seconds:g} s" if seconds else f"no {missing} in time")
    except APIConnectionError as error:
        cause = error.__cause__ or error
        return RequestFailure("passing", f"{type(cause).__name__}: {cause}")
    except ReplyTooLarge as error:
        return RequestFailure("passing", str(error))
    try:
        return read(response.json())
    except UnreadableBody as error:
        return RequestFailure("passing", str(error))
    except (ValueError, RecursionError) as error:
        return RequestFailure("passing", f"the reply is no JSON: {error}")


def _of_status(error: Any) -> RequestFailure:
    """Trouble of an `openai.APIStatusError`."""
    status = error.status_code
    response = error.response
    if target := redirect_target(status, response.headers.get("location", ""), str(response.request.url)):
        return RequestFailure("fatal", f"{status}, it redirects to {target}, where nothing is sent", status)
    cause = f"{status} {message_of(error.body) if error.body else response.reason_phrase}"
    if status in _FATAL or status < 400 or error.code == "insufficient_quota":
        return RequestFailure("fatal", cause, status)
    if status in _PASSING or status >= 500:
        return RequestFailure("passing", cause, status, wait=retry_after(response.headers))
    return RequestFailure("refused", cause, status, error.body)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, given as seconds or as an HTTP date; None where it says nothing usable."""
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
    """How long to wait between the tries of one request, and how often."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._tried = 0

    def pause(self, trouble: RequestFailure) -> float | None:
        """Seconds until the next try; None where there is none.

        Exponential with jitter, so that threads which failed together do not come back together; not sooner than
        the server asks. One that asks for more than LONGEST_ASKED is not asked again.
        """
        if self._tried == self._retries or (trouble.wait or 0) > LONGEST_ASKED:
            return None
        pause = min(FIRST_PAUSE * 2**self._tried, LONGEST_PAUSE) * random.uniform(0.5, 1)
        self._tried += 1
        return max(pause, trouble.wait or 0)
