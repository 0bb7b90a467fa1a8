"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any


def replace_file(path: Path, parts: Iterable[bytes], *, mode: int = 0o666, sync: bool = True) -> None:
    """Replace a file atomically. If `path` is a symbolic link, the link itself is replaced.

    A process that is killed may leave its temporary file, `.NAME.PROCESS-THREAD`, in the same folder.

    Args:
        parts: the new content.
        mode: permissions of the new file, reduced by the umask.
        sync: whether the file is on the disk when this function returns.

    Raises:
        OSError: the file cannot be written; the old file is unchanged. The error's `filename` is `path`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        temporary.unlink(missing_ok=True)  # left by a killed process with the same id
        with open(temporary, "xb", opener=lambda name, _: os.open(name, flags, mode)) as file:
            file.writelines(parts)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if sync:
            sync_to_disk(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()  # an incomplete file would take up space on a full disk
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def write_json(path: Path, data: Any) -> None:
    """Write a JSON file atomically. Raises the same errors as `replace_file`."""
    # Python decodes file names that are not UTF-8 with lone surrogates; these are written as JSON escapes
    text = json.dumps(data, indent=1, ensure_ascii=False)
    replace_file(path, [text.encode("utf-8", "backslashreplace")])


def cannot_create(path: Path, error: OSError) -> str:
    """Return a sentence that says why a folder or a file was not created or written."""
    # a file system without files of users, such as /proc, says "No such file or directory"
    if error.errno == errno.ENOENT:
        return f"{path} cannot be created."
    return f"{path} cannot be written: {error.strerror or error}."


def sync_to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
