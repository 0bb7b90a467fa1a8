"""Finds the programs of Virtuoso: the server and its SQL client."""

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
    "Install Virtuoso: kgqa virtuoso install (on Debian and Ubuntu; other systems get instructions). "
    f"Or set environment variables to its programs: {SERVER_VARIABLE}=/path/virtuoso-t {CLIENT_VARIABLE}=/path/isql"
)


def server_program() -> Path:
    """Return the path of virtuoso-t.

    Raises:
        ServerError: the program is not installed.
    """
    return _find(SERVER_VARIABLE, SERVER_NAMES, "The Virtuoso server (virtuoso-t)")


def client_program() -> Path:
    """Return the path of Virtuoso's SQL client, not of the program with the same name in unixODBC.

    Raises:
        ServerError: the program is not installed.
    """
    return _find(CLIENT_VARIABLE, CLIENT_NAMES, "Virtuoso's SQL client (isql-vt)")


def installed() -> bool:
    """Tell whether both programs are installed."""
    try:
        return bool(server_program() and client_program())
    except ServerError:
        return False


def _find(variable: str, names: Sequence[str], what: str) -> Path:
    named = os.environ.get(variable)
    if named:
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named).absolute()
        raise ServerError(
            f"The environment variable {variable} is set to {named}, which is not an executable program.",
            "Correct or unset the variable.",
        )
    for name in names:
        found = shutil.which(name)
        if found and (name != "isql" or _is_virtuoso(Path(found))):
            return Path(found)
    raise ServerError(f"{what} is not installed.", INSTALL)


def _is_virtuoso(path: Path) -> bool:
    """Tell whether this `isql` belongs to Virtuoso (its file contains "OpenLink Virtuoso") and not to unixODBC."""
    try:
        return b"OpenLink Virtuoso" in path.read_bytes()
    except OSError:
        return False
