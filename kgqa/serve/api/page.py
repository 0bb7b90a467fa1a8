"""Routes of the page in a browser and of its files."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from kgqa.serve.api.page_files import PAGE_HEADERS, PageFile, page, page_files
from kgqa.serve.errors import RequestError

router = APIRouter(include_in_schema=False)


@router.get("/")
@router.get("/a/{id}")
async def page_route(request: Request, id: str = "") -> Response:
    """Return the page; it reads the id of a kept answer from its address."""
    return _reply(request, page())


@router.get("/static/{name}")
async def file_route(request: Request, name: str) -> Response:
    """Return a file of the page."""
    found = page_files().get(name)
    if found is None:
        raise RequestError(404, "There is no such file.")
    return _reply(request, found)


def _reply(request: Request, file: PageFile) -> Response:
    headers = {**PAGE_HEADERS, "ETag": file.tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
