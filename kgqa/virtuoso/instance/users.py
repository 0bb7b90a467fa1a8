"""Sets passwords, creates the user who may update graphs over HTTP, and closes HTTP paths of the server."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from pathlib import Path

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.isql import SqlAddress, run_sql

HAS_ROLE = "U0013"
SPARQL_PATHS = ("/sparql", "/sparql-auth")
Sql = Callable[..., list[tuple[str, ...]]]


def new_password() -> str:
    """Return 160 random bits as a hexadecimal password, because such digits need no quoting in SQL, shell or files."""
    return secrets.token_hex(20)


def replace_dav_password(address: SqlAddress) -> None:
    """Replace the password of the user dav, who may write files over HTTP, if it is still the default."""
    with contextlib.suppress(SqlError):  # the user has a different password or does not exist
        run_sql(address, "USER_CHANGE_PASSWORD(?, ?, ?)", ("dav", "dav", new_password()))


def close_paths(address: SqlAddress) -> None:
    """Remove all HTTP paths except those of SPARQL.

    A new server offers a proxy and other services to everybody. The next start restores some of them, but without
    privileges.
    """
    paths = run_sql(address, "select HP_HOST, HP_LISTEN_HOST, HP_LPATH from DB.DBA.HTTP_PATH")
    for host, listens_on, path in paths:
        if path not in SPARQL_PATHS:
            run_sql(address, "DB.DBA.VHOST_REMOVE(vhost=>?, lhost=>?, lpath=>?)", (host, listens_on, path))


def allow_updates(folder: ServerFolder, sql: Sql, user: str, password: str | None) -> Path:
    """Create a user who may update graphs, or set the password of an existing one; see `Server.allow_updates`."""
    if not (user.isascii() and user.replace("_", "").isalnum()) or user.lower() in ("dba", "dav", "nobody"):
        raise ServerError(
            f"{user!r} cannot be used as a user name.",
            "Use only letters, digits and underscores, and none of the server's own names dba, dav and nobody.",
        )
    password = password or new_password()
    file = folder.write_private(f"password-{user}", password + "\n")
    if not sql("select 1 from DB.DBA.SYS_USERS where U_NAME = ?", (user,)):
        sql("DB.DBA.USER_CREATE(?, ?)", (user, password))
    else:
        sql("USER_SET_PASSWORD(?, ?)", (user, password))
    try:
        sql(f'grant SPARQL_UPDATE to "{user}"')
    except SqlError as error:
        if HAS_ROLE not in str(error):
            raise
    return file
