"""What all routes use: the service and the client of a request, and calls that wait for their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel

from kgqa.serve.errors import RequestError
from kgqa.serve.fair_queue import QueueFull
from kgqa.serve.service import Service

T = TypeVar("T")


class ErrorText(BaseModel):
    """What is wrong, and what to do; `hint` may be empty."""

    message: str
    hint: str


class ErrorBody(BaseModel):
    """The body of a reply with an error."""

    error: ErrorText


_MEANINGS: dict[int | str, str] = {
    400: "The request is wrong; `error.message` says why.",
    401: "A token is needed, or the token is wrong.",
    404: "There is no such thing.",
    429: "The client has reached a limit; see the header Retry-After.",
    503: "Too many requests wait; see the header Retry-After.",
    "default": "Another error.",
}
ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "model": ErrorBody} for status, text in _MEANINGS.items()
}


def service_of(request: Request) -> Service:
    """Return the service of the application."""
    service: Service = request.app.state.service
    return service


def client_of(request: Request) -> str:
    """Return the name of the client whose limits count."""
    return str(request.state.client)


Served = Annotated[Service, Depends(service_of)]
Client = Annotated[str, Depends(client_of)]


def busy() -> RequestError:
    """Return the error for a request that cannot wait, because too many others do."""
    return RequestError(503, "Too many requests are waiting.", "Try again in a moment.", {"Retry-After": "2"})


async def looked_up(service: Service, client: str, function: Callable[[], T], *, query: bool = False) -> T:
    """Call a function that reads the graph, in a thread of the service. Raises RequestError if too many calls wait."""
    try:
        future = service.look_up(client, function, query=query)
    except QueueFull:
        raise busy() from None
    return await asyncio.wrap_future(future)
