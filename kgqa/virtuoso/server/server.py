"""A Virtuoso server of one's own: started, asked, filled and stopped without systemd and without being root."""

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
from kgqa.virtuoso.server.load_list import FileResult, LoadProgress, done_files, load_files
from kgqa.virtuoso.server.starting import check_record
from kgqa.virtuoso.server.status import Status, state_of

# what the server brings along holds a few thousand triples about itself
OWN_GRAPHS = ("http://www.openlinksw.com/", "http://www.w3.org/ns/ldp#", "http://localuriqaserver/", "virtrdf")
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


class Server:
    """One server and its folder. Making this object starts and changes nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = ServerFolder(folder)
        self._session = Session(self.folder)

    @classmethod
    def at(cls, folder: Path | None = None) -> Server:
        """The server of this folder, which need not exist yet.

        Args:
            folder: None for $KGQA_VIRTUOSO_FOLDER or, without that, a folder among the user's application data.
        """
        return cls(folder or default_folder())

    @classmethod
    def for_url(cls, url: str) -> Server | None:
        """The server in the default folder, if it runs and is the one that answers at this SPARQL endpoint."""
        server = cls.at()
        try:
            parts = urlsplit(url)
            record, port = server.folder.record(), parts.port or 80
            ours = {record.bind, *(LOOPBACK_NAMES if _answers_on_loopback(record.bind) else ())}
            if parts.scheme != "http" or port != record.http_port or (parts.hostname or "") not in ours:
                return None
            return server if state_of(server.folder, server.url).state in ("running", "loading") else None
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
        """The one folder the server may read files from; what is loaded must lie there."""
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
        say: Callable[[str], None] | None = None,
    ) -> bool:
        """Start the server, making its database and password first where there are none; False if it runs already.

        Args:
            http_port, sql_port: ports for SPARQL and SQL. [8890, 1111]
            bind: the address SPARQL is served on; SQL is served on 127.0.0.1 only. ["127.0.0.1"]
            memory_share: part of the machine's memory it may use. [0.5]
            row_cap: rows of the longest answer; longer ones are cut, which the endpoint store reports. [1,000,000]
            query_seconds: seconds after which a query is ended. [60]
            say: is told what takes long, in short lines.

            All of them: None is as it was last time, and the value in brackets the first time.

        Raises:
            ServerError: it cannot start; the message says why and what to do.
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
        return starting.start(self.folder, changes, say=say or (lambda text: None))

    def preview(self, **options: Any) -> tuple[list[str], str]:
        """What `start` with these options would run, and the settings file it would write; nothing is written."""
        changes = {name: value for name, value in options.items() if value is not None}
        record = replace(self.folder.record(), **changes)
        check_record(record)
        return command(self.folder.ini), render(self.folder, record)

    def adopt(
        self, database: Path, *, password: Callable[[], str] | None = None, say: Callable[[str], None] | None = None
    ) -> Adoption:
        """Use a ready database file from now on, where it lies; the server must be stopped, and is not started.

        Args:
            database: the file, usually called virtuoso.db; its .trx lies beside it.
            password: is asked for the password of dba if that is not `dba`; a `dba` is replaced by a random one.
            say: is told what takes long, in short lines.

        Raises:
            ServerError: no database, damaged, open in another server, or the password is wrong. Nothing has changed.
        """
        return adopt(self.folder, database, password=password, say=say or (lambda text: None))

    def stop(self, *, timeout: float = 600) -> bool:
        """Write everything to disk and end the server; False if it did not run.

        Args:
            timeout: seconds to wait for its end.

        Raises:
            ServerError: it did not end in time, or refuses our password.
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
                f"The server ({owner}) has not ended within {timeout:g} s: it may still be writing to disk. "
                f"Look again: kgqa virtuoso status. To end it without: kill {owner.pid}"
            )
        return True

    def status(self, *, count: bool = False) -> Status:
        """How the server is.

        Args:
            count: count the triples too, which takes a while on large graphs.

        Raises:
            ServerError: its files cannot be read; or it runs, but refuses our password.
        """
        status = state_of(self.folder, self.url)
        entry = self.folder.journal()
        if status.state == "running" and entry and entry["files"]:  # a kgqa was killed while it loaded
            lost = load_list_journal.still_lost(entry, done_files(self._session))
            status = replace(status, message=load_list_journal.left_to_do(self.folder, lost))
        if count and status.state in ("running", "loading"):
            status = replace(status, triples=self.triples())
        return status

    def sql(
        self, statement: str, parameters: Sequence[Parameter] = (), *, timeout: float | None = None
    ) -> list[tuple[str, ...]]:
        """Run one SQL statement as dba and give its rows; all values are text, NULL is the empty text.

        Args:
            statement: SQL without a semicolon at its end. Each `?` in it stands for a parameter.
            parameters: values for the question marks, text of any content; they are never part of the SQL's text.
            timeout: seconds; None waits.

        Raises:
            SqlError: the server's own message, if it refuses the statement.
            ServerError: it does not run, refuses our password, or does not answer in time.
        """
        return self._session.sql(statement, parameters, timeout=timeout)

    def triples(self) -> int:
        """How many triples there are in all graphs but those the server brings along."""
        rows = self.sql("select id_to_iri(G), count(*) from DB.DBA.RDF_QUAD group by G")
        return sum(int(number) for graph, number in rows if not graph.startswith(OWN_GRAPHS))

    def holds(self, graph_iri: str) -> bool:
        """Whether a graph has any triple."""
        return bool(self.sql("select top 1 1 from DB.DBA.RDF_QUAD where G = iri_to_id(?, 0)", (graph_iri,)))

    def load(
        self,
        files: Sequence[Path],
        graph_iri: str,
        *,
        loaders: int = 2,
        progress: Callable[[LoadProgress], None] | None = None,
    ) -> list[FileResult]:
        """Load RDF files into a graph, several at once, and write the result to disk.

        Files with an error are reported, the others are loaded. Triples before the place of an error may be in.

        Args:
            files: N-Triples, Turtle and what else Virtuoso reads, also as .gz; they lie in `import_folder`.
            graph_iri: the graph; it need not exist.
            loaders: how many files are read at the same time.
            progress: is called about every half second.

        Returns:
            One result a file, in the order of `files`.

        Raises:
            ServerError: the server died, the disk is full, another load runs, or a file does not lie in the import
                folder. If anything has to be loaded again, the message and `status()` say what.
        """
        return load_files(self.folder, files, graph_iri, loaders=loaders, progress=progress)

    def checkpoint(self) -> None:
        """Write everything loaded so far to disk: what comes before this survives a crash."""
        self.sql("checkpoint")

    def index_names(self, graph_iri: str, predicates: Sequence[str]) -> None:
        """Put the literals of these predicates into the full-text index, so that `bif:contains` finds them; what is
        loaded later is added when this is called again.
        """
        text_index.index_names(self.sql, graph_iri, predicates)

    def allow_updates(self, user: str = "kgqa", password: str | None = None) -> Path:
        """Make a user who may change graphs through /sparql-auth (HTTP digest), or give an existing one a password.

        Returns:
            The file with the password, which only its owner can read.
        """
        return users.allow_updates(self.folder, self.sql, user, password)


def _answers_on_loopback(bind: str) -> bool:
    try:
        address = ipaddress.ip_address(bind)
    except ValueError:
        return bind == "localhost"
    return address.is_unspecified or address.is_loopback
