"""Taking over a ready database file, such as one that somebody else loaded Freebase into: it stays where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.isql import BAD_LOGIN, SqlAddress, run_sql
from kgqa.virtuoso.instance.launching import Say, shut_down
from kgqa.virtuoso.instance.processes import lock_owner
from kgqa.virtuoso.instance.programs import client_program, server_program
from kgqa.virtuoso.instance.users import close_paths, new_password, replace_dav_password
from kgqa.virtuoso.server.database_files import check_database
from kgqa.virtuoso.server.starting import discard_unfinished, hidden_server, only_start

PASSWORD_VARIABLE = "KGQA_VIRTUOSO_DBA_PASSWORD"
COMMON_PASSWORD = "dba"


@dataclass(frozen=True, slots=True)
class Adoption:
    """`password_changed` tells that the password everybody knows was replaced."""

    database: Path
    password_file: Path
    password_changed: bool


def adopt(folder: ServerFolder, file: Path, *, password: Callable[[], str] | None, say: Say) -> Adoption:
    """See `Server.adopt`."""
    server_program(), client_program()
    database = Path(file).resolve()
    folder.make()
    with only_start(folder):
        owner = lock_owner(folder.lock)
        if owner:
            raise ServerError(
                f"The server of {folder.path} runs ({owner}). Stop it first: kgqa virtuoso stop{folder.option}"
            )
        if folder.making.exists():
            _settle_unfinished(folder, database)
        check_database(database)
        _check_name(database)
        record = replace(folder.record(), database=str(database))
        say(f"Opening {database} to try its password; a large log of changes takes a while.")
        with hidden_server(folder, record) as address:
            found, changed = _login(address, folder, database, password, say)
            replace_dav_password(found)
            close_paths(found)
            _keep_own_password(folder, database)
            # first the file, then the server: a password in the file alone is corrected by adopting again
            folder.write_private("password", found.password + "\n")
            shut_down(found)
        folder.save_record(record)
        if database == folder.own_database:
            folder.own_password_file.unlink(missing_ok=True)  # the password file has it again
    return Adoption(database, folder.password_file, changed)


def _settle_unfinished(folder: ServerFolder, database: Path) -> None:
    """Remove what an interrupted first start left, unless that may be the very file that is to be adopted."""
    if folder.path.resolve() == database.parent and not folder.record().database:
        raise ServerError(
            f"The first start of the server in {folder.path} was interrupted, and the next one removes the database "
            f"there. If {database} is one of yours, move it to another folder and adopt it there."
        )
    discard_unfinished(folder)


def _keep_own_password(folder: ServerFolder, database: Path) -> None:
    """Put the password of the folder's own database beside, before that of another one takes its place: nobody else
    has it. While an adopted one is in use, the password file is not about our own.
    """
    in_use = folder.database.resolve()
    if in_use == folder.own_database != database and in_use.exists() and folder.password_file.exists():
        folder.write_private(folder.own_password_file.name, folder.password() + "\n")


def _check_name(database: Path) -> None:
    if set(str(database)) & set(",;\n\r$\"'#"):
        raise ServerError(
            f"{database} has one of , ; # $ ' \" in its path, which the server's settings file cannot hold. Rename it."
        )
    for suffix in (".lck", ".trx", ".pxa"):
        try:
            with open(database.with_suffix(suffix), "ab"):
                pass
        except OSError as error:
            raise ServerError(
                f"The server writes {suffix} files beside its database, and {database.parent} does not let it: "
                f"{error.strerror}. Give it the permission, or move the file."
            ) from error
        if database.with_suffix(suffix).stat().st_size == 0:
            database.with_suffix(suffix).unlink()


def _login(
    address: SqlAddress, folder: ServerFolder, database: Path, password: Callable[[], str] | None, say: Say
) -> tuple[SqlAddress, bool]:
    """The address with the password that is valid from now on, and whether that is a new one."""
    if _accepts(replace(address, password=COMMON_PASSWORD)):
        say("Its password is the one everybody knows (dba); it gets a new, random one.")
        fresh = new_password()
        run_sql(replace(address, password=COMMON_PASSWORD), "USER_SET_PASSWORD(?, ?)", ("dba", fresh))
        return replace(address, password=fresh), True
    if database == folder.own_database and folder.own_password_file.exists():
        kept = replace(address, password=folder.own_password_file.read_text(encoding="utf-8").rstrip("\n"))
        if _accepts(kept):
            return kept, False
    given = password() if password else ""
    if "\n" in given or "\r" in given:
        raise ServerError("A password with a line break in it cannot be used. Change it with isql first.")
    if given and _accepts(replace(address, password=given)):
        return replace(address, password=given), False
    reason = "that password" if given else "the password dba, and none was given"
    raise ServerError(
        f"The database refuses {reason} for its user dba. Give the right one in the environment variable "
        f"{PASSWORD_VARIABLE}, or type it when asked."
    )


def _accepts(address: SqlAddress) -> bool:
    try:
        run_sql(address, "select 1")
    except SqlError as error:
        if error.state == BAD_LOGIN:
            return False
        raise
    return True
