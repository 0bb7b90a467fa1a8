"""What a database knows of the loads into it, so that a load is gone on with in no other one.

A load is noted in a file beside the database, and that file cannot tell whether the database has been replaced by a
fresh, an adopted or a restored one. So every group that is on disk is noted in the database too, in a table of ours.
"""

from __future__ import annotations

import secrets
from contextlib import suppress

from kgqa.errors import LoadError, ServerError
from kgqa.virtuoso.server.server import Server

TABLE = "DB.DBA.KGQA_LOADS"


def new_token() -> str:
    """The name of a load, which no other load has."""
    return secrets.token_hex(8)


def note(server: Server, token: str, done: int) -> None:
    """Note in the database that so many groups or chunks of a load are on disk; before the journal says so.

    They were written by a checkpoint before this, and this is written by the next one. Whatever copy or checkpoint of
    the database has this note therefore has what it speaks of, and the database never knows less than the journal.
    """
    if not _exists(server):
        server.sql(f"create table {TABLE} (token varchar primary key, done integer)")
    server.sql(f"insert replacing {TABLE} (token, done) values (?, ?)", (token, done))
    server.checkpoint()


def check(server: Server, token: str, done: int) -> None:
    """Hold what the journal of a load says is on disk against what the database knows.

    Raises:
        LoadError: the database knows of less. It is another one, or an older copy.
    """
    # nothing is skipped of a load that has nothing on disk, so any database will do
    if done == 0:
        return
    rows = server.sql(f"select done from {TABLE} where token = ?", (token,)) if _exists(server) else []
    if not rows or int(rows[0][0]) < done:
        raise LoadError(
            "The database does not have what the interrupted load had done: it is another one, or an older copy. Load "
            "all of it anew: --restart"
        )


def forget(server: Server, token: str) -> None:
    """The load has ended. A note that stays does no harm, so a server that is gone by now is no error."""
    with suppress(ServerError):
        if _exists(server):
            server.sql(f"delete from {TABLE} where token = ?", (token,))


def _exists(server: Server) -> bool:
    return bool(server.sql("select 1 from DB.DBA.SYS_KEYS where KEY_TABLE = ? and KEY_IS_MAIN = 1", (TABLE,)))
