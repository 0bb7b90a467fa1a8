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


def quote(value: str | float | None) -> str:
    """Return a value as an SQL expression; text in base64, as the client would interpret semicolons and macros."""
    if isinstance(value, str):
        return f"decode_base64('{base64.b64encode(value.encode('utf-8')).decode('ascii')}')"
    return "NULL" if value is None else repr(value)


class Session:
    """Runs SQL statements on the server of one folder, each over a new connection.

    Args:
        folder: the server's folder, with the port on 127.0.0.1.
        password: the password of the user dba; None to read it from the folder for each statement.
    """

    def __init__(self, folder: ServerFolder, password: str | None = None) -> None:
        self.folder = folder
        self._password = password

    def sql(
        self, statement: str, parameters: Sequence[str | float | None] = (), *, timeout: float | None = None
    ) -> list[tuple[str, ...]]:
        """Run one statement and return its rows; all values are strings, and NULL is the empty string.

        Args:
            statement: SQL without a final semicolon; with parameters, each `?` stands for one of them.
            timeout: seconds after which the client is killed; the server may continue with the statement for a while.

        Raises:
            SqlError: the server rejected the statement or the login, or cannot be reached; `state` has the SQL state.
            ServerError: there is no server, the time is over, or the client truncated a value.
        """
        first, *rest = statement.split("?") if parameters else [statement]
        filled = first + "".join(quote(value) + part for value, part in zip(parameters, rest, strict=True))
        return self.rows(self.send(filled), timeout=timeout)

    def send(self, statement: str, *, keep_open: Sequence[int] = ()) -> subprocess.Popen[bytes]:
        """Send a statement to the server by a client of its own; `rows` waits for it.

        The client gets login and statement on standard input. It runs in its own session, so that Ctrl-C does not stop
        it.

        Args:
            keep_open: descriptors that the client keeps open until it ends, such as that of a lock.

        Raises:
            ServerError: the folder has no server, or the client is not installed.
        """
        folder = self.folder
        if not folder.database.exists():
            raise ServerError(
                f"There is no server in {folder.path} yet.", f"Start one: kgqa virtuoso start{folder.folder_option}"
            )
        password = folder.password() if self._password is None else self._password
        password = password.replace("\\", "\\\\").replace("'", "\\'")
        script = (
            f"set DSN=127.0.0.1:{folder.options().sql_port};\nset UID=dba;\nset PWD='{password}';\n"
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

    def rows(self, process: subprocess.Popen[bytes], *, timeout: float | None = None) -> list[tuple[str, ...]]:
        """Wait for a statement that was sent and return its rows; see `sql` for the errors."""
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
        errors = error_output.decode("utf-8", "replace")
        if error := _ERROR.search(errors):
            raise self._explained(error[1], clean(error[2])[:400])
        if errors.strip():
            raise ServerError(
                f"The SQL client reports: {clean(errors)[:300]}.", "Check the server: kgqa virtuoso status"
            )
        return [tuple(_value(part) for part in line.split(b";")) for line in output.split(b"\n")[:-1]]

    def _explained(self, state: str, text: str) -> SqlError:
        """Return an error that explains an SQL state and its text, and what to do next."""
        folder, owner = self.folder, lock_owner(self.folder.lock)
        start = f"kgqa virtuoso start{folder.folder_option}"
        if state == LOST_CONNECTION:
            message = f"The server ended during the request. {explain_log(folder.log)}".strip()
            hint = f"Start it again with: {start} (it recovers by itself)"
        elif state == NO_CONNECTION and owner:
            message, hint = "The server is starting.", f"Wait for it: kgqa virtuoso status{folder.folder_option}"
        elif state == NO_CONNECTION or (state == BAD_LOGIN and owner is None):
            message, hint = "The server is not running.", f"Start it: {start}"
        elif state == BAD_LOGIN:
            message = f"The server is being stopped, or refuses the password in {folder.password_file}."
            hint = (
                "Write the password of the database user dba into this file. After four wrong passwords the server "
                "refuses every login for a minute. Without the password, you can still stop the server without losing "
                f"committed changes: kill {owner}"
            )
        else:
            message, hint = f"The server rejected an SQL statement: {text}", find_problem(text)
        return SqlError(message, hint, state=state)

    def triples_of(self, graph_iri: str) -> int:
        """Count the triples of a graph with SQL, because SPARQL queries have a time limit."""
        rows = self.sql("select count(*) from DB.DBA.RDF_QUAD where G = iri_to_id(?, 0)", (graph_iri,))
        return int(rows[0][0])


def _value(escaped: bytes) -> str:
    plain = _ESCAPE.sub(lambda match: bytes([int(match[1] or match[2], 16)]), escaped)
    return plain.decode("utf-8", "replace")
