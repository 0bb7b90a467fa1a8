"""The types of files that can be read, by the ends of their names."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from kgqa.corpus.documents.formats.content import media_type


@dataclass(frozen=True, slots=True)
class FileType:
    """A type of file. `format`: the reader in `kgqa.corpus.documents.formats`. `is_text`: whether it can hold keys."""

    format: str
    media_type: str
    is_text: bool = True


PLAIN_TEXT = FileType("plain_text", "text/plain")
_MARKDOWN = FileType("markdown", "text/markdown")
_HTML = FileType("html", "text/html")
_RECORDS = FileType("json_records", "application/jsonl")
_DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
FILE_TYPES = {
    **dict.fromkeys((".txt", ".text", ".rst", ".adoc", ".org", ".tex", ".csv", ".tsv", ".log"), PLAIN_TEXT),
    **dict.fromkeys((".md", ".markdown", ".mdown", ".mkd"), _MARKDOWN),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _HTML),
    **dict.fromkeys((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".json", ".json.gz"), _RECORDS),
    ".pdf": FileType("pdf", "application/pdf", is_text=False),
    ".docx": FileType("docx", _DOCX, is_text=False),
    **{
        suffix: FileType("images", f"image/{name}", is_text=False)
        for suffix, name in ((".png", "png"), (".jpg", "jpeg"), (".jpeg", "jpeg"), (".webp", "webp"), (".gif", "gif"))
    },
}
_BINARY = (b"%PDF-", b"PK\x03\x04", b"\x1f\x8b", b"\x7fELF", b"\xd0\xcf\x11\xe0")
_TEXT_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")


def file_type(name: str) -> FileType | None:
    """Return the type of a file by its name; None if it is unknown."""
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes[-2:]]
    for end in ("".join(suffixes), *suffixes[-1:]):
        if end in FILE_TYPES:
            return FILE_TYPES[end]
    return None


def is_binary(head: bytes) -> bool:
    """Return whether the first bytes of a file are not text."""
    if head.startswith(_BINARY) or media_type(head):
        return True
    return b"\0" in head and not head.startswith(_TEXT_MARKS)
