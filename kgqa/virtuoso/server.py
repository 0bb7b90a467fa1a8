"""The class `Server`: starts, queries, loads and stops a Virtuoso server without systemd and without root."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from kgqa.errors import ServerError, SqlError
from kgqa.storage.lock_files import held, only_one
from kgqa.virtuoso.databases import new_password, prepare_database
from kgqa.virtuoso.folder import ServerFolder, default_folder
from kgqa.virtuoso.isql import LOST_CONNECTION, NO_CONNECTION, Session
from kgqa.virtuoso.loads import RunningLoad, load_lock
from kgqa.virtuoso.process import (
    Notify,
    client_program,
    command,
    explain_log,
    is_listening,
    launch,
    lock_owner,
    wait_for_end,
)

State = Literal["stopped", "starting", "running", "loading", "crashed"]
RUNNING = ("running", "loading")
_VERSION = re.compile(r" Version (\S+?)(?:-pthreads)? ")
# graphs with a few thousand triples that every new database contains
SYSTEM_GRAPHS = ("http://www.openlinksw.com/", "http://www.w3.org/ns/ldp#", "http://localuriqaserver/", "virtrdf")
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
            hosts = ("localhost", "127.0.0.1", "::1") if options.host == "127.0.0.1" else (options.bind,)
            own = parts.scheme == "http" and (parts.port or 80) == options.http_port and parts.hostname in hosts
            return server if own and server._state() in RUNNING else None
        except (ServerError, ValueError):
            return None

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
        folder = self.folder
        client_program()
        folder.create()
        with only_one(folder.path / "start.lock", wait_seconds=math.inf):
            if lock_owner(folder.lock):
                return False
            chosen = self._chosen(options)
            ini, bind, database = chosen.settings(), chosen.options().bind, chosen.options().database
            if database and database != folder.options().database:
                chosen.password_file.unlink(missing_ok=True)  # of another database
            prepare_database(chosen, notify=notify)
            folder.write_json("server.json", chosen.options())
            if chosen.lock.exists():
                notify("The server was not shut down properly; it recovers from its transaction log.")
                chosen.lock.unlink()
            if not ipaddress.IPv4Address(bind).is_loopback:
                notify(f"The SPARQL endpoint is open on {bind}: everybody who can reach this machine may query it.")
            folder.write(folder.ini.name, ini)
            launch(folder, folder.ini)
        return True

    def preview(self, **options: Any) -> tuple[list[str], str]:
        """Return the command that `start` would run with these options, and the text of its virtuoso.ini."""
        return command(self.folder.ini), self._chosen(options).settings()

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
        try:
            self.sql("shutdown", timeout=timeout)
        except SqlError as error:
            if error.state not in (LOST_CONNECTION, NO_CONNECTION):  # the shutdown breaks the connection
                raise
        if not wait_for_end(owner, timeout=timeout):
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

    def load(
        self,
        files: Sequence[Path],
        graph_iri: str,
        *,
        loaders: int = 2,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Load RDF files into a graph, several files at the same time, and write the result to disk.

        Args:
            files: files in `import_folder`, in N-Triples, Turtle or any format that Virtuoso reads; .gz is allowed.
            graph_iri: the graph; created if needed.
            loaders: number of files that are read at the same time.
            progress: called several times per second with the number of files that are done.

        Raises:
            ServerError: the server rejects a line, crashed, the disk is nearly full, another load runs, or a file is
                outside `import_folder`.
        """
        with load_lock(self.folder) as lock:
            RunningLoad(self, files, graph_iri, lock=lock, loaders=loaders).wait(progress)

    def allow_updates(self, user: str = "kgqa") -> Path:
        """Create a user who may update graphs through /sparql-auth (HTTP digest).

        Returns:
            The path of a file that contains the user's password; only the owner of the file can read it.
        """
        file = self.folder.path / f"password-{user}"
        if not file.exists():
            self.folder.write(file.name, new_password() + "\n")
        password = file.read_text(encoding="utf-8").strip()
        if self.sql("select 1 from DB.DBA.SYS_USERS where U_NAME = ?", (user,)):
            self.sql("USER_SET_PASSWORD(?, ?)", (user, password))
        else:
            self.sql("DB.DBA.USER_CREATE(?, ?)", (user, password))
            self.sql(f'grant SPARQL_UPDATE to "{user}"')
        return file

    def _chosen(self, given: dict[str, Any]) -> ServerFolder:
        new = {name: value for name, value in given.items() if value is not None}
        return ServerFolder(self.folder.path, replace(self.folder.options(), **new))

    def _state(self) -> State:
        folder = self.folder
        if lock_owner(folder.lock) is None:
            return "crashed" if folder.lock.exists() else "stopped"
        if not is_listening(folder.options().sql_port):
            return "starting"
        return "loading" if held(folder.load_lock) else "running"
