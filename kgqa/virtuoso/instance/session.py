"""SQL as dba to the server of a folder, with errors that say what to do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.isql import Parameter, SqlAddress, read_output, run_sql, start_client
from kgqa.virtuoso.instance.programs import client_program
from kgqa.virtuoso.instance.sql_errors import explain_sql


class Session:
    """Asks the server of one folder. Every statement is a connection of its own; nothing is kept open."""

    def __init__(self, folder: ServerFolder) -> None:
        self.folder = folder

    def address(self) -> SqlAddress:
        """Raises ServerError where there is no server yet, no client, or no password file."""
        if not self.folder.password_file.exists() and not self.folder.database.exists():
            raise ServerError(
                f"There is no server in {self.folder.path} yet. Start one: kgqa virtuoso start{self.folder.option}"
            )
        return SqlAddress(client_program(), self.folder.record().sql_port, self.folder.password())

    def sql(
        self, statement: str, parameters: Sequence[Parameter] = (), *, timeout: float | None = None
    ) -> list[tuple[str, ...]]:
        """See `Server.sql`."""
        try:
            return run_sql(self.address(), statement, parameters, timeout=timeout)
        except SqlError as error:
            raise explain_sql(error, self.folder) from None

    def begin(self, statement: str) -> subprocess.Popen[bytes]:
        """Start a statement that takes long; `finish` reads what came of it."""
        return start_client(self.address(), statement)

    def finish(self, client: subprocess.Popen[bytes]) -> ServerError | None:
        """Wait for a begun statement; gives the error it ended with."""
        try:
            read_output(*client.communicate())
        except SqlError as error:
            return explain_sql(error, self.folder)
        except ServerError as error:
            return error
        return None
