"""Writes the small files of a graph folder atomically, never through a symbolic link, and creates error messages."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

from kgqa.errors import StoreUnavailable
from kgqa.storage.atomic_files import cannot_create, replace_file


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file atomically. Raises the same errors as `write_atomically`."""
    write_atomically(path, json.dumps(data, indent=1, ensure_ascii=False))


def write_atomically(path: Path, text: str) -> None:
    """Replace a text file atomically. Raises the same errors as `replace_file`."""
    # Python decodes file names that are not UTF-8 with lone surrogates; these are written as JSON escapes
    replace_file(path, [text.encode("utf-8", "backslashreplace")])


def write_error(path: Path, error: OSError) -> StoreUnavailable:
    """Return the error for a graph folder that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable(f"No space left on the disk of {path}.", "Free some space and try again.")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StoreUnavailable(f"Too many open files to write to {path}.", "Raise the limit: ulimit -n 4096")
    if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
        return StoreUnavailable(cannot_create(path, error), "Choose another folder for the graph.")
    return no_permission(path, error)


def no_permission(path: Path, error: OSError) -> StoreUnavailable:
    """Return the error for a folder without write permission."""
    return StoreUnavailable(
        f"No permission to write to {path} ({error.strerror}).", "Make the folder writable for the user who runs kgqa."
    )


def link_error(path: Path | str) -> StoreUnavailable:
    """Return the error for a symbolic link in a graph folder."""
    return StoreUnavailable(
        f"{path} is a symbolic link, and kgqa does not write to a graph folder that contains links.",
        "Remove the link, or load the data into another folder.",
    )
