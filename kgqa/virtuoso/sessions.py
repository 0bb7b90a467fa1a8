"""Runs SQL statements on the server of a folder as the database user dba, and explains what went wrong."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.folder import ServerFolder
from kgqa.virtuoso.isql import (
    BAD_LOGIN,
    LOST_CONNECTION,
    NO_CONNECTION,
    Login,
    Parameter,
    read_output,
    run_sql,
    start_client,
)
from kgqa.virtuoso.process import lock_owner
from kgqa.virtuoso.server_log import SHUT_DOWN, explain_log, find_problem, last_lines

ENDING_SECONDS = 0.5
POLL_SECONDS = 0.05


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
        self, statement: str, parameters: Sequence[Parameter] = (), *, timeout: float | None = None
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
        folder = self.folder
        start = f"Start it: kgqa virtuoso start{folder.folder_option}"
        owner = lock_owner(folder.lock)
        if error.state == LOST_CONNECTION:
            message = f"The server ended during the request. {explain_log(folder.log)}".strip()
            hint = f"Start it again with: kgqa virtuoso start{folder.folder_option} (it recovers by itself)"
        elif error.state == NO_CONNECTION:
            message = "The server is starting." if owner else "The server is not running."
            hint = f"Wait until it is running: kgqa virtuoso status{folder.folder_option}" if owner else start
        elif error.state != BAD_LOGIN:
            message = f"The server rejected an SQL statement: {error}"
            hint = find_problem(message)
        elif self._is_ending():
            message, hint = "The server was stopped during the request.", start
        else:
            message = f"The server refuses the password in {folder.password_file}."
            hint = (
                "Write the password of the database user dba into this file. After four wrong passwords the server "
                "refuses every login for a minute. Without the password, you can still stop the server without losing "
                f"committed changes: kill {owner or 'PID'}"
            )
        return SqlError(message, hint, state=error.state)

    def _is_ending(self) -> bool:
        """Tell whether the server is shutting down or has ended; during a shutdown it refuses every login."""
        deadline = time.monotonic() + ENDING_SECONDS
        while SHUT_DOWN not in " ".join(last_lines(self.folder.log)):
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True
