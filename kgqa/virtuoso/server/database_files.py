"""Checks database files before the server opens them.

The server itself would overwrite a file it does not recognise with a new database, and silently skip a damaged
transaction log.
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
    """Check that this is a Virtuoso database that no other server has open; only its first bytes are read.

    Raises:
        ServerError: it is not.
    """
    try:
        with open(database, "rb") as file:
            head = file.read(64)
        size = database.stat().st_size
    except OSError as error:
        raise ServerError(f"{database} cannot be read: {error.strerror}. Give the path of a virtuoso.db.") from error
    if not _SIGNATURE.match(head):
        raise ServerError(
            f"{database} is not a Virtuoso database, or its first page is damaged; it was not changed. Restore it "
            f"from a backup, or start with a new database in another folder: --folder /path"
        )
    if size % PAGE_BYTES:
        raise ServerError(
            f"{database} is truncated: its size is not a multiple of {PAGE_BYTES} bytes. Restore it from a backup."
        )
    check_changes(database.with_suffix(".trx"))
    check_unused(database)


def check_changes(changes: Path) -> None:
    """Raise ServerError if the transaction log is damaged at its beginning."""
    try:
        with open(changes, "rb") as file:
            head = file.read(256)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ServerError(f"{changes} cannot be read: {error.strerror}. Restore its permissions.") from error
    if head and LOG_SIGNATURE not in head:
        raise ServerError(
            f"{changes} is damaged. It holds the changes since the last checkpoint, and the server would skip it "
            f"silently. To continue without these changes, move it away: mv {changes} {changes}.damaged"
        )


def check_no_changes(database: Path) -> None:
    """Raise ServerError if there is a transaction log without its database; it would not fit a new one."""
    changes = database.with_suffix(".trx")
    if changes.exists() and changes.stat().st_size:
        raise ServerError(
            f"There is a transaction log, {changes}, but no database. Restore the database beside it, or, to start "
            f"with a new one, move the log away: mv {changes} {changes}.old"
        )


def check_unused(database: Path) -> None:
    """Raise ServerError if a server has this database open, by its lock or by the file itself."""
    owner = lock_owner(database.with_suffix(".lck"))
    # a program that copies the file may have it open too; only another server does harm
    others = [owner] if owner else [other for other in processes_with_open(database) if is_virtuoso(other.pid)]
    if others:
        raise ServerError(
            f"{database} is open in {', '.join(map(str, others))}. Two servers destroy a database: stop the other one "
            f"first (kill {others[0].pid} shuts Virtuoso down properly)."
        )
