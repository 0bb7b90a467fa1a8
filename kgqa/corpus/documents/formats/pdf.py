"""Reads PDF files: the text of each page, headings named in the outline, and images.

The library is C++ code that parses untrusted files, so this reader is called in a process of its own
(`kgqa.corpus.documents.parsers`).
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from kgqa.corpus.documents.document import Element, safe_text
from kgqa.corpus.documents.formats.content import Content, FigureList, media_type, sorted_elements
from kgqa.corpus.documents.formats.lines import key_value_lines
from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError

# how the library marks a hyphen at the end of a line
_HYPHEN = re.compile("[\x02\ufffe](?:\r\n)?")
_LINE_END = re.compile(r"[ \t]*\r?\n")
_CAPTION = re.compile(r"^[ \t]*((?:Figure|Fig\.|Abbildung|Abb\.|Figura|图|圖|図)\s*\d+[^\n]{0,300})", re.MULTILINE)
_FILE_NAME = re.compile(r"^\s*$|^(?:Microsoft Word - |untitled)|\.(?:docx?|pdf|tex|dvi|indd|odt|rtf)$", re.IGNORECASE)
_MIN_PIXELS = 64
_MAX_PIXELS = 20_000_000
_MAX_OBJECTS = 20_000
_MAX_OUTLINE = 2_000
_PASSWORD = 4


def read_pdf(data: bytes, limits: Limits) -> Content:
    """Read a PDF file.

    Raises:
        DocumentError: It is damaged, protected by a password, or larger than the limits.
    """
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if getattr(error, "err_code", 0) == _PASSWORD:
            raise DocumentError("it is protected by a password") from error
        raise DocumentError("it is damaged, or not a PDF file") from error
    try:
        return _read(pdf, limits)
    except pypdfium2.PdfiumError as error:
        raise DocumentError(f"it is damaged: {str(error)[:100]}") from error
    finally:
        pdf.close()


def _read(pdf: Any, limits: Limits) -> Content:
    count = len(pdf)
    if count > limits.pages:
        raise DocumentError(f"it has more than {limits.pages:,} pages")
    pieces: list[str] = []
    begins: list[int] = []
    figures = FigureList(limits)
    length = 0
    for number in range(count):
        page = pdf[number]
        text_page = page.get_textpage()
        if text_page.count_chars() > limits.characters:
            raise DocumentError(f"the text has more than {limits.characters:,} characters")
        text = _clean(text_page.get_text_bounded())
        if pieces and text:
            # a sentence may go on on the next page
            pieces.append("\n\n" if pieces[-1].endswith((".", "!", "?", "。", "！", "？", "؟", ":")) else "\n")
            length += len(pieces[-1])
        begins.append(length)
        if text:
            pieces.append(text)
            length += len(text)
        if length > limits.characters:
            raise DocumentError(f"the text has more than {limits.characters:,} characters")
        if not figures.is_full:
            captions = _CAPTION.findall(text)
            images = list(islice(_images(page), limits.figures - len(figures.figures)))
            named = captions if len(captions) == len(images) else [""] * len(images)
            for image, caption in zip(images, named):
                figures.add(image, begins[-1], page=number + 1, caption=caption)
        text_page.close()
        page.close()
    whole = "".join(pieces)
    if not whole and not figures.figures:
        raise DocumentError("it contains no text and no images")
    title = pdf.get_metadata_dict().get("Title", "").strip()
    elements = [*_headings(pdf, whole, begins), *key_value_lines(whole)]
    return Content(
        whole,
        "" if _FILE_NAME.search(title) else safe_text(title),
        tuple(begins),
        sorted_elements(elements, limits),
        tuple(figures.figures),
    )


def _clean(text: str) -> str:
    def joined(found: re.Match[str]) -> str:
        after = text[found.end() : found.end() + 1]
        return "" if after.islower() else "-"

    return safe_text(_LINE_END.sub("\n", _HYPHEN.sub(joined, text)).strip())


def _headings(pdf: Any, text: str, begins: list[int]) -> Iterator[Element]:
    """Yield the headings that the outline names, where a line of their page is equal to the name."""
    ends = [*begins[1:], len(text)]
    try:
        entries = [
            (item.level, item.get_title(), destination.get_index())
            for item in islice(pdf.get_toc(), _MAX_OUTLINE)
            if (destination := item.get_dest()) is not None
        ]
    except Exception:  # noqa: BLE001  # a damaged outline; the text is there
        return
    for level, title, page in entries:
        words = title.split()
        if words and page is not None and 0 <= page < len(begins) and len(title) < 300:
            line = re.compile(
                r"^[^\w\n]*(?:[\d.]+\s+)?(" + r"\s+".join(map(re.escape, words)) + r")[ \t]*$", re.MULTILINE
            )
            if found := line.search(text, begins[page], ends[page]):
                yield Element("heading", found.start(1), found.end(1), level + 1, (found.span(1),))


def _images(page: Any) -> Iterator[bytes]:
    """Yield the images of a page that are neither very small nor very large."""
    from pypdfium2 import raw

    for image in islice(page.get_objects(filter=(raw.FPDF_PAGEOBJ_IMAGE,), max_depth=3), _MAX_OBJECTS):
        width, height = image.get_px_size()
        if min(width, height) >= _MIN_PIXELS and width * height <= _MAX_PIXELS and (data := _image_file(image)):
            yield data


def _image_file(image: Any) -> bytes:
    """Return an image as a JPEG or PNG file; b"" if the library cannot decode it."""
    import pypdfium2

    if image.get_filters(skip_simple=True) == ["DCTDecode"]:
        data = bytes(image.get_data(decode_simple=True))
        if media_type(data) == "image/jpeg":
            return data
    try:
        return _png(image.get_bitmap())
    except pypdfium2.PdfiumError:
        return b""


def _png(bitmap: Any) -> bytes:
    """Return the pixels of a bitmap as a PNG file."""
    import numpy as np

    lines = np.frombuffer(bitmap.buffer, dtype=np.uint8)[: bitmap.stride * bitmap.height]
    channels = bitmap.n_channels
    pixels = lines.reshape(bitmap.height, bitmap.stride)[:, : bitmap.width * channels]
    if channels > 1:
        pixels = pixels.reshape(bitmap.height, bitmap.width, channels)[:, :, 2::-1].reshape(bitmap.height, -1)
    rows = np.concatenate([np.zeros((bitmap.height, 1), np.uint8), pixels], axis=1)
    header = struct.pack(">IIBBBBB", bitmap.width, bitmap.height, 8, 0 if channels == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
