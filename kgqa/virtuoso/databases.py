"""Creates the database of a server, or adopts an existing one: replaces known passwords and closes other services.

Virtuoso creates a database with the logins dba/dba and dav/dav, and offers a proxy and other services to everybody. A
database is therefore first opened on random ports of the loopback interface, for about a second.
"""

from __future__ import annotations

import re
import secrets
import shutil
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.configuration import ServerOptions, render
from kgqa.virtuoso.folder import ServerFolder
from kgqa.virtuoso.isql import BAD_LOGIN, Login, run_sql
from kgqa.virtuoso.process import Notify, end_process, free_port, is_running, launch, lock_owner, wait_for_end

PASSWORD_VARIABLE = "KGQA_VIRTUOSO_DBA_PASSWORD"
DEFAULT_PASSWORD = "dba"
SPARQL_PATHS = ("/sparql", "/sparql-auth")
# a new database takes 55 MB, and its first checkpoints another 55 MB
NEW_DATABASE_BYTES = 120_000_000
SHUTDOWN_SECONDS = 120.0
# the first page has the format version at byte 28, such as 07.20, and the build at byte 40
_SIGNATURE = re.compile(rb".{28}\d\d\.\d\d\0.{6}\d{4}\0", re.DOTALL)


def new_password() -> str:
    """Return 160 random bits as a hexadecimal password, because such digits need no quoting in SQL, shell or files."""
    return secrets.token_hex(20)


def create_database(folder: ServerFolder, options: ServerOptions, *, notify: Notify) -> None:
    """Create the database and the password of a server's folder; what an interrupted creation has left is removed.

    Raises:
        ServerError: the disk is full, or the server did not start.
    """
    notify("Creating a new database ...")
    new = folder.path / "new"
    if owner := lock_owner(new / "virtuoso.lck"):
        end_process(owner, by=signal.SIGKILL)
    shutil.rmtree(new, ignore_errors=True)
    free = shutil.disk_usage(folder.path).free
    if free < NEW_DATABASE_BYTES:
        raise ServerError(
            f"The disk is full: {free / 1e6:,.0f} MB are free at {folder.path}, too little for a new database.",
            "Free some space, or choose another folder: --folder /path",
        )
    try:
        new.mkdir()
        database = new / "virtuoso.db"
        # without the rule that puts every literal into the full-text index; `index_names` adds literals
        password = _secure(
            folder,
            replace(options, database=str(database)),
            [DEFAULT_PASSWORD],
            ["DB.DBA.RDF_OBJ_FT_RULE_DEL('', '', 'ALL')"],
        )
        folder.write("password", password + "\n")
        database.replace(folder.own_database)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def adopt_database(folder: ServerFolder, database: Path, passwords: Iterable[str], *, notify: Notify) -> None:
    """Make a stopped server use this database file from its next start, without moving the file.

    Args:
        database: the file, with its transaction log (.trx) beside it, or the one in the server's folder.
        passwords: passwords to try for the user dba. The default password `dba` is replaced by a random one.

    Raises:
        ServerError: the file is not a database, is open in another server, or refuses all passwords.
    """
    database = database.resolve()
    check_database(database)
    notify(f"Opening {database} to check its password. This takes a while if its transaction log is large.")
    options = replace(folder.options(), database=str(database))
    password = _secure(folder, options, passwords)
    own = database == folder.own_database.resolve()
    folder.write_json("server.json", replace(options, database="" if own else str(database)))
    folder.write(folder.password_file.name, password + "\n")


def check_database(database: Path) -> None:
    """Check that a file begins like a Virtuoso database, because the server would overwrite any other file.

    Raises:
        ServerError: the file cannot be read, is not a Virtuoso database, or is open in another server.
    """
    try:
        with open(database, "rb") as file:
            head = file.read(64)
    except OSError as error:
        raise ServerError(f"{database} cannot be read: {error.strerror}.", "Give the path of a virtuoso.db.") from error
    if not _SIGNATURE.match(head):
        raise ServerError(
            f"{database} is not a Virtuoso database, or its first page is damaged; it was not changed.",
            "Restore it from a backup, or start with a new database in another folder: --folder /path",
        )
    if owner := lock_owner(database.with_suffix(".lck")):
        raise ServerError(
            f"{database} is open in another server (process {owner}). Two servers would destroy the database.",
            f"Stop the other server first, which shuts down properly with: kill {owner}",
        )


def _secure(
    folder: ServerFolder, options: ServerOptions, passwords: Iterable[str], statements: Iterable[str] = ()
) -> str:
    """Open a database on random loopback ports, replace default passwords, and close all HTTP paths except SPARQL.

    Args:
        statements: SQL statements to run too.

    Returns:
        The password of the user dba.
    """
    options = replace(
        options, sql_port=free_port(), http_port=free_port(), bind="127.0.0.1", memory_share=0.001
    )
    ini = folder.write("first.ini", render(folder.path, options))
    pid = None
    try:
        pid = launch(folder, ini, notify=lambda text: None)
        login = _login(options, passwords)
        for host, address, path in run_sql(login, "select HP_HOST, HP_LISTEN_HOST, HP_LPATH from DB.DBA.HTTP_PATH"):
            if path not in SPARQL_PATHS:
                run_sql(login, "DB.DBA.VHOST_REMOVE(vhost=>?, lhost=>?, lpath=>?)", (host, address, path))
        for statement in statements:
            run_sql(login, statement)
        with suppress(SqlError):  # the user dav has a different password or does not exist
            run_sql(login, "USER_CHANGE_PASSWORD(?, ?, ?)", ("dav", "dav", new_password()))
        if login.password == DEFAULT_PASSWORD:
            login = replace(login, password=new_password())
            run_sql(Login(options.sql_port, DEFAULT_PASSWORD), "USER_SET_PASSWORD(?, ?)", ("dba", login.password))
        with suppress(SqlError):  # the shutdown breaks the connection
            run_sql(login, "shutdown")
        wait_for_end(pid, timeout=SHUTDOWN_SECONDS)
        return login.password
    finally:
        ini.unlink(missing_ok=True)
        if pid and is_running(pid):
            end_process(pid)


def _login(options: ServerOptions, passwords: Iterable[str]) -> Login:
    for password in passwords:
        login = Login(options.sql_port, password)
        try:
            run_sql(login, "select 1")
            return login
        except SqlError as error:
            if error.state != BAD_LOGIN:
                raise
    raise ServerError(
        f"The database {options.database} refuses the password of its user dba.",
        f"Set the environment variable {PASSWORD_VARIABLE} to this password, or enter the password when asked.",
    )
