"""Reads plain text: finds its encoding, and keeps its characters and line ends."""

from __future__ import annotations

import codecs

from kgqa.corpus.documents.document import safe_text
from kgqa.corpus.documents.formats.content import Content, sorted_elements
from kgqa.corpus.documents.formats.lines import key_value_lines, list_items
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
_MAX_CHARACTER = 4
"""Bytes of the longest character in the encodings that are guessed."""


def read_plain_text(data: bytes, limits: Limits) -> Content:
    """Read plain text; its elements are key-value lines and list items.

    Raises:
        DocumentError: It is not text, or too long.
    """
    text = decode(data, limits)
    return Content(text, elements=sorted_elements(key_value_lines(text) + list_items(text), limits))


def decode(data: bytes, limits: Limits, *, declared: str = "") -> str:
    """Return the text of a file: in the encoding of its byte order mark, in UTF-8, or in the most likely encoding.

    Args:
        data: The content of the file.
        limits: The largest number of characters.
        declared: The encoding that the file names; used if the text is not UTF-8.

    Raises:
        DocumentError: It is not text, or too long.
    """
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        if mark:
            raise DocumentError(f"its text is not valid {encoding.upper()}") from error
        text = _declared(data, declared) or _guess(data)
    if len(text) > limits.characters:
        raise DocumentError(f"the text has more than {limits.characters:,} characters")
    return safe_text(text)


def _declared(data: bytes, encoding: str) -> str:
    try:
        # browsers read both names as Windows-1252
        return data.decode("cp1252" if encoding.lower() in ("iso-8859-1", "us-ascii") else encoding) if encoding else ""
    except (LookupError, ValueError):
        return ""


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    sample = data[:_SAMPLE]
    if b"\0" in sample:
        raise DocumentError("it is not text")
    if len(data) > _SAMPLE:
        # half a character at the end would rule out the right encoding; no encoding has blanks within a character
        sample = sample[: max(sample.rfind(b"\n"), sample.rfind(b" ")) + 1] or sample
    for cut in range(_MAX_CHARACTER if len(data) > _SAMPLE else 1):
        if best := from_bytes(sample[: len(sample) - cut]).best():
            return data.decode(best.encoding, "replace")
    raise DocumentError("the encoding of the text is unknown")
