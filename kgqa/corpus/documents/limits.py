"""Limits for files that are read, so that no file takes all memory or never ends."""

from __future__ import annotations

from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that is read.

    Attributes:
        files: Number of files that are found.
        file_bytes: Size of a file that is read whole.
        stream_bytes: Size of a file that is read record by record, after decompression.
        record_bytes: Size of one record of such a file.
        characters: Length of the text of one document.
        elements: Number of elements of one document.
        archive_bytes: Size of all files in an archive, decompressed.
        archive_entries: Number of files in an archive.
        archive_ratio: Decompressed size of a file in an archive, divided by its compressed size.
        pages: Number of pages.
        figures: Number of images in one document.
        figure_bytes: Size of one image.
        all_figure_bytes: Size of all images of one document.
        seconds: Time for parsing one file.
        memory_bytes: Memory for parsing one file.
    """

    files: int = 2_000_000
    file_bytes: int = 64 * _MIB
    stream_bytes: int = 64 << 30
    record_bytes: int = 16 * _MIB
    characters: int = 32 * _MIB
    elements: int = 200_000
    archive_bytes: int = 256 * _MIB
    archive_entries: int = 10_000
    archive_ratio: int = 200
    pages: int = 5_000
    figures: int = 100
    figure_bytes: int = 8 * _MIB
    all_figure_bytes: int = 64 * _MIB
    seconds: float = 60.0
    memory_bytes: int = 1 << 30


DEFAULT_LIMITS = Limits()
