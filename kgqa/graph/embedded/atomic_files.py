"""Writes the small files of a graph folder atomically, never through a symbolic link, and creates error messages."""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from kgqa.errors import StoreUnavailable


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file atomically. Raises the same errors as `write_atomically`."""
    write_atomically(path, json.dumps(data, indent=1, ensure_ascii=False))


def write_atomically(path: Path, text: str) -> None:
    """Replace a file atomically. If `path` is a symbolic link, the link itself is replaced.

    Raises:
        OSError: the file cannot be written; the old file is unchanged. The error's `filename` is `path`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        # Python decodes file names that are not UTF-8 with lone surrogates; these are written as JSON escapes
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace", opener=open_no_link) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_error(path: Path, error: OSError) -> StoreUnavailable:
    """Return the error for a graph folder that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreUnavailable(f"No space left on the disk of {path}. Free some space and try again.")
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StoreUnavailable(f"Too many open files to write to {path}. Raise the limit: ulimit -n 4096")
    return no_permission(path, error)


def no_permission(path: Path, error: OSError) -> StoreUnavailable:
    """Return the error for a folder without write permission."""
    return StoreUnavailable(
        f"No permission to write to {path} ({error.strerror}). Make the folder writable for the user who runs kgqa."
    )


def link_error(path: Path | str) -> StoreUnavailable:
    """Return the error for a symbolic link in a graph folder."""
    return StoreUnavailable(
        f"{path} is a symbolic link, and kgqa does not write to a graph folder that contains links. Remove the link, "
        "or load the data into another folder."
    )


def open_no_link(path: str, flags: int) -> int:
    """Open a file for `open(opener=...)`; raise OSError (ELOOP) if it is a symbolic link."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
