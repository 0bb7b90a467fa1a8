"""Checks a ZIP archive before it is unpacked, so that a small file can't fill the memory."""

from __future__ import annotations

import io
import zipfile
import zlib

from kgqa.corpus.documents.limits import Limits
from kgqa.errors import DocumentError

_RATIO_FROM = 1 << 20
_DECLARATION = b"<!DOCTYPE"


def check_archive(data: bytes, limits: Limits) -> None:
    """Check the entries of an archive, and that none of its XML files declares a document type or entities.

    A ZIP reader never reads more of an entry than the size that the archive declares.

    Raises:
        DocumentError: The archive is damaged, encrypted, or larger than the limits.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            if len(entries) > limits.archive_entries:
                raise DocumentError(f"the archive has more than {limits.archive_entries:,} entries")
            if sum(entry.file_size for entry in entries) > limits.archive_bytes:
                raise DocumentError(f"the archive has more than {limits.archive_bytes:,} bytes after decompression")
            for entry in entries:
                if entry.flag_bits & 1:
                    raise DocumentError("it is protected by a password")
                if entry.file_size > max(_RATIO_FROM, entry.compress_size * limits.archive_ratio):
                    raise DocumentError(f"an entry is compressed more than {limits.archive_ratio} to 1")
            for entry in entries:
                if entry.filename.endswith((".xml", ".rels")):
                    _check_xml(archive.read(entry))
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError, zlib.error) as error:
        raise DocumentError("the archive is damaged") from error


def _check_xml(xml: bytes) -> None:
    """Refuse document type declarations in any encoding; Office files never have them."""
    if _DECLARATION in xml or _DECLARATION in xml.replace(b"\0", b""):
        raise DocumentError("its XML declares a document type")
