"""The folder of a Virtuoso server: its options, settings file, passwords and journals.

~/.local/share/kgqa/virtuoso/    mode 0700
  server.json        options of the last start; each write is atomic
  password           password of the user dba; mode 0600
  password.other     password of the user dba of a database elsewhere that is in use; mode 0600
  virtuoso.ini       the server's settings, written at every start
  virtuoso.db ...    the server's database files, unless a database elsewhere is in use
  virtuoso.log       the server's log; output.log has what the server prints before it opens its log
  new/               a database that is being created
  import/            the only folder from which the server may read files
  loading.lock       held while files are loaded
  *-load.json        the state of a load that is running or was interrupted
  www/               document root of the HTTP server, empty
"""

from __future__ import annotations

import ipaddress
import os
import shlex
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TypeVar

import msgspec
from platformdirs import user_data_dir

from kgqa.errors import ServerError
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.loading import load
from kgqa.text.hints import Hint, Option

FOLDER_VARIABLE = "KGQA_VIRTUOSO_FOLDER"
# a page of 8 KiB, and about 700 bytes of overhead per buffer (OpenLink's figure)
BYTES_PER_BUFFER = 8700
MIN_BUFFERS = 10_000
CGROUP_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")
T = TypeVar("T")


@dataclass(frozen=True)
class ServerOptions:
    """The options of a server, kept in server.json for the next start.

    Attributes:
        http_port: port of the SPARQL endpoint.
        sql_port: port for SQL, on 127.0.0.1 only.
        bind: the IPv4 address of the SPARQL endpoint.
        memory_share: part of the machine's memory that the server may use, above 0 and at most 1.
        row_cap: maximum number of rows of a SPARQL result.
        query_seconds: time limit of a SPARQL query in seconds.
        database: path of a database file elsewhere; empty if the server uses the database in its own folder.
    """

    http_port: int = 8890
    sql_port: int = 1111
    bind: str = "127.0.0.1"
    memory_share: float = 0.5
    row_cap: int = 1_000_000
    query_seconds: int = 60
    database: str = ""

    @property
    def host(self) -> str:
        """The address at which a client on this machine reaches the SPARQL endpoint."""
        address = ipaddress.IPv4Address(self.bind)
        return "127.0.0.1" if address.is_unspecified or address.is_loopback else self.bind


def machine_memory(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process may use: the machine's memory, or the limit of its control group."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in CGROUP_LIMITS:
        with suppress(OSError, ValueError):  # the file does not exist, or contains "max"
            limits.append(int((root / name).read_text()))
    return min(limits)


def default_folder() -> Path:
    """Return KGQA_VIRTUOSO_FOLDER, or the `virtuoso` folder in kgqa's user data folder."""
    return Path(os.environ.get(FOLDER_VARIABLE) or Path(user_data_dir("kgqa"), "virtuoso"))


class ServerFolder:
    """Reads and writes the files in one server's folder; starts no process.

    Args:
        path: the folder.
        options: the options of the server; None for those of its last start.
    """

    def __init__(self, path: Path, options: ServerOptions | None = None) -> None:
        self.path = Path(path).absolute()
        self.import_folder = self.path / "import"
        self.ini = self.path / "virtuoso.ini"
        self.log = self.path / "virtuoso.log"
        self.output = self.path / "output.log"
        self.load_lock = self.path / "loading.lock"
        self._options = options

    @property
    def folder_option(self) -> str:
        """The --folder option that commands for this server need; empty for the default folder."""
        return "" if self.path == default_folder().absolute() else f" --folder {shlex.quote(str(self.path))}"

    @property
    def database(self) -> Path:
        """The path of the database file in use."""
        return Path(self.options().database or self.path / "virtuoso.db")

    @property
    def lock(self) -> Path:
        """The server's lock file. It is beside the database, so that two folders with the same database share it."""
        return self.database.with_suffix(".lck")

    @property
    def password_file(self) -> Path:
        """The file with the password of the user dba of the database in use."""
        return self.path / ("password.other" if self.options().database else "password")

    def create(self) -> None:
        """Create the folder (mode 0700) and its subfolders.

        Raises:
            ServerError: permission is missing, or the folder has files of other programs.
        """
        choose = Hint(f"Choose another folder: {FOLDER_VARIABLE}=/path or ", Option("folder", "/path"))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            names = os.listdir(self.path)
            if names and not {"server.json", "virtuoso.ini", "import"} & set(names):
                raise ServerError(f"{self.path} contains other files; the server needs a folder of its own.", choose)
            self.path.chmod(0o700)
            for folder in (self.import_folder, self.path / "www"):
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise ServerError(
                f"The server's folder {self.path} cannot be created or written ({error.strerror}).", choose
            ) from error

    def options(self) -> ServerOptions:
        """Return the options of the server; the defaults if it was never started.

        Raises:
            ServerError: server.json cannot be read or is damaged.
        """
        remedy = f"Remove that file and start again: kgqa virtuoso start{self.folder_option}"
        return self._options or self.read_json("server.json", ServerOptions, remedy) or ServerOptions()

    def settings(self) -> str:
        """Return the text of virtuoso.ini.

        Four fifths of the server's memory are for page buffers, of which three quarters may have unsaved changes, and
        one fifth is for hash tables and sorts of queries.
        """
        options, database = self.options(), self.database
        text = files("kgqa.virtuoso_files").joinpath("virtuoso.ini.tmpl").read_text(encoding="utf-8")
        memory = machine_memory() * options.memory_share
        buffers = max(MIN_BUFFERS, int(memory * 0.8 / BYTES_PER_BUFFER))
        return Template(text).substitute(
            folder=self.path,
            import_folder=self.import_folder,
            database=database,
            lock=self.lock,
            transactions=database.with_suffix(".trx"),
            xa=database.with_suffix(".pxa"),
            remap=max(2000, buffers // 4),
            sql_port=options.sql_port,
            http_address=f"{options.bind}:{options.http_port}",
            buffers=buffers,
            dirty=buffers * 3 // 4,
            query_memory=max(100 << 20, int(memory * 0.2)),
            threads=max(2, min(16, os.cpu_count() or 2)),
            row_cap=options.row_cap,
            query_seconds=options.query_seconds,
        )

    def password(self) -> str:
        """Read the password of the database user dba.

        Raises:
            ServerError: the file cannot be read.
        """
        try:
            return self.password_file.read_text(encoding="utf-8").rstrip("\n")
        except OSError as error:
            raise ServerError(
                f"{self.password_file} cannot be read: {error.strerror}.",
                "Create this file with only the password of the database user dba.",
            ) from error

    def write(self, name: str, text: str) -> Path:
        """Write a file atomically; it has mode 0600 from its creation. Raises OSError."""
        target = self.path / name
        replace_file(target, [text.encode("utf-8")], mode=0o600)
        return target

    def write_json(self, name: str, data: object) -> None:
        """Write a data class as JSON; see `write`."""
        self.write(name, msgspec.json.encode(data).decode())

    def read_json(self, name: str, kind: type[T], remedy: Hint | str) -> T | None:
        """Read a file of `write_json`; return None if there is no such file.

        Args:
            kind: the data class.
            remedy: what to do if the file is damaged.
        """
        path = self.path / name
        return load(path, kind, error=ServerError, hint=remedy) if path.exists() else None
