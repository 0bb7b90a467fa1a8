"""Adopts a database file, for example one with Freebase: the server uses the file without moving it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.folder import UNUSABLE_CHARACTERS, ServerFolder
from kgqa.virtuoso.instance.isql import BAD_LOGIN, SqlAddress, run_sql
from kgqa.virtuoso.instance.launching import Notify, client_program, server_program, shut_down
from kgqa.virtuoso.instance.processes import lock_owner
from kgqa.virtuoso.server.database_files import check_database
from kgqa.virtuoso.server.starting import (
    close_paths,
    discard_unfinished,
    new_password,
    private_server,
    start_lock,
)

PASSWORD_VARIABLE = "KGQA_VIRTUOSO_DBA_PASSWORD"
DEFAULT_PASSWORD = "dba"


@dataclass(frozen=True, slots=True)
class Adoption:
    """The result of `adopt`; `password_changed` tells whether the default password was replaced."""

    database: Path
    password_file: Path
    password_changed: bool


def adopt(folder: ServerFolder, file: Path, *, password: Callable[[], str] | None, notify: Notify) -> Adoption:
    """Adopt a database file; see `Server.adopt`."""
    server_program(), client_program()
    database = Path(file).resolve()
    folder.create()
    with start_lock(folder):
        owner = lock_owner(folder.lock)
        if owner:
            raise ServerError(
                f"The server of {folder.path} is running ({owner}).",
                f"Stop the server first: kgqa virtuoso stop{folder.folder_option}",
            )
        if folder.creation_marker.exists():
            _settle_unfinished(folder, database)
        check_database(database)
        _check_path(database)
        record = replace(folder.record(), database=str(database))
        notify(f"Opening {database} to check its password. This takes a while if its transaction log is large.")
        with private_server(folder, record) as address:
            found, changed = _login(address, folder, database, password, notify)
            with suppress(SqlError):  # the user dav has a different password or does not exist
                run_sql(found, "USER_CHANGE_PASSWORD(?, ?, ?)", ("dav", "dav", new_password()))
            close_paths(found)
            _keep_own_password(folder, database)
            # write the password file before the server ends; if the file is wrong, adopting again corrects it
            folder.write_private("password", found.password + "\n")
            shut_down(found)
        folder.write_json("server.json", record)
        if database == folder.own_database:
            folder.own_password_file.unlink(missing_ok=True)  # this password is in the password file now
    return Adoption(database, folder.password_file, changed)


def _settle_unfinished(folder: ServerFolder, database: Path) -> None:
    """Remove the files of an interrupted first start; refuse if the database to adopt may be among them."""
    if folder.path.resolve() == database.parent and not folder.record().database:
        raise ServerError(
            f"The first start of the server in {folder.path} was interrupted, so the next start removes the database "
            "in that folder.",
            f"If you put {database} there, move this file to another folder and adopt it from there.",
        )
    discard_unfinished(folder)


def _keep_own_password(folder: ServerFolder, database: Path) -> None:
    """Save the password of the database in this folder before the password of the adopted database replaces it."""
    in_use = folder.database.resolve()
    if in_use == folder.own_database != database and in_use.exists() and folder.password_file.exists():
        folder.write_private(folder.own_password_file.name, folder.password() + "\n")


def _check_path(database: Path) -> None:
    if set(str(database)) & UNUSABLE_CHARACTERS:
        raise ServerError(
            f"The path {database} contains one of the characters , ; # $ ' \" , which virtuoso.ini cannot hold.",
            "Rename the file or its folder.",
        )
    for suffix in (".lck", ".trx", ".pxa"):
        try:
            with open(database.with_suffix(suffix), "ab"):
                pass
        except OSError as error:
            raise ServerError(
                f"The server cannot write a {suffix} file next to its database in {database.parent} "
                f"({error.strerror}).",
                "Make the folder writable for the user who runs kgqa, or move the database.",
            ) from error
        if database.with_suffix(suffix).stat().st_size == 0:
            database.with_suffix(suffix).unlink()


def _login(
    address: SqlAddress, folder: ServerFolder, database: Path, password: Callable[[], str] | None, notify: Notify
) -> tuple[SqlAddress, bool]:
    """Log in and replace a default password; return the address with the new password, and whether it was changed."""
    if _accepts(replace(address, password=DEFAULT_PASSWORD)):
        notify("The database has the default password, dba. Replacing it by a random password.")
        fresh = new_password()
        run_sql(replace(address, password=DEFAULT_PASSWORD), "USER_SET_PASSWORD(?, ?)", ("dba", fresh))
        return replace(address, password=fresh), True
    if database == folder.own_database and folder.own_password_file.exists():
        kept = replace(address, password=folder.own_password_file.read_text(encoding="utf-8").rstrip("\n"))
        if _accepts(kept):
            return kept, False
    given = password() if password else ""
    if "\n" in given or "\r" in given:
        raise ServerError(
            "The password contains a line break, which kgqa cannot use.", "Change the password with isql."
        )
    if given and _accepts(replace(address, password=given)):
        return replace(address, password=given), False
    reason = "the given password" if given else "the default password dba, and no other password was given"
    raise ServerError(
        f"The database refuses {reason}.",
        f"Set the environment variable {PASSWORD_VARIABLE} to the password of the "
        f"database user dba, or enter the password when asked.",
    )


def _accepts(address: SqlAddress) -> bool:
    try:
        run_sql(address, "select 1")
    except SqlError as error:
        if error.state == BAD_LOGIN:
            return False
        raise
    return True
