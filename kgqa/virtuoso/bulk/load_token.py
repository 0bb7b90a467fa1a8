"""Records loads in the database itself, so that a load is resumed only in its own database.

The journal of a load is a file beside the database and cannot tell whether the database was replaced by a new, adopted
or restored one. So every group on disk is recorded in a table of the database too.
"""

from __future__ import annotations

import secrets
from contextlib import suppress

from kgqa.errors import LoadError, ServerError
from kgqa.virtuoso.server.server import Server

TABLE = "DB.DBA.KGQA_LOADS"


def new_token() -> str:
    """Return a unique identifier for a load."""
    return secrets.token_hex(8)


def record(server: Server, token: str, done: int) -> None:
    """Record in the database that `done` groups or chunks of a load are on disk, before the journal does.

    A checkpoint before this has written them, and this record is written by the next one. So any copy or checkpoint of
    the database with this record has the groups too, and the database never knows less than the journal.
    """
    if not _exists(server):
        server.sql(f"create table {TABLE} (token varchar primary key, done integer)")
    server.sql(f"insert replacing {TABLE} (token, done) values (?, ?)", (token, done))
    server.checkpoint()


def check(server: Server, token: str, done: int) -> None:
    """Check that the database has what the journal of a load lists as on disk.

    Raises:
        LoadError: it has less: it is another database or an older copy.
    """
    # a load with nothing on disk skips nothing and can resume in any database
    if done == 0:
        return
    rows = server.sql(f"select done from {TABLE} where token = ?", (token,)) if _exists(server) else []
    if not rows or int(rows[0][0]) < done:
        raise LoadError(
            "The database does not contain what the interrupted load had finished: it is another database or an older "
            "copy. Load everything again: --restart"
        )


def forget(server: Server, token: str) -> None:
    """Delete the record of a finished load. A record that stays does no harm, so a failing server is ignored."""
    with suppress(ServerError):
        if _exists(server):
            server.sql(f"delete from {TABLE} where token = ?", (token,))


def _exists(server: Server) -> bool:
    return bool(server.sql("select 1 from DB.DBA.SYS_KEYS where KEY_TABLE = ? and KEY_IS_MAIN = 1", (TABLE,)))
