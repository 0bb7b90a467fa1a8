"""The class `Server`: starts, queries, loads and stops a Virtuoso server without systemd and without root."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance import users
from kgqa.virtuoso.instance.configuration import render
from kgqa.virtuoso.instance.folder import ServerFolder, default_folder
from kgqa.virtuoso.instance.isql import Parameter
from kgqa.virtuoso.instance.launching import command, shut_down, wait_for_end
from kgqa.virtuoso.instance.processes import lock_owner
from kgqa.virtuoso.instance.session import Session
from kgqa.virtuoso.instance.sql_errors import explain_sql
from kgqa.virtuoso.server import load_list_journal, starting, text_index
from kgqa.virtuoso.server.adopting import Adoption, adopt
from kgqa.virtuoso.server.load_list import FileResult, LoadProgress, loaded_files, run_load_list
from kgqa.virtuoso.server.starting import check_record
from kgqa.virtuoso.server.status import ServerStatus, server_status

# graphs with a few thousand triples that every new database contains
SYSTEM_GRAPHS = ("http://www.openlinksw.com/", "http://www.w3.org/ns/ldp#", "http://localuriqaserver/", "virtrdf")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


class Server:
    """A Virtuoso server and its folder; creating this object does not start the server."""

    def __init__(self, folder: Path) -> None:
        self.folder = ServerFolder(folder)
        self._session = Session(self.folder)

    @classmethod
    def at(cls, folder: Path | None = None) -> Server:
        """Return the server of this folder; the folder need not exist yet.

        Args:
            folder: the folder; None for $KGQA_VIRTUOSO_FOLDER or, if this variable is not set, the folder `virtuoso`
                in kgqa's user data folder.
        """
        return cls(folder or default_folder())

    @classmethod
    def for_url(cls, url: str) -> Server | None:
        """Return the server in the default folder if it runs and this URL is its SPARQL endpoint, else None."""
        server = cls.at()
        try:
            parts = urlsplit(url)
            record, port = server.folder.record(), parts.port or 80
            own_hosts = {record.bind, *(LOOPBACK_NAMES if _answers_on_loopback(record.bind) else ())}
            if parts.scheme != "http" or port != record.http_port or (parts.hostname or "") not in own_hosts:
                return None
            return server if server_status(server.folder, server.url).state in ("running", "loading") else None
        except (ServerError, ValueError):
            return None

    def __repr__(self) -> str:
        return f"Server({str(self.folder.path)!r})"

    @property
    def url(self) -> str:
        """The address of the SPARQL endpoint."""
        record = self.folder.record()
        host = "127.0.0.1" if _answers_on_loopback(record.bind) else record.bind
        return f"http://{host}:{record.http_port}/sparql"

    @property
    def import_folder(self) -> Path:
        """The only folder that the server may read; files to load must be in this folder."""
        return self.folder.import_folder

    def start(
        self,
        *,
        http_port: int | None = None,
        sql_port: int | None = None,
        bind: str | None = None,
        memory_share: float | None = None,
        row_cap: int | None = None,
        query_seconds: int | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> bool:
        """Start the server, and create its database and password at the first start; return False if it runs already.

        An option that is None keeps its value from the last start. The value for the first start is in brackets.

        Args:
            http_port: port of the SPARQL endpoint. [8890]
            sql_port: port for SQL, on 127.0.0.1 only. [1111]
            bind: the IPv4 address of the SPARQL endpoint. ["127.0.0.1"]
            memory_share: part of the machine's memory that the server may use, above 0 and at most 1. [0.5]
            row_cap: maximum number of rows of a result; `EndpointStore` reports truncated results. [1,000,000]
            query_seconds: time limit of a query in seconds. [60]
            notify: called with a short line about each step that takes long.

        Raises:
            ServerError: the server cannot start; the message gives the reason and what to do.
        """
        given = {
            "http_port": http_port,
            "sql_port": sql_port,
            "bind": bind,
            "memory_share": memory_share,
            "row_cap": row_cap,
            "query_seconds": query_seconds,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        return starting.start(self.folder, changes, notify=notify or (lambda text: None))

    def preview(self, **options: Any) -> tuple[list[str], str]:
        """Return the command that `start` would run with these options, and the text of its virtuoso.ini."""
        changes = {name: value for name, value in options.items() if value is not None}
        record = replace(self.folder.record(), **changes)
        check_record(record)
        return command(self.folder.ini), render(self.folder, record)

    def adopt(
        self, database: Path, *, password: Callable[[], str] | None = None, notify: Callable[[str], None] | None = None
    ) -> Adoption:
        """Make the server use a different database file, without moving that file.

        The server must be stopped, and this method does not start it.

        Args:
            database: the file, usually called virtuoso.db, with its transaction log (.trx) beside it.
            password: function that returns the password of the database user dba; called if the server refuses the
                default password `dba`. A default password is replaced by a random one.
            notify: called with a short line about each step that takes long.

        Raises:
            ServerError: the file is not a database, is damaged, or is open in another server, or the password is
                wrong. Nothing has changed.
        """
        return adopt(self.folder, database, password=password, notify=notify or (lambda text: None))

    def stop(self, *, timeout: float = 600) -> bool:
        """Make the server write everything to disk and exit; return False if the server was not running.

        Args:
            timeout: seconds to wait until the server has ended.

        Raises:
            ServerError: the server did not end in time, or refuses the password.
        """
        owner = lock_owner(self.folder.lock)
        if owner is None:
            return False
        started = time.monotonic()
        try:
            shut_down(self._session.address(), timeout=timeout)
        except SqlError as error:
            raise explain_sql(error, self.folder) from None
        if not wait_for_end(owner.pid, timeout=max(1.0, timeout - (time.monotonic() - started))):
            raise ServerError(
                f"The server ({owner}) has not ended within {timeout:g} s. It may still be writing to disk.",
                f"Check with: kgqa virtuoso status. To end it anyway: kill {owner.pid}",
            )
        return True

    def status(self, *, count: bool = False) -> ServerStatus:
        """Return the status of the server.

        Args:
            count: whether to count the triples; this takes a while on large graphs.

        Raises:
            ServerError: the server's files cannot be read, or the running server refuses the password.
        """
        status = server_status(self.folder, self.url)
        entry = self.folder.journal()
        if status.state == "running" and entry and entry["files"]:  # a loading process was killed
            done = loaded_files(self._session)
            status = replace(status, message=load_list_journal.unfinished_loads(self.folder, done))
        if count and status.state in ("running", "loading"):
            status = replace(status, triples=self.triples())
        return status

    def sql(
        self, statement: str, parameters: Sequence[Parameter] = (), *, timeout: float | None = None
    ) -> list[tuple[str, ...]]:
        """Run one SQL statement as dba and return its rows; all values are strings, and NULL is the empty string.

        Args:
            statement: SQL without a final semicolon; each `?` stands for a parameter.
            parameters: values for the question marks; any string is safe.
            timeout: seconds; None waits without limit.

        Raises:
            SqlError: the server rejects the statement.
            ServerError: the server does not run, refuses the password, or does not answer in time.
        """
        return self._session.sql(statement, parameters, timeout=timeout)

    def triples(self) -> int:
        """Count the triples of all graphs, except the graphs that every new database contains."""
        rows = self.sql("select id_to_iri(G), count(*) from DB.DBA.RDF_QUAD group by G")
        return sum(int(number) for graph, number in rows if not graph.startswith(SYSTEM_GRAPHS))

    def holds(self, graph_iri: str) -> bool:
        """Tell whether a graph has at least one triple."""
        return bool(self.sql("select top 1 1 from DB.DBA.RDF_QUAD where G = iri_to_id(?, 0)", (graph_iri,)))

    def load(
        self,
        files: Sequence[Path],
        graph_iri: str,
        *,
        loaders: int = 2,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> list[FileResult]:
        """Load RDF files into a graph, several files at the same time, and write the result to disk.

        A file with an error does not stop the load; its result has the error. Triples before the error may have been
        loaded.

        Args:
            files: files in `import_folder`, in N-Triples, Turtle or any format that Virtuoso reads; .gz is allowed.
            graph_iri: the graph; created if needed.
            loaders: number of files that are read at the same time.
            progress: called about every half second.

        Returns:
            One result per file, in the order of `files`.

        Raises:
            ServerError: the server crashed, the disk is full, another load runs, or a file is outside `import_folder`.
                The message and `status()` list the files that have to be loaded again.
        """
        return run_load_list(self.folder, files, graph_iri, loaders=loaders, progress=progress)

    def checkpoint(self) -> None:
        """Write everything loaded so far to disk, so that it survives a crash."""
        self.sql("checkpoint")

    def index_names(self, graph_iri: str, predicates: Sequence[str]) -> None:
        """Add the literals of these predicates to the full-text index that `bif:contains` searches.

        Literals that are added later are indexed within minutes, or when this method is called again.
        """
        text_index.index_names(self.sql, graph_iri, predicates)

    def allow_updates(self, user: str = "kgqa", password: str | None = None) -> Path:
        """Create a user who may update graphs through /sparql-auth (HTTP digest); set the password if the user exists.

        Returns:
            The path of a file that contains the password; only the owner of the file can read it.
        """
        return users.allow_updates(self.folder, self.sql, user, password)


def _answers_on_loopback(bind: str) -> bool:
    try:
        address = ipaddress.ip_address(bind)
    except ValueError:
        return bind == "localhost"
    return address.is_unspecified or address.is_loopback
