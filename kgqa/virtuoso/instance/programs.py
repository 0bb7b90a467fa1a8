"""Where the server and its SQL client are found."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from kgqa.errors import ServerError

SERVER_VARIABLE = "VIRTUOSO_T"
CLIENT_VARIABLE = "ISQL"
SERVER_NAMES = ("virtuoso-t", "virtuoso")
CLIENT_NAMES = ("isql-vt", "isql-v", "isql")
INSTALL = (
    "Install it: kgqa virtuoso install (Debian and Ubuntu; elsewhere it says what to do), "
    f"or name the programs: {SERVER_VARIABLE}=/path/virtuoso-t {CLIENT_VARIABLE}=/path/isql"
)


def server_program() -> Path:
    """The path of virtuoso-t.

    Raises:
        ServerError: it is not installed.
    """
    return _find(SERVER_VARIABLE, SERVER_NAMES, "The Virtuoso server (virtuoso-t)")


def client_program() -> Path:
    """The path of Virtuoso's isql; a program of that name from unixODBC is not taken for it.

    Raises:
        ServerError: it is not installed.
    """
    return _find(CLIENT_VARIABLE, CLIENT_NAMES, "Virtuoso's SQL client (isql-vt)")


def installed() -> bool:
    """Whether both programs are here."""
    try:
        return bool(server_program() and client_program())
    except ServerError:
        return False


def _find(variable: str, names: Sequence[str], what: str) -> Path:
    named = os.environ.get(variable)
    if named:
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named).absolute()
        raise ServerError(f"{variable}={named} is not a program that can be run. Correct it, or unset it.")
    for name in names:
        found = shutil.which(name)
        if found and (name != "isql" or _is_virtuoso(Path(found))):
            return Path(found)
    raise ServerError(f"{what} is not installed here. {INSTALL}")


def _is_virtuoso(path: Path) -> bool:
    """UnixODBC has an `isql` too; only Virtuoso's has its name inside."""
    try:
        return b"OpenLink Virtuoso" in path.read_bytes()
    except OSError:
        return False
