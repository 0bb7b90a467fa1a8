"""Reads image files."""

from __future__ import annotations

from kgqa.corpus.documents.document import Figure
from kgqa.corpus.documents.formats.content import Content, media_type
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError


def read_image(data: bytes, limits: Limits) -> Content:
    """Read an image file: a document without text that has one figure.

    Raises:
        DocumentError: It is not a PNG, JPEG, WebP or GIF image, or too large.
    """
    if len(data) > limits.figure_bytes:
        raise DocumentError(f"the image is larger than {limits.figure_bytes:,} bytes")
    kind = media_type(data)
    if not kind:
        raise DocumentError("it is not a PNG, JPEG, WebP or GIF image")
    return Content("", figures=(Figure(data, kind),))
