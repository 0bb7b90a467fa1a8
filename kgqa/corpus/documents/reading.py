"""Reads the documents of a source."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from kgqa.corpus.documents.document import Document
from kgqa.corpus.documents.formats.plain_text import read_plain_text
from kgqa.corpus.documents.limits import DEFAULT_LIMITS, Limits
from kgqa.corpus.documents.sources import Source, content_digest
from kgqa.errors import DocumentError

Report = Callable[[str, str], None]
"""Called with the name of a record that is left out, and the reason."""


def read_source(
    source: Source, *, limits: Limits = DEFAULT_LIMITS, report: Report = lambda name, reason: None
) -> Iterator[Document]:
    """Yield the documents of a source: one, or one per record of a JSON Lines file.

    Raises:
        DocumentError: The file cannot be read; other files are not affected.
    """
    try:
        data = source.path.read_bytes()
    except OSError as error:
        raise DocumentError(f"{source.name} cannot be read: {error.strerror or error}") from error
    content = read_plain_text(data, limits)
    yield Document(
        source.name,
        content.title or PurePosixPath(source.name).stem,
        "text/plain",
        content_digest(hashlib.sha256(data).hexdigest()),
        content.text,
        content.pages,
        content.elements,
        content.figures,
    )
