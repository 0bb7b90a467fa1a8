"""Runs SQL statements on a Virtuoso server through its command-line client, `isql`, one statement per call.

The client gets the password on standard input, because everybody can read the command lines of processes. Its exit
status is always 0, so errors are read from its output. With `CSV=ON`, the client escapes separators, line breaks and
non-ASCII characters, so that any value can be parsed.
"""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kgqa.errors import ServerError, SqlError
from kgqa.text.words import clean
from kgqa.virtuoso.folder import ServerFolder
from kgqa.virtuoso.process import (
    client_program,
    environment,
    explain_log,
    find_problem,
    lock_owner,
)

OPTIONS = ("VERBOSE=OFF", "BANNER=OFF", "PROMPT=OFF", "CSV=ON", "BLOBS=ON", "MACRO_SUBSTITUTION=OFF")
BAD_LOGIN = "28000"
NO_CONNECTION = "S2801"
LOST_CONNECTION = "08S01"
# the client writes bytes above 127 as negative numbers: %FFC3 for C3
_ESCAPE = re.compile(rb"%FF([89A-F][0-9A-F])|%([0-7][0-9A-F])")
_ERROR = re.compile(
    r"^\*\*\* Error (\w+): (?:\[Virtuoso (?:Driver|Server)\])*(.*?)(?=^(?:at line|in lines?) \d|\Z)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Login:
    """The port on 127.0.0.1, the user and the password for SQL. `repr` hides the password."""

    port: int
    password: str = field(repr=False)
    user: str = "dba"


def quote(value: str | float | None) -> str:
    """Return a value as an SQL expression; text in base64, as the client would interpret semicolons and macros."""
    if isinstance(value, str):
        return f"decode_base64('{base64.b64encode(value.encode('utf-8')).decode('ascii')}')"
    return "NULL" if value is None else repr(value)


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
    login: Login, statement: str, parameters: Sequence[str | float | None] = (), *, timeout: float | None = None
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
        raise SqlError(clean(error[2])[:400], state=error[1])
    if errors.strip():
        raise ServerError(f"The SQL client reports: {clean(errors)[:300]}.", "Check the server: kgqa virtuoso status")
    return [tuple(_value(part) for part in line.split(b";")) for line in output.split(b"\n")[:-1]]


def _value(escaped: bytes) -> str:
    plain = _ESCAPE.sub(lambda match: bytes([int(match[1] or match[2], 16)]), escaped)
    return plain.decode("utf-8", "replace")


class Session:
    """Runs SQL statements on the server of one folder, each over a new connection."""

    def __init__(self, folder: ServerFolder) -> None:
        self.folder = folder

    def login(self) -> Login:
        """Return the login of the user dba; raise ServerError if the folder has no server."""
        if not self.folder.database.exists():
            raise ServerError(
                f"There is no server in {self.folder.path} yet.",
                f"Start one: kgqa virtuoso start{self.folder.folder_option}",
            )
        return Login(self.folder.options().sql_port, self.folder.password())

    def sql(
        self, statement: str, parameters: Sequence[str | float | None] = (), *, timeout: float | None = None
    ) -> list[tuple[str, ...]]:
        """Run one statement; see `run_sql`."""
        try:
            return run_sql(self.login(), statement, parameters, timeout=timeout)
        except SqlError as error:
            raise self._explained(error) from None

    def start_statement(self, statement: str, *, keep_open: Sequence[int]) -> subprocess.Popen[bytes]:
        """Start a statement that takes long; see `start_client`. `check` reads the outputs of its process."""
        return start_client(self.login(), statement, keep_open=keep_open)

    def check(self, output: bytes, error_output: bytes) -> None:
        """Raise the error in the outputs of a started statement that has ended, if there is one."""
        try:
            read_output(output, error_output)
        except SqlError as error:
            raise self._explained(error) from None

    def _explained(self, error: SqlError) -> SqlError:
        """Return an error that explains what went wrong for the SQL client and what to do next."""
        folder, owner = self.folder, lock_owner(self.folder.lock)
        start = f"kgqa virtuoso start{folder.folder_option}"
        if error.state == LOST_CONNECTION:
            message = f"The server ended during the request. {explain_log(folder.log)}".strip()
            hint = f"Start it again with: {start} (it recovers by itself)"
        elif error.state == NO_CONNECTION and owner:
            message, hint = "The server is starting.", f"Wait for it: kgqa virtuoso status{folder.folder_option}"
        elif error.state == NO_CONNECTION or (error.state == BAD_LOGIN and owner is None):
            message, hint = "The server is not running.", f"Start it: {start}"
        elif error.state == BAD_LOGIN:
            message = f"The server is being stopped, or refuses the password in {folder.password_file}."
            hint = (
                "Write the password of the database user dba into this file. After four wrong passwords the server "
                "refuses every login for a minute. Without the password, you can still stop the server without losing "
                f"committed changes: kill {owner}"
            )
        else:
            message, hint = f"The server rejected an SQL statement: {error}", find_problem(str(error))
        return SqlError(message, hint, state=error.state)

    def triples_of(self, graph_iri: str) -> int:
        """Count the triples of a graph with SQL, because SPARQL queries have a time limit."""
        rows = self.sql("select count(*) from DB.DBA.RDF_QUAD where G = iri_to_id(?, 0)", (graph_iri,))
        return int(rows[0][0])
