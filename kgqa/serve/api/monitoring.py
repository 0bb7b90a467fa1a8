"""Routes about the service itself: what it offers, whether it works, metrics, and the documentation of the API."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from kgqa.serve.api.shared import Served
from kgqa.serve.errors import RequestError

router = APIRouter(tags=["service"])
_ASSETS = ("swagger-ui.css", "swagger-ui-bundle.js")
_TYPES = {"css": "text/css", "js": "text/javascript"}
_DOCS = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>kgqa API</title>
<link rel="stylesheet" href="docs/swagger-ui.css"><div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script><script src="docs/start.js"></script></html>
"""
_START = 'SwaggerUIBundle({url: "openapi.json", dom_id: "#swagger-ui", deepLinking: true});\n'


@router.get("/about", summary="What the service offers")
async def about_route(service: Served) -> dict[str, Any]:
    """Return the graph, the methods, the language models, example questions and the limits."""
    return await asyncio.to_thread(service.about)


@router.get("/health", summary="Whether the service works")
async def health_route(service: Served) -> Response:
    """Return 200 if the graph answers a query, otherwise 503."""
    answers = await asyncio.to_thread(service.store_answers)
    text = '{"status": "ok", "store": true}' if answers else '{"status": "the graph does not answer", "store": false}'
    return Response(text, 200 if answers else 503, media_type="application/json")


@router.get("/metrics", summary="Metrics for Prometheus")
async def metrics_route(service: Served) -> PlainTextResponse:
    """Return counters in the text format of Prometheus."""
    return PlainTextResponse(service.metrics_text(), media_type="text/plain; version=0.0.4")


@router.get("/docs", include_in_schema=False)
async def docs_route() -> HTMLResponse:
    """Show the API with Swagger UI."""
    return HTMLResponse(_DOCS)


@router.get("/docs/{name}", include_in_schema=False)
async def docs_file_route(name: str) -> Response:
    """Return one of the three files of Swagger UI."""
    content = _START.encode() if name == "start.js" else None
    if name in _ASSETS:
        content = await asyncio.to_thread(_asset, name)
    if content is None:
        raise RequestError(404, "There is no such file.")
    return Response(content, media_type=_TYPES[name.rpartition(".")[2]], headers={"Cache-Control": "max-age=86400"})


@cache
def _asset(name: str) -> bytes | None:
    try:
        return files("fastapi_swagger").joinpath("resources", name).read_bytes()
    except (ModuleNotFoundError, OSError):
        return None
