"""Reads plain text: finds its encoding, and keeps its characters and line ends."""

from __future__ import annotations

import codecs

from kgqa.corpus.documents.document import safe_text
from kgqa.corpus.documents.formats.content import Content
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE = 1 << 16


def read_plain_text(data: bytes, limits: Limits) -> Content:
    """Read plain text.

    Raises:
        DocumentError: It is not text, or too long.
    """
    return Content(decode(data, limits))


def decode(data: bytes, limits: Limits) -> str:
    """Return the text of a file: in the encoding of its byte order mark, in UTF-8, or in the most likely encoding.

    Raises:
        DocumentError: It is not text, or too long.
    """
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        if mark:
            raise DocumentError(f"the text is not valid {encoding.upper()}") from error
        text = _guess(data)
    if len(text) > limits.characters:
        raise DocumentError(f"the text has more than {limits.characters:,} characters")
    return safe_text(text)


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    if b"\0" in data[:_SAMPLE]:
        raise DocumentError("it is not text")
    best = from_bytes(data[:_SAMPLE]).best()
    if best is None:
        raise DocumentError("the encoding of the text is unknown")
    return data.decode(best.encoding, "replace")
