"""Looks at database files before the server does: it makes a new database over whatever it does not recognise, and
passes over a damaged log of changes in silence.
"""

from __future__ import annotations

import re
from pathlib import Path

from kgqa.errors import ServerError
from kgqa.virtuoso.instance.processes import holders, is_virtuoso, lock_owner

PAGE_BYTES = 8192
# the first page holds the version of the server's format at byte 28, such as 07.20, and its build at byte 40
_SIGNATURE = re.compile(rb".{28}\d\d\.\d\d\0.{6}\d{4}\0", re.DOTALL)
LOG_SIGNATURE = b"byte_order_check"


def check_database(database: Path) -> None:
    """Raises ServerError unless this is a Virtuoso database that no other server has open.

    Nothing is written, and of a large file only the first bytes are read.
    """
    try:
        with open(database, "rb") as file:
            head = file.read(64)
        size = database.stat().st_size
    except OSError as error:
        raise ServerError(f"{database} cannot be read: {error.strerror}. Give the path of a virtuoso.db.") from error
    if not _SIGNATURE.match(head):
        raise ServerError(
            f"{database} is not a Virtuoso database, or its first page is damaged; it was left as it is. Take a copy "
            f"that is whole, or start with a new database in another folder: --folder /path"
        )
    if size % PAGE_BYTES:
        raise ServerError(
            f"{database} was cut short: its size is not a multiple of {PAGE_BYTES} bytes. Take a copy that is whole."
        )
    check_changes(database.with_suffix(".trx"))
    check_unused(database)


def check_changes(changes: Path) -> None:
    """Raises ServerError if the log of changes is damaged at its beginning."""
    try:
        with open(changes, "rb") as file:
            head = file.read(256)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ServerError(f"{changes} cannot be read: {error.strerror}. Give it back its permissions.") from error
    if head and LOG_SIGNATURE not in head:
        raise ServerError(
            f"{changes} is damaged. It holds what changed since the last checkpoint, and the server would pass over it "
            f"in silence. To go on without those changes, move it away: mv {changes} {changes}.damaged"
        )


def check_no_changes(database: Path) -> None:
    """Raises ServerError if changes are left of a database that is not there: a new one would not fit them."""
    changes = database.with_suffix(".trx")
    if changes.exists() and changes.stat().st_size:
        raise ServerError(
            f"There is a log of changes, {changes}, but no database. Put the database back beside it, or, to begin "
            f"with a new one, move the log away: mv {changes} {changes}.old"
        )


def check_unused(database: Path) -> None:
    """Raises ServerError if a server has this database open, by its lock or by the file itself."""
    owner = lock_owner(database.with_suffix(".lck"))
    # whoever copies the file may have it open too; only a server does harm
    others = [owner] if owner else [other for other in holders(database) if is_virtuoso(other.pid)]
    if others:
        raise ServerError(
            f"{database} is open in {', '.join(map(str, others))}. Two servers on one database destroy it: stop the "
            f"other first (kill {others[0].pid} ends a Virtuoso properly)."
        )
