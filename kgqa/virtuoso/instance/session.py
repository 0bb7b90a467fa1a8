"""Runs SQL statements on the server of a folder, as the database user dba."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Sequence

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.isql import (
    BAD_LOGIN,
    LOST_CONNECTION,
    NO_CONNECTION,
    Parameter,
    SqlAddress,
    read_output,
    run_sql,
    start_client,
)
from kgqa.virtuoso.instance.launching import client_program
from kgqa.virtuoso.instance.processes import is_listening, listener, lock_owner
from kgqa.virtuoso.instance.server_log import SHUT_DOWN, find_problem, free_space, last_error, last_run, log_tail

ENDING_SECONDS = 0.5
_LOGIN = re.compile(r"Incorrect login for |(Too many) \(\d+\) failed connection attempts")


def explain_sql(error: SqlError, folder: ServerFolder) -> ServerError:
    """Return an error that explains what went wrong for the SQL client and what to do next."""
    if error.state == BAD_LOGIN:
        return _bad_login(folder)
    if error.state == NO_CONNECTION:
        owner = lock_owner(folder.lock)
        if owner:
            return SqlError(
                f"The server ({owner}) does not answer yet.",
                f"Wait until it is running: kgqa virtuoso status{folder.folder_option}",
                state=error.state,
            )
        return SqlError(
            "The server is not running.", f"Start it: kgqa virtuoso start{folder.folder_option}", state=error.state
        )
    if error.state == LOST_CONNECTION:
        why = last_error(log_tail(folder.log), disk=folder.database.parent)
        return SqlError(
            f"The server ended during the request. {why}".strip(),
            f"Start it again with: kgqa virtuoso start{folder.folder_option} (it recovers by itself)",
            state=error.state,
        )
    problem = find_problem(str(error))
    if problem and problem.kind == "disk":
        return SqlError(
            f"{problem.meaning} {free_space(folder.database.parent)} are free at {folder.database.parent}. "
            f"{problem.remedy}",
            state=error.state,
        )
    return SqlError(f"The server rejected an SQL statement: {error}", state=error.state)


def _is_ending(folder: ServerFolder) -> bool:
    """Tell whether the server is shutting down or has ended; during a shutdown it refuses every login."""
    deadline = time.monotonic() + ENDING_SECONDS
    while lock_owner(folder.lock) and is_listening(folder.record().sql_port):
        if SHUT_DOWN in last_run(log_tail(folder.log)):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _bad_login(folder: ServerFolder) -> ServerError:
    port = folder.record().sql_port
    owner, answers = lock_owner(folder.lock), listener(port)
    if answers and (owner is None or answers.pid != owner.pid):
        return SqlError(
            f"Another server, {answers}, listens on port {port}.",
            f"Start your server on another port: kgqa virtuoso start --sql-port N{folder.folder_option}",
            state=BAD_LOGIN,
        )
    if _is_ending(folder):
        return SqlError(
            "The server was stopped during the request.",
            f"Start it: kgqa virtuoso start{folder.folder_option}",
            state=BAD_LOGIN,
        )
    refusals = list(_LOGIN.finditer(last_run(log_tail(folder.log))))
    # the client cannot distinguish a refusal without a check of the password from a wrong password
    if refusals and refusals[-1][1]:
        return SqlError(
            "After four wrong passwords the server refuses every login for a minute.",
            f"Try again in a minute, to see whether the password in {folder.password_file} is right.",
            state=BAD_LOGIN,
        )
    return SqlError(
        f"The server refuses the password in {folder.password_file}.",
        "Write the password of the database user dba into "
        f"this file. After four wrong passwords the server refuses every login for a minute. If you do not know the "
        f"password, you can still stop the server without losing committed changes: "
        f"kill {owner.pid if owner else 'PID'}",
        state=BAD_LOGIN,
    )


class Session:
    """Runs SQL statements on the server of one folder, each over a new connection."""

    def __init__(self, folder: ServerFolder) -> None:
        self.folder = folder

    def address(self) -> SqlAddress:
        """Return the server address; raise ServerError if the folder has no server or password, or isql is missing."""
        if not self.folder.password_file.exists() and not self.folder.database.exists():
            raise ServerError(
                f"There is no server in {self.folder.path} yet.",
                f"Start one: kgqa virtuoso start{self.folder.folder_option}",
            )
        return SqlAddress(client_program(), self.folder.record().sql_port, self.folder.password())

    def sql(
        self, statement: str, parameters: Sequence[Parameter] = (), *, timeout: float | None = None
    ) -> list[tuple[str, ...]]:
        """Run one statement; see `Server.sql`."""
        try:
            return run_sql(self.address(), statement, parameters, timeout=timeout)
        except SqlError as error:
            raise explain_sql(error, self.folder) from None

    def start_statement(self, statement: str) -> subprocess.Popen[bytes]:
        """Start a statement that takes long; `check_outputs` reads the outputs of its process."""
        return start_client(self.address(), statement)

    def check_outputs(self, output: bytes, error_output: bytes) -> None:
        """Raise the error in the outputs of a started statement that has ended, if there is one."""
        try:
            read_output(output, error_output)
        except SqlError as error:
            raise explain_sql(error, self.folder) from None
