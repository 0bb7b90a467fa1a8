"""Reads the documents of a source."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from kgqa.corpus.documents.credentials import credential_in
from kgqa.corpus.documents.document import Document
from kgqa.corpus.documents.formats.content import Content
from kgqa.corpus.documents.formats.images import read_image
from kgqa.corpus.documents.formats.json_records import read_records
from kgqa.corpus.documents.formats.lines import key_value_lines
from kgqa.corpus.documents.formats.plain_text import read_plain_text
from kgqa.corpus.documents.limits import DEFAULT_LIMITS, Limits
from kgqa.corpus.documents.parsers import parse
from kgqa.corpus.documents.sources import Source, content_digest
from kgqa.errors import DocumentError

Report = Callable[[str, str], None]
"""Called with the place of a record that is left out, `FILE, line 7`, and the reason."""
_IN_THIS_PROCESS = {"plain_text": read_plain_text, "images": read_image}


def read_source(
    source: Source,
    *,
    limits: Limits = DEFAULT_LIMITS,
    keys: bool = False,
    report: Report = lambda place, reason: None,
) -> Iterator[Document]:
    """Yield the documents of a source: one, or one per record of a JSON Lines file.

    Args:
        source: The file.
        limits: The largest sizes.
        keys: Whether to read texts that look as if they contained keys or passwords.
        report: Called for each record of a JSON Lines file that is left out.

    Raises:
        DocumentError: The file cannot be read, or its text contains what looks like a key or a password; other files
            are not affected.
    """
    try:
        if source.file_type.format == "json_records":
            yield from _records(source, limits, keys, report)
        else:
            yield _document(source, limits, keys)
    except DocumentError as error:
        raise DocumentError(error.reason, source.name) from error


def _document(source: Source, limits: Limits, keys: bool) -> Document:
    data = _data(source, limits)
    format_ = source.file_type.format
    read = _IN_THIS_PROCESS.get(format_)
    content: Content = read(data, limits) if read else parse(format_, data, limits)
    if not keys and (found := credential_in(content.text)):
        raise DocumentError(f"it contains {found}")
    return Document(
        source.name,
        content.title or PurePosixPath(source.name).stem,
        content.figures[0].media_type if format_ == "images" else source.file_type.media_type,
        content_digest(hashlib.sha256(data).hexdigest()),
        content.text,
        content.pages,
        content.elements,
        content.figures,
    )


def _data(source: Source, limits: Limits) -> bytes:
    with source.open() as file:
        try:
            data = file.read(limits.file_bytes + 1)
        except OSError as error:
            raise DocumentError((error.strerror or str(error)).lower()) from error
    if len(data) > limits.file_bytes:
        raise DocumentError(f"it is larger than {limits.file_bytes:,} bytes")
    return data


def _records(source: Source, limits: Limits, keys: bool, report: Report) -> Iterator[Document]:
    seen: set[str] = set()
    with source.open() as file:
        for record in read_records(
            file, source.name, limits, lambda place, why: report(f"{source.name}, {place}", why)
        ):
            place = f"{source.name}, {record.place}"
            digest = content_digest(record.title, record.text)
            name = f"{source.name}#{record.id or digest}"
            if len(record.text) > limits.characters:
                report(place, f"the text has more than {limits.characters:,} characters")
            elif name in seen:
                report(place, f"the id {record.id} occurs twice" if record.id else "the record occurs twice")
            elif not keys and (found := credential_in(record.text)):
                report(place, f"it contains {found}")
            else:
                seen.add(name)
                title = record.title or record.id or PurePosixPath(source.name.removesuffix(".gz")).stem
                elements = key_value_lines(record.text) if "\n" in record.text else ()
                yield Document(name, title, "text/plain", digest, record.text, elements=tuple(elements))
