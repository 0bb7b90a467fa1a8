"""Writes one line per request to the log, and counts requests."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import MutableMapping
from typing import Any

from kgqa.serve.guard import Receive, Scope, Send
from kgqa.serve.metrics import Metrics
from kgqa.text.words import clean

logger = logging.getLogger("kgqa.serve")
MAX_QUESTION = 300
NOT_SENT = 499
"""The status in the log if the client closed the connection before the reply."""


class RequestLog:
    """Logs the method, the route, the status, the milliseconds and the client of each request.

    The log contains neither query strings nor tokens, and questions only with `questions`.
    """

    def __init__(self, app: Any, metrics: Metrics, *, questions: bool) -> None:
        self._app, self._metrics, self._questions = app, metrics, questions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), NOT_SENT

        async def send_counted(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_counted)
        except Exception as error:
            if status == NOT_SENT:
                raise
            # the client has its reply; the traceback may contain a question
            logger.warning("internal error: %s at %s", type(error).__name__, _route(scope))
            logger.debug("", exc_info=error)
        finally:
            seconds = time.monotonic() - started
            route = _route(scope)
            self._metrics.request(_method(scope), route, status, seconds)
            state = scope.get("state", {})
            client = state.get("client") or (scope.get("client") or ("unknown",))[0]
            asked = state.get("question") if self._questions else None
            text = f" {json.dumps(clean(asked)[:MAX_QUESTION], ensure_ascii=False)}" if asked else ""
            logger.info("%s %s %d %.0f ms %s%s", _method(scope), route, status, 1000 * seconds, client, text)


def _route(scope: Scope) -> str:
    """Return the template of a path, such as /answers/{id}: a path itself may be a secret or a question."""
    route = getattr(scope.get("route"), "path", "")
    return str(route) or ("/static" if str(scope["path"]).startswith("/static/") else "other")


def _method(scope: Scope) -> str:
    known = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
    return str(scope["method"]) if scope["method"] in known else "other"
