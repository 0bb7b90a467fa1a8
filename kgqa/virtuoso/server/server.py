"""The class `Server`: starts, queries, loads and stops a Virtuoso server without systemd and without root."""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from typing import Literal as OneOf
from urllib.parse import urlsplit

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.configuration import render
from kgqa.virtuoso.instance.folder import ServerFolder, default_folder
from kgqa.virtuoso.instance.isql import Parameter
from kgqa.virtuoso.instance.launching import command, shut_down, wait_for_end
from kgqa.virtuoso.instance.processes import Process, is_listening, lock_owner
from kgqa.virtuoso.instance.server_log import last_error, log_tail
from kgqa.virtuoso.instance.session import Session, explain_sql
from kgqa.virtuoso.server import starting
from kgqa.virtuoso.server.adopting import Adoption, adopt
from kgqa.virtuoso.server.load_list import (
    FileResult,
    has_running_loader,
    loaded_files,
    run_load_list,
    unfinished_loads,
)
from kgqa.virtuoso.server.starting import check_record

State = OneOf["stopped", "starting", "running", "loading", "crashed"]
_VERSION = re.compile(r"^\S+ Version (\S+)", re.MULTILINE)
# graphs with a few thousand triples that every new database contains
SYSTEM_GRAPHS = ("http://www.openlinksw.com/", "http://www.w3.org/ns/ldp#", "http://localuriqaserver/", "virtrdf")
# the reason of the full-text rules that `index_names` adds
INDEX_OWNER = "kgqa"
# the code of the error after granting a role that the user already has
HAS_ROLE = "U0013"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
RUNNING = ("running", "loading")


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """The status of a server.

    Attributes:
        triples: number of triples in all graphs; None if they were not counted.
        disk_bytes: size in bytes of the database and of all files in the server's folder.
        message: what is wrong and what to do; empty if nothing is wrong.
    """

    state: State
    url: str
    folder: str
    pid: int | None = None
    version: str = ""
    triples: int | None = None
    disk_bytes: int = 0
    message: str = ""


def _state(folder: ServerFolder, owner: Process | None) -> tuple[State, str]:
    """Return the state and what is wrong, without a request to the server; `owner` holds the database's lock file."""
    journal, lost = folder.journal(), unfinished_loads(folder)
    if owner is None:
        if not folder.lock.exists():
            return "stopped", lost
        parts = [
            "The server process ended without a shutdown: it was killed or crashed.",
            last_error(log_tail(folder.log)),
            "Files that were being loaded may have to be loaded again; the next start lists them." if journal else lost,
            f"Start it again with: kgqa virtuoso start{folder.folder_option} (it recovers by itself)",
        ]
        return "crashed", " ".join(part for part in parts if part)
    if not is_listening(folder.record().sql_port):
        return "starting", "The server is reading its database or transaction log, or is shutting down."
    return ("loading", "") if journal and has_running_loader(journal) else ("running", lost)


def _disk_bytes(folder: ServerFolder) -> int:
    """Return the size on disk, in bytes, of the server's folder and of an adopted database outside this folder."""
    total = 0
    for path in {*folder.path.rglob("*"), folder.database, folder.database.with_suffix(".trx")}:
        with suppress(OSError):  # the server has removed the file
            total += path.stat().st_blocks * 512 if path.is_file() else 0
    return total


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
            return server if _state(server.folder, lock_owner(server.folder.lock))[0] in RUNNING else None
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
        owner = lock_owner(self.folder.lock)
        state, message = _state(self.folder, owner)
        entry = self.folder.journal()
        if state == "running" and entry and entry.files:  # a loading process was killed
            message = unfinished_loads(self.folder, loaded_files(self._session))
        versions = _VERSION.findall(log_tail(self.folder.log)) if owner else ()
        return ServerStatus(
            state=state,
            url=self.url,
            folder=str(self.folder.path),
            pid=owner.pid if owner else None,
            version=versions[-1].removesuffix("-pthreads") if versions else "",
            triples=self.triples() if count and state in RUNNING else None,
            disk_bytes=_disk_bytes(self.folder),
            message=message,
        )

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
        progress: Callable[[int], None] | None = None,
    ) -> list[FileResult]:
        """Load RDF files into a graph, several files at the same time, and write the result to disk.

        A file with an error does not stop the load; its result has the error. Triples before the error may have been
        loaded.

        Args:
            files: files in `import_folder`, in N-Triples, Turtle or any format that Virtuoso reads; .gz is allowed.
            graph_iri: the graph; created if needed.
            loaders: number of files that are read at the same time.
            progress: called about every half second with the number of files that are done.

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
        for predicate in predicates:
            self.sql("DB.DBA.RDF_OBJ_FT_RULE_ADD(?, ?, ?)", (graph_iri, predicate, INDEX_OWNER))
        self.sql("DB.DBA.VT_INC_INDEX_DB_DBA_RDF_OBJ()")
        # the interval in minutes; see SchedulerInterval in virtuoso.ini
        self.sql("DB.DBA.VT_BATCH_UPDATE('DB.DBA.RDF_OBJ', 'ON', ?)", (1,))
        self.checkpoint()

    def remove_index_rules(self, graph_iri: str) -> None:
        """Remove the rules of `index_names` for a graph, so that literals loaded later are not indexed."""
        for (predicate,) in self.sql(
            "select ROFR_P from DB.DBA.RDF_OBJ_FT_RULES where ROFR_G = ? and ROFR_REASON = ?", (graph_iri, INDEX_OWNER)
        ):
            self.sql("DB.DBA.RDF_OBJ_FT_RULE_DEL(?, ?, ?)", (graph_iri, predicate, INDEX_OWNER))

    def allow_updates(self, user: str = "kgqa", password: str | None = None) -> Path:
        """Create a user who may update graphs through /sparql-auth (HTTP digest); set the password if the user exists.

        Returns:
            The path of a file that contains the password; only the owner of the file can read it.
        """
        if not (user.isascii() and user.replace("_", "").isalnum()) or user.lower() in ("dba", "dav", "nobody"):
            raise ServerError(
                f"{user!r} cannot be used as a user name.",
                "Use only letters, digits and underscores. The names dba, dav and nobody belong to the server.",
            )
        password = password or starting.new_password()
        file = self.folder.write_private(f"password-{user}", password + "\n")
        if not self.sql("select 1 from DB.DBA.SYS_USERS where U_NAME = ?", (user,)):
            self.sql("DB.DBA.USER_CREATE(?, ?)", (user, password))
        else:
            self.sql("USER_SET_PASSWORD(?, ?)", (user, password))
        try:
            self.sql(f'grant SPARQL_UPDATE to "{user}"')
        except SqlError as error:
            if HAS_ROLE not in str(error):
                raise
        return file


def _answers_on_loopback(bind: str) -> bool:
    try:
        address = ipaddress.ip_address(bind)
    except ValueError:
        return bind == "localhost"
    return address.is_unspecified or address.is_loopback
