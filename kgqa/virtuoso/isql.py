"""Runs SQL statements on a Virtuoso server through its command-line client, `isql`, one statement per call.

The client gets the password on standard input, because everybody can read the command lines of processes. Its exit
status is always 0, so errors are read from its output. With `CSV=ON`, the client escapes separators, line breaks and
non-ASCII characters, so that any value can be parsed.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from kgqa.errors import ServerError, SqlError
from kgqa.text.words import clean

Parameter = str | int | float | None
OPTIONS = ("VERBOSE=OFF", "BANNER=OFF", "PROMPT=OFF", "CSV=ON", "BLOBS=ON", "MACRO_SUBSTITUTION=OFF")
BAD_LOGIN = "28000"
NO_CONNECTION = "S2801"
LOST_CONNECTION = "08S01"
MESSAGE_LENGTH = 400
_PLAIN = re.compile(r"[A-Za-z0-9 _./:#@=+,-]*")
# the client writes bytes above 127 as negative numbers: %FFC3 for C3
_ESCAPE = re.compile(rb"%FF([89A-F][0-9A-F])|%([0-7][0-9A-F])")
_ERROR = re.compile(r"^\*\*\* Error (\w+): (.*?)(?=^(?:at line|in lines?) \d|\Z)", re.MULTILINE | re.DOTALL)
_ORIGIN = re.compile(r"\[Virtuoso (?:Driver|Server)\]")


def server_program() -> Path:
    """Return the path of virtuoso-t; raise ServerError if it is not installed."""
    return _find("VIRTUOSO_T", ("virtuoso-t", "virtuoso"), "The Virtuoso server (virtuoso-t)")


def client_program() -> Path:
    """Return the path of Virtuoso's SQL client, not of the program with the same name in unixODBC.

    Raises:
        ServerError: the program is not installed.
    """
    return _find("ISQL", ("isql-vt", "isql-v", "isql"), "Virtuoso's SQL client (isql-vt)")


def _find(variable: str, names: Sequence[str], what: str) -> Path:
    for name in filter(None, (os.environ.get(variable), *names)):
        path = shutil.which(name)
        if path and (name != "isql" or b"OpenLink Virtuoso" in Path(path).read_bytes()):
            return Path(path).absolute()
    raise ServerError(
        f"{what} is not installed.",
        "Install Virtuoso: kgqa virtuoso install (on Debian and Ubuntu; other systems get instructions). Or set "
        "environment variables to its programs: VIRTUOSO_T=/path/virtuoso-t ISQL=/path/isql",
    )


def environment() -> dict[str, str]:
    """Return the environment variables of the server and its client: PATH and locale, but no API keys of the user."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Login:
    """The port on 127.0.0.1, the user and the password for SQL. `repr` hides the password."""

    port: int
    password: str = field(repr=False)
    user: str = "dba"


def quote(value: Parameter) -> str:
    """Return a value as an SQL expression.

    Strings with special characters are encoded in base64, because the client would interpret semicolons, macros and
    shell escapes.
    """
    if value is None:
        return "NULL"
    if isinstance(value, (int, float)):
        return repr(value)
    if _PLAIN.fullmatch(value):
        return f"'{value}'"
    return f"decode_base64('{base64.b64encode(value.encode('utf-8')).decode('ascii')}')"


def start_client(login: Login, statement: str, *, keep_open: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a client that runs one statement.

    The client gets login and statement on standard input. It runs in its own session, so that Ctrl-C does not stop it.

    Args:
        keep_open: descriptors that the client keeps open until it ends, such as that of a lock.

    Raises:
        ServerError: the client is not installed.
    """
    password = login.password.replace("\\", "\\\\").replace("'", "\\'")
    script = (
        f"set DSN=127.0.0.1:{login.port};\nset UID={login.user};\nset PWD='{password}';\n"
        f"{statement.rstrip().rstrip(';')};\n"
    )
    process = subprocess.Popen(
        [str(client_program()), *OPTIONS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=keep_open,
        env=environment(),
    )
    assert process.stdin
    with suppress(BrokenPipeError):  # the client has ended, and its output has the reason
        process.stdin.write(script.encode("utf-8"))
        process.stdin.close()
    process.stdin = None
    return process


def run_sql(
    login: Login, statement: str, parameters: Sequence[Parameter] = (), *, timeout: float | None = None
) -> list[tuple[str, ...]]:
    """Run one statement and return its rows; all values are strings, and NULL is the empty string.

    Args:
        statement: SQL without a final semicolon; with parameters, each `?` stands for one of them.
        timeout: seconds after which the client is killed; the server may continue with the statement for a while.

    Raises:
        SqlError: the server rejected the statement or the login, or cannot be reached; `state` has the SQL state.
        ServerError: the time is over, or the client truncated a value.
    """
    first, *rest = statement.split("?") if parameters else [statement]
    filled = first + "".join(quote(value) + part for value, part in zip(parameters, rest, strict=True))
    process = start_client(login, filled)
    try:
        output, error_output = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise ServerError(
            f"The server has not answered an SQL statement within {timeout:g} s.",
            "Check the server: kgqa virtuoso status",
        ) from None
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return read_output(output, error_output)


def read_output(output: bytes, error_output: bytes) -> list[tuple[str, ...]]:
    """Parse the standard output and the error output of the client into rows.

    Raises:
        SqlError: the server reported an error.
        ServerError: a value was truncated, or the error output has an unknown format.
    """
    errors = error_output.decode("utf-8", "replace")
    error = _ERROR.search(errors)
    if error:
        raise SqlError(clean(_ORIGIN.sub("", error[2]))[:MESSAGE_LENGTH], state=error[1])
    if errors.strip():
        raise ServerError(f"The SQL client reports: {clean(errors)[:300]}.", "Check the server: kgqa virtuoso status")
    return [tuple(_value(part) for part in line.split(b";")) for line in output.split(b"\n")[:-1]]


def _value(escaped: bytes) -> str:
    plain = _ESCAPE.sub(lambda match: bytes([int(match[1] or match[2], 16)]), escaped)
    return plain.decode("utf-8", "replace")
