"""The web application: the routes of the API and the page, behind the guard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.routing import Route

from kgqa.errors import KgqaError, PartialResult, QueryRejected, StoreError, StoreTimeout
from kgqa.serve.api import asking, completions, looking_up, monitoring, page
from kgqa.serve.errors import RequestError, error_object
from kgqa.serve.guard import Guard
from kgqa.serve.request_log import RequestLog
from kgqa.serve.service import Service
from kgqa.text.hints import PAGE, shown_at
from kgqa.version import __version__


def create_app(
    service: Service,
    *,
    hosts: Iterable[str] = ("localhost",),
    tokens: Iterable[str] = (),
    log_questions: bool = False,
    mcp: bool = False,
) -> Any:
    """Return the ASGI application of a service.

    Args:
        hosts: The names under which clients reach it; IP addresses are always accepted.
        tokens: The tokens of clients; empty if none is needed.
        log_questions: Whether the log contains the texts of questions.
        mcp: Whether the tools for agents are served at /mcp.
    """
    app = FastAPI(
        title="kgqa",
        version=__version__,
        description="Answers questions over a knowledge graph, and shows why.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.service = service
    tokens = list(tokens)
    # only for the description of the API: the guard checks tokens
    bearer = [Depends(HTTPBearer(auto_error=False, description="The token of the service"))] if tokens else []
    for module in (asking, completions, looking_up, monitoring, page):
        app.include_router(module.router, dependencies=bearer)
    if mcp:
        from kgqa.serve.tools.mcp_server import PATH, McpEndpoint

        endpoint = McpEndpoint(service)
        app.router.routes.append(Route(PATH, endpoint, methods=["POST"]))
        service.closing.append(endpoint.close)
    app.add_exception_handler(RequestError, _request_error)
    app.add_exception_handler(KgqaError, _kgqa_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _defect)
    guarded = Guard(
        app,
        hosts=hosts,
        tokens=tokens,
    )
    return RequestLog(guarded, service.metrics, questions=log_questions)


async def _request_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestError)
    return error.response


async def _kgqa_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, KgqaError)
    wrong = not isinstance(error, StoreError) or isinstance(error, (PartialResult, QueryRejected, StoreTimeout))
    status = 400 if wrong else 503
    with shown_at(PAGE):
        return JSONResponse(error_object(error.message, error.hint), status)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return JSONResponse(error_object(f"The request is not valid JSON (character {first['loc'][-1]})."), 400)
    place = ".".join(str(part) for part in first["loc"][1:])
    return JSONResponse(error_object(f"{place or 'The request'}: {first['msg']}.", "See /docs."), 400)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse(error_object(f"{error.detail}."), error.status_code, error.headers)


async def _defect(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse(error_object(f"internal error: {type(error).__name__}. This is a defect of kgqa."), 500)
