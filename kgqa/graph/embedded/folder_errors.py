"""The errors of graph folders that cannot be written."""

from __future__ import annotations

import errno
from pathlib import Path

from kgqa.errors import StoreUnavailable
from kgqa.storage.atomic_files import cannot_create


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
