"""Runs SQL statements on the server of a folder, as the database user dba."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.isql import Parameter, SqlAddress, read_output, run_sql, start_client
from kgqa.virtuoso.instance.programs import client_program
from kgqa.virtuoso.instance.sql_errors import explain_sql


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
        """Start a statement that takes long; `finish_statement` waits for its end."""
        return start_client(self.address(), statement)

    def finish_statement(self, client: subprocess.Popen[bytes]) -> ServerError | None:
        """Wait until a started statement ends, and return its error; None if it succeeded."""
        try:
            read_output(*client.communicate())
        except SqlError as error:
            return explain_sql(error, self.folder)
        except ServerError as error:
            return error
        return None
