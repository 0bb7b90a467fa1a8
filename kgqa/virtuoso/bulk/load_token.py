"""Records in the database itself which loads it contains, so that a load is resumed only in its own database.

The journal of a load is a file outside the database, so it does not change when the database is replaced by a new,
adopted or restored one. For this reason, each group on disk is also recorded in a table of the database.
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
    """Record in the database that `done` groups or chunks of a load are on disk.

    Call this function after a checkpoint: each copy of the database that has this record then also has the groups. Call
    it before the journal is saved: the database then never records fewer groups than the journal.
    """
    if not _exists(server):
        server.sql(f"create table {TABLE} (token varchar primary key, done integer)")
    server.sql(f"insert replacing {TABLE} (token, done) values (?, ?)", (token, done))
    server.checkpoint()


def check(server: Server, token: str, done: int) -> None:
    """Check that the database contains the groups that the journal of a load records as loaded.

    Raises:
        LoadError: groups are missing, because this is a different database or an older copy of the database.
    """
    # a load without finished groups loads everything, so it can be resumed in any database
    if done == 0:
        return
    rows = server.sql(f"select done from {TABLE} where token = ?", (token,)) if _exists(server) else []
    if not rows or int(rows[0][0]) < done:
        raise LoadError(
            "The server's database lacks triples that the interrupted load had finished: it is another database or an "
            "older copy.",
            "Load all files again: --restart",
        )


def forget(server: Server, token: str) -> None:
    """Delete the record of a finished load; errors of the server are ignored, because an old record does no harm."""
    with suppress(ServerError):
        if _exists(server):
            server.sql(f"delete from {TABLE} where token = ?", (token,))


def _exists(server: Server) -> bool:
    return bool(server.sql("select 1 from DB.DBA.SYS_KEYS where KEY_TABLE = ? and KEY_IS_MAIN = 1", (TABLE,)))
