"""Prepares the database of a server: creates a new one, or replaces the known passwords of an existing one.

Virtuoso creates a database with the logins dba/dba and dav/dav, and offers a proxy and other services to everybody. A
database is therefore first opened on random ports of the loopback interface, for about a second.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
from contextlib import suppress
from dataclasses import replace

from kgqa.errors import ServerError, SqlError
from kgqa.text.hints import Option
from kgqa.virtuoso.folder import ServerFolder
from kgqa.virtuoso.isql import BAD_LOGIN, Session
from kgqa.virtuoso.process import Notify, end_process, free_port, launch, lock_owner

PASSWORD_VARIABLE = "KGQA_VIRTUOSO_DBA_PASSWORD"
DEFAULT_PASSWORD = "dba"
# the first page has the format version at byte 28, such as 07.20, and the build at byte 40
_SIGNATURE = re.compile(rb".{28}\d\d\.\d\d\0.{6}\d{4}\0", re.DOTALL)


def new_password() -> str:
    """Return 160 random bits as a hexadecimal password, because such digits need no quoting in SQL, shell or files."""
    return secrets.token_hex(20)


def prepare_database(folder: ServerFolder, *, notify: Notify) -> None:
    """Create the database if the folder has none, and replace default passwords at the first use of a database.

    Raises:
        ServerError: the file is not a database, is open in another server, refuses the password in PASSWORD_VARIABLE,
            or there is too little space.
    """
    database = folder.database
    if not folder.options().database and not database.exists():
        notify("Creating a new database ...")
        _create_database(folder)
    try:
        with open(database, "rb") as file:
            head = file.read(64)
    except OSError as error:
        raise ServerError(f"{database} cannot be read: {error.strerror}.", "Give the path of a virtuoso.db.") from error
    if not _SIGNATURE.match(head):  # the server would overwrite the file
        raise ServerError(
            f"{database} is not a Virtuoso database, or its first page is damaged; it was not changed.",
            "Restore it from a backup, or start with a new database in another folder: ",
            Option("folder", "/path"),
        )
    if owner := lock_owner(folder.lock):
        raise ServerError(
            f"{database} is open in another server (process {owner}). Two servers would destroy the database.",
            f"Stop the other server first, which shuts down properly with: kill {owner}",
        )
    if not folder.password_file.exists():
        notify(f"Opening {database} to check its password. This takes a while if its transaction log is large.")
        _secure(folder, os.environ.get(PASSWORD_VARIABLE, DEFAULT_PASSWORD))


def _create_database(folder: ServerFolder) -> None:
    """Create a database in a folder of its own and move it; what an interrupted creation has left is removed."""
    new = ServerFolder(folder.path / "new", folder.options())
    if owner := lock_owner(new.lock):
        end_process(owner, by=signal.SIGKILL)
    shutil.rmtree(new.path, ignore_errors=True)
    free = shutil.disk_usage(folder.path).free
    if free < 120_000_000:  # a new database takes 55 MB, and its first checkpoints another 55 MB
        raise ServerError(
            f"The disk is full: {free / 1e6:,.0f} MB are free at {folder.path}, too little for a new database.",
            "Free some space, or choose another folder: ",
            Option("folder", "/path"),
        )
    try:
        new.create()
        # without the rule that puts every literal into the full-text index; `index_graph` adds names
        _secure(new, DEFAULT_PASSWORD, "DB.DBA.RDF_OBJ_FT_RULE_DEL('', '', 'ALL')")
        for name in ("password", "virtuoso.db"):
            (new.path / name).replace(folder.path / name)
    finally:
        shutil.rmtree(new.path, ignore_errors=True)


def _secure(folder: ServerFolder, password: str, statement: str = "") -> None:
    """Open a database on random loopback ports, replace default passwords, and close all HTTP paths except SPARQL.

    Args:
        password: the password of the user dba.
        statement: an SQL statement to run too.
    """
    options = replace(
        folder.options(), sql_port=free_port(), http_port=free_port(), bind="127.0.0.1", memory_share=0.001
    )
    hidden = ServerFolder(folder.path, options)
    ini = folder.write("first.ini", hidden.settings())
    pid = launch(folder, ini)
    session = Session(hidden, password)
    try:
        for host, address, path in session.sql("select HP_HOST, HP_LISTEN_HOST, HP_LPATH from DB.DBA.HTTP_PATH"):
            if path not in ("/sparql", "/sparql-auth"):
                session.sql("DB.DBA.VHOST_REMOVE(vhost=>?, lhost=>?, lpath=>?)", (host, address, path))
        with suppress(SqlError):  # the user dav has a different password or does not exist
            session.sql("USER_CHANGE_PASSWORD(?, ?, ?)", ("dav", "dav", new_password()))
        if statement:
            session.sql(statement)
        new = new_password() if password == DEFAULT_PASSWORD else password
        # before the password of the database changes; a start that is interrupted in between needs the old one
        folder.write(folder.password_file.name, new + "\n")
        session.sql("USER_SET_PASSWORD(?, ?)", ("dba", new))
        Session(hidden).sql("checkpoint")
    except SqlError as error:
        if error.state != BAD_LOGIN:
            raise
        raise ServerError(
            f"The database {folder.database} refuses the password of its user dba.",
            f"Set the environment variable {PASSWORD_VARIABLE} to this password.",
        ) from error
    finally:
        ini.unlink()
        end_process(pid, timeout=120)
