"""Routes of the page in a browser and of its static files."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

router = APIRouter(include_in_schema=False)
STATIC = Path(__file__).parent.parent / "static"
static_files = StaticFiles(directory=STATIC, follow_symlink=False)


@router.get("/")
@router.get("/a/{id}")
async def page_route(id: str = "") -> FileResponse:
    """Return the page; it reads the id of a kept answer from its address."""
    return FileResponse(STATIC / "index.html", media_type="text/html; charset=utf-8")
