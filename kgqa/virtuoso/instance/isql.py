"""Speaks SQL to a Virtuoso server through its own client, `isql`: one statement a call, rows of text back.

The client reads everything from its standard input, the password too, so that no process list ever shows it. It exits
with 0 whatever the server said, so errors are found in what it writes. Its separated output (`CSV=ON`) escapes
separators, line breaks and whatever is not ASCII, so that rows are told apart whatever is in them.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgqa.errors import ServerError, SqlError
from kgqa.words import clean

Parameter = str | int | float | None
OPTIONS = ("VERBOSE=OFF", "BANNER=OFF", "PROMPT=OFF", "CSV=ON", "BLOBS=ON", "MACRO_SUBSTITUTION=OFF")
BAD_LOGIN = "28000"
NO_CONNECTION = "S2801"
LOST_CONNECTION = "08S01"
OUT_OF_DISK = "40003"
_PLAIN = re.compile(r"[A-Za-z0-9 _./:#@=+,-]*")
# it writes bytes above 127 as if they were negative numbers: %FFC3 for C3
_ESCAPE = re.compile(rb"%FF([89A-F][0-9A-F])|%([0-7][0-9A-F])")
_ERROR = re.compile(r"^\*\*\* Error (\w+): (.*?)(?=^(?:at line|in lines?) \d|\Z)", re.MULTILINE | re.DOTALL)
MESSAGE_LENGTH = 400
_TRUNCATED = re.compile(r"^Warning 01004", re.MULTILINE)
_ORIGIN = re.compile(r"\[Virtuoso (?:Driver|Server)\]")


@dataclass(frozen=True)
class SqlAddress:
    """Where a server listens for SQL, and who asks. The password is never shown by `repr`."""

    client: Path
    port: int
    password: str = field(repr=False)
    user: str = "dba"
    host: str = "127.0.0.1"


def quote(value: Parameter) -> str:
    """A value as an SQL expression. Text with anything but plain characters travels in base64, so that neither the
    client, which looks for semicolons, macros and shell escapes, nor the server can take it for something else.
    """
    if value is None:
        return "NULL"
    if isinstance(value, (int, float)):
        return repr(value)
    if _PLAIN.fullmatch(value):
        return f"'{value}'"
    return f"decode_base64('{base64.b64encode(value.encode('utf-8')).decode('ascii')}')"


def fill(statement: str, parameters: Sequence[Parameter]) -> str:
    """The statement with each `?` replaced by its quoted parameter; untouched where there are no parameters.

    Raises:
        ValueError: as many parameters as question marks are needed.
    """
    if not parameters:
        return statement
    parts = statement.split("?")
    if len(parts) != len(parameters) + 1:
        raise ValueError(f"{len(parts) - 1} question marks, but {len(parameters)} parameters")
    return "".join(part + quote(value) for part, value in zip(parts, parameters)) + parts[-1]


def environment() -> dict[str, str]:
    """The environment of the server and its client: where programs are found, and nothing else of the user's."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def start_client(address: SqlAddress, statement: str) -> subprocess.Popen[bytes]:
    """Start a client that runs one statement. Its command line holds no address and no password: it is handed those,
    and the statement, on standard input. It has a session of its own, so that Ctrl-C does not reach it.

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
            f"{address.client} cannot be run ({error.strerror}). Install Virtuoso: kgqa virtuoso install"
        ) from error
    assert process.stdin
    try:
        process.stdin.write(script.encode("utf-8"))
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has ended already, and says why
    process.stdin = None
    return process


def run_sql(
    address: SqlAddress, statement: str, parameters: Sequence[Parameter] = (), *, timeout: float | None = None
) -> list[tuple[str, ...]]:
    """Run one statement and give its rows, all values as text, NULL as the empty text.

    Args:
        timeout: seconds; afterwards the client is ended. The server may go on with the statement for a while.

    Raises:
        SqlError: the server refused the statement or the login, or cannot be reached; `state` tells which.
        ServerError: the time ran out, or a value was too long for the client, which cuts it short.
    """
    process = start_client(address, fill(statement, parameters))
    try:
        output, complaints = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise ServerError(
            f"The server has not answered an SQL statement within {timeout:g} s. Look at it: kgqa virtuoso status"
        ) from None
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    return read_output(output, complaints)


def read_output(output: bytes, complaints: bytes) -> list[tuple[str, ...]]:
    """The rows in what the client wrote.

    Raises:
        SqlError: it wrote of an error. ServerError: it cut a value short, or said what we do not know.
    """
    said = complaints.decode("utf-8", "replace")
    error = _ERROR.search(said)
    if error:
        raise SqlError(clean(_ORIGIN.sub("", error[2]))[:MESSAGE_LENGTH], state=error[1])
    if _TRUNCATED.search(said):
        raise ServerError("A value is too long for the SQL client, which cut it short. Ask for less of it.")
    if said.strip():
        raise ServerError(f"The SQL client complains: {clean(said)[:300]}. Look at the server: kgqa virtuoso status")
    return [tuple(_value(part) for part in line.split(b";")) for line in output.split(b"\n")[:-1]]


def _value(escaped: bytes) -> str:
    plain = _ESCAPE.sub(lambda match: bytes([int(match[1] or match[2], 16)]), escaped)
    return plain.decode("utf-8", "replace")
