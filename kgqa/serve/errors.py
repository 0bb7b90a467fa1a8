"""Errors of HTTP requests, as JSON: `{"error": {"message", "hint"}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from kgqa.text.words import clean


class RequestError(Exception):
    """A request that gets an error as its reply.

    `status`: HTTP status. `message`: what is wrong. `hint`: what to do. `headers`: of the reply.
    """

    def __init__(self, status: int, message: str, hint: str = "", headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.hint = status, message, hint
        self.headers = dict(headers or {})

    @property
    def content(self) -> dict[str, Any]:
        """The body of the reply."""
        return error_object(self.message, self.hint)

    @property
    def response(self) -> JSONResponse:
        """The reply."""
        return JSONResponse(self.content, self.status, self.headers)


def error_object(message: str, hint: str = "") -> dict[str, Any]:
    """Return the JSON object of an error."""
    return {"error": {"message": clean(message), "hint": clean(hint)}}
