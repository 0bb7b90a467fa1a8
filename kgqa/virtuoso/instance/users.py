"""Users of the server: passwords, and the one who may change graphs over HTTP."""

from __future__ import annotations

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
    """160 random bits in letters and digits: nothing a client, a shell or a settings file could misread."""
    return secrets.token_hex(20)


def replace_dav_password(address: SqlAddress) -> None:
    """Replace the password `dav` of the user dav, who may write files over HTTP; another password is left alone."""
    try:
        run_sql(address, "USER_CHANGE_PASSWORD(?, ?, ?)", ("dav", "dav", new_password()))
    except SqlError:
        pass  # it is another one already, or there is no such user


def close_paths(address: SqlAddress) -> None:
    """Take away every HTTP path but those of SPARQL: the server brings a proxy and other services along, which it
    offers to everybody. Some of them come back at the next start, those without rights of their own.
    """
    paths = run_sql(address, "select HP_HOST, HP_LISTEN_HOST, HP_LPATH from DB.DBA.HTTP_PATH")
    for host, listens_on, path in paths:
        if path not in SPARQL_PATHS:
            run_sql(address, "DB.DBA.VHOST_REMOVE(vhost=>?, lhost=>?, lpath=>?)", (host, listens_on, path))


def allow_updates(folder: ServerFolder, sql: Sql, user: str, password: str | None) -> Path:
    """See `Server.allow_updates`."""
    if not (user.isascii() and user.replace("_", "").isalnum()) or user.lower() in ("dba", "dav", "nobody"):
        raise ServerError(
            f"The name of a user is letters, digits and underscores, and not dba: {user!r} cannot be used."
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
