"""The class `Server`: starts, queries, loads and stops a Virtuoso server without systemd and without root."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from kgqa.errors import ServerError, SqlError
from kgqa.storage.lock_files import held, only_one
from kgqa.virtuoso.configuration import ServerOptions, render
from kgqa.virtuoso.databases import DEFAULT_PASSWORD, adopt_database, check_database, create_database, new_password
from kgqa.virtuoso.folder import ServerFolder, default_folder
from kgqa.virtuoso.isql import LOST_CONNECTION, NO_CONNECTION, client_program, server_program
from kgqa.virtuoso.load_list import FileResult, RunningLoad, load_lock
from kgqa.virtuoso.process import Notify, command, is_listening, launch, lock_owner, wait_for_end
from kgqa.virtuoso.server_log import explain_log
from kgqa.virtuoso.sessions import Session

State = Literal["stopped", "starting", "running", "loading", "crashed"]
RUNNING = ("running", "loading")
_VERSION = re.compile(r" Version (\S+?)(?:-pthreads)? ")
# graphs with a few thousand triples that every new database contains
SYSTEM_GRAPHS = ("http://www.openlinksw.com/", "http://www.w3.org/ns/ldp#", "http://localuriqaserver/", "virtrdf")
# the code of the error after granting a role that the user already has
HAS_ROLE = "U0013"
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
RESUME_COMMANDS = {
    "freebase-load.json": "kgqa freebase load DUMP --resume",
    "graph-load.json": "kgqa graph load --resume --into URL",
}
"""Map from the journals of loads to the commands that resume these loads."""


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


class Server(Session):
    """A Virtuoso server and its folder; creating this object does not start the server."""

    @classmethod
    def at(cls, folder: Path | None = None) -> Server:
        """Return the server of this folder; the folder need not exist yet.

        Args:
            folder: the folder; None for $KGQA_VIRTUOSO_FOLDER or, if this variable is not set, the folder `virtuoso`
                in kgqa's user data folder.
        """
        return cls(ServerFolder(folder or default_folder()))

    @classmethod
    def for_url(cls, url: str) -> Server | None:
        """Return the server in the default folder if it runs and this URL is its SPARQL endpoint, else None."""
        server = cls.at()
        try:
            parts, options = urlsplit(url), server.folder.options()
            hosts = LOOPBACK_NAMES if options.host == "127.0.0.1" else (options.bind,)
            own = parts.scheme == "http" and (parts.port or 80) == options.http_port and parts.hostname in hosts
            return server if own and server._state() in RUNNING else None
        except (ServerError, ValueError):
            return None

    def __repr__(self) -> str:
        return f"Server({str(self.folder.path)!r})"

    @property
    def url(self) -> str:
        """The address of the SPARQL endpoint."""
        options = self.folder.options()
        return f"http://{options.host}:{options.http_port}/sparql"

    @property
    def import_folder(self) -> Path:
        """The only folder that the server may read; files to load must be in this folder."""
        return self.folder.import_folder

    def start(self, *, notify: Notify = lambda text: None, **options: Any) -> bool:
        """Start the server, and create its database and password at the first start; return False if it runs already.

        Args:
            notify: called with a short line about each step that takes long.
            options: fields of `ServerOptions`; those that are missing or None keep their values from the last start.

        Raises:
            ServerError: the server cannot start; the message gives the reason and what to do.
        """
        server_program(), client_program()
        folder = self.folder
        folder.create()
        with only_one(folder.path / "start.lock", wait_seconds=math.inf):
            if lock_owner(folder.lock):
                return False
            _, ini = self.preview(**options)
            chosen = self._options(options)
            if not chosen.database and not folder.own_database.exists():
                create_database(folder, chosen, notify=notify)
            check_database(folder.database)
            folder.password()
            if folder.lock.exists():
                notify("The server was not shut down properly; it recovers from its transaction log.")
                folder.lock.unlink()
            if chosen.host != "127.0.0.1" or chosen.bind == "0.0.0.0":
                notify(
                    f"The SPARQL endpoint is open on {chosen.bind}: everybody who can reach this machine may query it."
                )
            folder.write_json("server.json", chosen)
            folder.write(folder.ini.name, ini)
            launch(folder, folder.ini, notify=notify)
        return True

    def preview(self, **options: Any) -> tuple[list[str], str]:
        """Return the command that `start` would run with these options, and the text of its virtuoso.ini."""
        return command(self.folder.ini), render(self.folder.path, self._options(options))

    def adopt(self, database: Path, *, password: Callable[[], str], notify: Notify = lambda text: None) -> None:
        """Make the stopped server use a different database file from its next start, without moving that file.

        Args:
            database: the file, usually called virtuoso.db, with its transaction log (.trx) beside it. The one in the
                server's folder ends the use of another one.
            password: function that returns the password of the database user dba; called if the server refuses the
                default password `dba` and the one that was used before. A default password is replaced by a random one.
            notify: called with a short line about each step that takes long.

        Raises:
            ServerError: the server runs, the file is not a database or is open in another server, or the password is
                wrong. Nothing has changed.
        """

        def passwords() -> Iterator[str]:
            yield DEFAULT_PASSWORD
            own = database.resolve() == self.folder.own_database.resolve()
            file = self.folder.path / ("password" if own else "password.adopted")
            if file.exists():
                yield file.read_text(encoding="utf-8").rstrip("\n")
            yield password()

        server_program(), client_program()
        self.folder.create()
        with only_one(self.folder.path / "start.lock", wait_seconds=math.inf):
            if owner := lock_owner(self.folder.lock):
                raise ServerError(
                    f"The server of {self.folder.path} is running (process {owner}).",
                    f"Stop the server first: kgqa virtuoso stop{self.folder.folder_option}",
                )
            adopt_database(self.folder, database, passwords(), notify=notify)

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
        deadline = time.monotonic() + timeout
        try:
            self.sql("shutdown", timeout=timeout)
        except SqlError as error:
            if error.state not in (LOST_CONNECTION, NO_CONNECTION):  # the shutdown breaks the connection
                raise
        if not wait_for_end(owner, timeout=max(1.0, deadline - time.monotonic())):
            raise ServerError(
                f"The server (process {owner}) has not ended within {timeout:g} s. It may still be writing to disk.",
                f"Check with: kgqa virtuoso status. To end it anyway: kill {owner}",
            )
        return True

    def status(self, *, count: bool = False) -> ServerStatus:
        """Return the status of the server.

        Args:
            count: whether to count the triples; this takes a while on large graphs.

        Raises:
            ServerError: the server's files cannot be read, or the running server refuses the password.
        """
        folder, state = self.folder, self._state()
        parts = []
        if state == "crashed":
            parts = [
                "The server process ended without a shutdown: it was killed or crashed.",
                explain_log(folder.log),
                f"Start it again with: kgqa virtuoso start{folder.folder_option} (it recovers by itself)",
            ]
        elif state == "starting":
            parts = ["The server is reading its database or transaction log, or is shutting down."]
        if state != "loading":
            parts += [
                f"A load was interrupted. Resume it: {resume}"
                for journal, resume in RESUME_COMMANDS.items()
                if (folder.path / journal).exists()
            ]
        disk_bytes, version = 0, None
        for path in {*folder.path.rglob("*"), folder.database, folder.database.with_suffix(".trx")}:
            with suppress(OSError):  # the server has removed the file
                disk_bytes += path.stat().st_blocks * 512 if path.is_file() else 0
        if state in RUNNING:
            version = _VERSION.search(folder.output.read_text("utf-8", "replace"))
        return ServerStatus(
            state=state,
            url=self.url,
            folder=str(folder.path),
            pid=lock_owner(folder.lock),
            version=version[1] if version else "",
            triples=self.triples() if count and state in RUNNING else None,
            disk_bytes=disk_bytes,
            message=" ".join(filter(None, parts)),
        )

    def triples(self) -> int:
        """Count the triples of all graphs, except the graphs that every new database contains."""
        rows = self.sql("select id_to_iri(G), count(*) from DB.DBA.RDF_QUAD group by G")
        return sum(int(number) for graph, number in rows if not graph.startswith(SYSTEM_GRAPHS))

    def triples_of(self, graph_iri: str) -> int:
        """Count the triples of a graph with SQL, because SPARQL queries have a time limit."""
        rows = self.sql("select count(*) from DB.DBA.RDF_QUAD where G = iri_to_id(?, 0)", (graph_iri,))
        return int(rows[0][0])

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
            progress: called several times per second with the number of files that are done.

        Returns:
            One result per file, in the order of `files`.

        Raises:
            ServerError: the server crashed, the disk is nearly full, another load runs, or a file is outside
                `import_folder`.
        """
        with load_lock(self.folder) as lock:
            return RunningLoad(self, files, graph_iri, lock=lock, loaders=loaders).wait(progress)

    def allow_updates(self, user: str = "kgqa", password: str | None = None) -> Path:
        """Create a user who may update graphs through /sparql-auth (HTTP digest); set the password if the user exists.

        Returns:
            The path of a file that contains the password; only the owner of the file can read it.
        """
        if not re.fullmatch(r"[A-Za-z0-9_]+", user) or user.lower() in ("dba", "dav", "nobody"):
            raise ServerError(
                f"{user!r} cannot be used as a user name.",
                "Use only letters, digits and underscores. The names dba, dav and nobody belong to the server.",
            )
        password = password or new_password()
        file = self.folder.write(f"password-{user}", password + "\n")
        exists = self.sql("select 1 from DB.DBA.SYS_USERS where U_NAME = ?", (user,))
        self.sql("USER_SET_PASSWORD(?, ?)" if exists else "DB.DBA.USER_CREATE(?, ?)", (user, password))
        try:
            self.sql(f'grant SPARQL_UPDATE to "{user}"')
        except SqlError as error:
            if HAS_ROLE not in str(error):
                raise
        return file

    def _options(self, given: dict[str, Any]) -> ServerOptions:
        return replace(self.folder.options(), **{name: value for name, value in given.items() if value is not None})

    def _state(self) -> State:
        folder = self.folder
        if lock_owner(folder.lock) is None:
            return "crashed" if folder.lock.exists() else "stopped"
        if not is_listening(folder.options().sql_port):
            return "starting"
        return "loading" if held(folder.load_lock) else "running"
