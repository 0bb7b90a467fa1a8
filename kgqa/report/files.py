"""Writes the files of a report."""

from __future__ import annotations

from pathlib import Path

from kgqa.errors import KgqaError


class ReportError(KgqaError):
    """A report cannot be written. The message names the place and the next step."""


def write_file(path: Path, text: str) -> None:
    """Raises ReportError where it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise ReportError(f"{path} cannot be written: {error.strerror}. Choose another place.") from error
