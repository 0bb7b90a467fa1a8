"""Figures as images that a model accepts."""

from __future__ import annotations

from typing import get_args

from kgqa.corpus.documents.document import Figure
from kgqa.llm.client import MAX_IMAGE_BYTES, Image, ImageType

_MARKS: dict[ImageType, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


def open_image(figure: Figure) -> Image:
    """Return a figure as an image of a prompt; its type is what its data say, not what its name says.

    Raises:
        ValueError: It is too large, or of a type that models do not accept.
    """
    return image_of(figure.data, figure.media_type)


def image_of(data: bytes, media_type: str) -> Image:
    """Return data as an image of a prompt.

    Args:
        data: The content of an image file.
        media_type: Its type by its name, for messages.

    Raises:
        ValueError: It is too large, or of a type that models do not accept.
    """
    found = next((type_ for type_, marks in _MARKS.items() if data.startswith(marks)), None)
    if found is None or (found == "image/webp" and data[8:12] != b"WEBP"):
        names = ", ".join(name.removeprefix("image/") for name in get_args(ImageType))
        raise ValueError(f"an image of the type {media_type[:40]} cannot be sent to a model, only {names}")
    if len(data) > MAX_IMAGE_BYTES:
        raise ValueError(f"an image of {len(data):,} bytes cannot be sent to a model, only up to {MAX_IMAGE_BYTES:,}")
    return Image(data, found)
