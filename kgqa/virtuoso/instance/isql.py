"""Runs SQL statements on a Virtuoso server through its command-line client, `isql`, one statement per call.

The client gets the password on standard input, because everybody can read the command lines of processes. Its exit
status is always 0, so errors are read from its output. With `CSV=ON`, the client escapes separators, line breaks and
non-ASCII characters, so that any value can be parsed.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgqa.errors import ServerError, SqlError
from kgqa.text.words import clean

Parameter = str | int | float | None
OPTIONS = ("VERBOSE=OFF", "BANNER=OFF", "PROMPT=OFF", "CSV=ON", "BLOBS=ON", "MACRO_SUBSTITUTION=OFF")
BAD_LOGIN = "28000"
NO_CONNECTION = "S2801"
LOST_CONNECTION = "08S01"
_PLAIN = re.compile(r"[A-Za-z0-9 _./:#@=+,-]*")
# the client writes bytes above 127 as negative numbers: %FFC3 for C3
_ESCAPE = re.compile(rb"%FF([89A-F][0-9A-F])|%([0-7][0-9A-F])")
_ERROR = re.compile(r"^\*\*\* Error (\w+): (.*?)(?=^(?:at line|in lines?) \d|\Z)", re.MULTILINE | re.DOTALL)
MESSAGE_LENGTH = 400
_TRUNCATED = re.compile(r"^Warning 01004", re.MULTILINE)
_ORIGIN = re.compile(r"\[Virtuoso (?:Driver|Server)\]")


@dataclass(frozen=True)
class SqlAddress:
    """Host, port and login of a server, and the client program. `repr` hides the password."""

    client: Path
    port: int
    password: str = field(repr=False)
    user: str = "dba"
    host: str = "127.0.0.1"


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


def fill(statement: str, parameters: Sequence[Parameter]) -> str:
    """Replace each `?` in a statement by its quoted parameter; without parameters, return the statement unchanged.

    Raises:
        ValueError: the numbers of parameters and question marks differ.
    """
    if not parameters:
        return statement
    parts = statement.split("?")
    if len(parts) != len(parameters) + 1:
        raise ValueError(f"the SQL statement has {len(parts) - 1} question marks, but {len(parameters)} parameters")
    return "".join(part + quote(value) for part, value in zip(parts, parameters)) + parts[-1]


def environment() -> dict[str, str]:
    """Return the environment variables of the server and its client: PATH and locale, but no API keys of the user."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def start_client(address: SqlAddress, statement: str) -> subprocess.Popen[bytes]:
    """Start a client that runs one statement.

    The client gets address, password and statement on standard input. It runs in its own session, so that Ctrl-C does
    not stop it.

    Raises:
        ServerError: the client cannot be run.
    """
    password = address.password.replace("\\", "\\\\").replace("'", "\\'")
    script = (
        f"set DSN={address.host}:{address.port};\n"
        f"set UID={address.user};\n"
        f"set PWD='{password}';\n"
        f"{statement.rstrip().rstrip(';')};\n"
    )
    try:
        process = subprocess.Popen(
            [str(address.client), *OPTIONS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment(),
        )
    except OSError as error:
        raise ServerError(
            f"{address.client} cannot be run ({error.strerror}).", "Install Virtuoso: kgqa virtuoso install"
        ) from error
    assert process.stdin
    with contextlib.suppress(BrokenPipeError):  # the client has ended, and its output has the reason
        process.stdin.write(script.encode("utf-8"))
        process.stdin.close()
    process.stdin = None
    return process


def run_sql(
    address: SqlAddress, statement: str, parameters: Sequence[Parameter] = (), *, timeout: float | None = None
) -> list[tuple[str, ...]]:
    """Run one statement and return its rows; all values are strings, and NULL is the empty string.

    Args:
        timeout: seconds after which the client is killed; the server may continue with the statement for a while.

    Raises:
        SqlError: the server rejected the statement or the login, or cannot be reached; `state` has the SQL state.
        ServerError: the time is over, or the client truncated a value.
    """
    process = start_client(address, fill(statement, parameters))
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
    """Parse the output of the client into rows.

    Args:
        output: standard output of the client.
        error_output: standard error of the client.

    Raises:
        SqlError: the server reported an error.
        ServerError: a value was truncated, or the error output has an unknown format.
    """
    errors = error_output.decode("utf-8", "replace")
    error = _ERROR.search(errors)
    if error:
        raise SqlError(clean(_ORIGIN.sub("", error[2]))[:MESSAGE_LENGTH], state=error[1])
    if _TRUNCATED.search(errors):
        raise ServerError("The SQL client truncated a value that is too long.", "Select a shorter part of the value.")
    if errors.strip():
        raise ServerError(f"The SQL client reports: {clean(errors)[:300]}.", "Check the server: kgqa virtuoso status")
    return [tuple(_value(part) for part in line.split(b";")) for line in output.split(b"\n")[:-1]]


def _value(escaped: bytes) -> str:
    plain = _ESCAPE.sub(lambda match: bytes([int(match[1] or match[2], 16)]), escaped)
    return plain.decode("utf-8", "replace")
