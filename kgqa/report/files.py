"""Writes report files."""

from __future__ import annotations

from pathlib import Path

from kgqa.errors import KgqaError


class ReportError(KgqaError):
    """A report cannot be written."""


def write_file(path: Path, text: str) -> None:
    """Write a text file. Raises ReportError if the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise ReportError(f"{path} cannot be written: {error.strerror}.", "Choose another path.") from error
