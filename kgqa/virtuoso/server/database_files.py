"""Checks database files before the server opens them.

Without these checks the server would overwrite a file that it does not recognise with a new database, and silently
skip a damaged transaction log.
"""

from __future__ import annotations

import re
from pathlib import Path

from kgqa.errors import ServerError
from kgqa.virtuoso.instance.processes import is_virtuoso, lock_owner, processes_with_open

PAGE_BYTES = 8192
# the first page has the format version at byte 28, such as 07.20, and the build at byte 40
_SIGNATURE = re.compile(rb".{28}\d\d\.\d\d\0.{6}\d{4}\0", re.DOTALL)
LOG_SIGNATURE = b"byte_order_check"


def check_database(database: Path) -> None:
    """Check that the first bytes of a file are those of a Virtuoso database, and that no other server has it open.

    Raises:
        ServerError: the file cannot be read, is not a Virtuoso database, is truncated, or is open in another server; or
            its transaction log is damaged at its beginning.
    """
    try:
        with open(database, "rb") as file:
            head = file.read(64)
        size = database.stat().st_size
    except OSError as error:
        raise ServerError(f"{database} cannot be read: {error.strerror}.", "Give the path of a virtuoso.db.") from error
    if not _SIGNATURE.match(head):
        raise ServerError(
            f"{database} is not a Virtuoso database, or its first page is damaged; it was not changed.",
            "Restore it from a backup, or start with a new database in another folder: --folder /path",
        )
    if size % PAGE_BYTES:
        raise ServerError(
            f"{database} is truncated: its size is not a multiple of {PAGE_BYTES} bytes.", "Restore it from a backup."
        )
    changes = database.with_suffix(".trx")
    try:
        with open(changes, "rb") as file:
            head = file.read(256)
    except FileNotFoundError:
        head = b""
    except OSError as error:
        raise ServerError(
            f"{changes} cannot be read: {error.strerror}.", "Make it readable for the user who runs kgqa."
        ) from error
    if head and LOG_SIGNATURE not in head:
        raise ServerError(
            f"{changes} is damaged. This transaction log has the changes since the last checkpoint, which the server "
            "would silently skip.",
            f"To continue without these changes: mv {changes} {changes}.damaged",
        )
    owner = lock_owner(database.with_suffix(".lck"))
    # only another server does harm; other programs, such as one that copies the file, may have it open
    others = [owner] if owner else [other for other in processes_with_open(database) if is_virtuoso(other.pid)]
    if others:
        raise ServerError(
            f"{database} is open in {', '.join(map(str, others))}. Two servers would destroy the database.",
            f"Stop the other server first, which shuts down properly with: kill {others[0].pid}",
        )


def check_no_changes(database: Path) -> None:
    """Raise ServerError if there is a transaction log without its database: a new database cannot use that log."""
    changes = database.with_suffix(".trx")
    if changes.exists() and changes.stat().st_size:
        raise ServerError(
            f"There is a transaction log, {changes}, but no database.",
            "Restore the database beside the log. To start "
            f"with a new database instead, move the log away: mv {changes} {changes}.old",
        )
