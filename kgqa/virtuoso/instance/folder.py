"""The folder of a Virtuoso server and the files that kgqa keeps there.

~/.local/share/kgqa/virtuoso/    mode 0700
  server.json        options of the last start; each write is atomic
  password           password of the user dba; mode 0600
  password.own       password of the database created in this folder, while an adopted database is in use
  virtuoso.ini       the server's settings, written at every start
  virtuoso.db ...    the server's database files (elsewhere if a database was adopted)
  virtuoso.log       the server's log; output.log has what the server prints before it opens its log
  loading.json       exists while files are loaded and after an interrupted load
  import/            the only folder from which the server may read files
  www/               document root of the HTTP server, empty
"""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from msgspec import to_builtins
from platformdirs import user_data_dir

from kgqa.errors import KgqaError, ServerError
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.loading import convert
from kgqa.text.words import clean

FOLDER_VARIABLE = "KGQA_VIRTUOSO_FOLDER"
T = TypeVar("T")
CHOOSE_ANOTHER = f"{FOLDER_VARIABLE}=/path or --folder /path"
# a folder that has files, but none with these names, belongs to another program and is not used
KNOWN_NAMES = frozenset(("server.json", "virtuoso.ini", "making", "import"))
# virtuoso.ini cannot quote values: these characters would end or split a value
UNUSABLE_CHARACTERS = frozenset(",;\n\r$\"'#")


@dataclass(frozen=True)
class ServerRecord:
    """The content of server.json: the options of the last start, and the path of an adopted database.

    Attributes:
        memory_share: part of the machine's memory that the server may use, above 0 and at most 1.
        row_cap: maximum number of rows of a SPARQL result.
        query_seconds: time limit of a SPARQL query in seconds.
        database: path of the adopted database file; empty if the server uses the database in its own folder.
    """

    http_port: int = 8890
    sql_port: int = 1111
    bind: str = "127.0.0.1"
    memory_share: float = 0.5
    row_cap: int = 1_000_000
    query_seconds: int = 60
    database: str = ""


@dataclass
class LoadListJournal:
    """The content of loading.json: the files that are loaded into a graph.

    Attributes:
        files: paths of the files that are not known to be on disk.
        clients: process ids of the SQL clients that run the loaders.
    """

    graph: str
    files: list[str]
    clients: list[int] = field(default_factory=list)


def default_folder() -> Path:
    """Return KGQA_VIRTUOSO_FOLDER, or the `virtuoso` folder in kgqa's user data folder."""
    return Path(os.environ.get(FOLDER_VARIABLE) or Path(user_data_dir("kgqa"), "virtuoso"))


class ServerFolder:
    """Reads and writes the files in one server's folder; starts no process."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()
        self.import_folder = self.path / "import"
        self.ini = self.path / "virtuoso.ini"
        self.log = self.path / "virtuoso.log"
        self.output = self.path / "output.log"
        self.password_file = self.path / "password"
        # the password of the database in this folder while an adopted database is in use
        self.own_password_file = self.path / "password.own"
        # exists while a database is created, and after its creation was interrupted
        self.creation_marker = self.path / "making"
        self.journal_file = self.path / "loading.json"

    @property
    def folder_option(self) -> str:
        """The --folder option that commands for this server need; empty for the default folder."""
        return "" if self.path == default_folder().absolute() else f" --folder {shlex.quote(str(self.path))}"

    @property
    def own_database(self) -> Path:
        """The path of the database file in this folder, with symbolic links resolved; another file may be in use."""
        return self.path.resolve() / "virtuoso.db"

    @property
    def database(self) -> Path:
        """The path of the database file in use."""
        return self.database_of(self.record())

    def database_of(self, record: ServerRecord) -> Path:
        """Return the database file that a start with this record uses."""
        return Path(record.database or self.path / "virtuoso.db")

    @property
    def lock(self) -> Path:
        """The server's lock file. It is beside the database, so that two folders with the same database share it."""
        return self.database.with_suffix(".lck")

    def create(self) -> None:
        """Create the folder (mode 0700) and its subfolders.

        Raises:
            ServerError: permission is missing, the folder has files of other programs, or virtuoso.ini cannot hold the
                folder's path.
        """
        if UNUSABLE_CHARACTERS & set(str(self.path)) or str(self.path) != str(self.path).strip():
            raise ServerError(
                f"{self.path} cannot be the server's folder: virtuoso.ini cannot hold a path that contains any of "
                ", ; # $ ' \" or ends with a space.",
                f"Choose another folder: {CHOOSE_ANOTHER}",
            )
        try:
            if self.path.is_dir() and any(self.path.iterdir()) and not KNOWN_NAMES & set(os.listdir(self.path)):
                raise ServerError(
                    f"{self.path} contains other files; the server needs a folder of its own.",
                    f"Choose another: {CHOOSE_ANOTHER}",
                )
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
            self.import_folder.mkdir(exist_ok=True)
            (self.path / "www").mkdir(exist_ok=True)
        except OSError as error:
            raise ServerError(
                f"The server's folder {self.path} cannot be created or written ({error.strerror}).",
                f"Choose another: {CHOOSE_ANOTHER}",
            ) from error

    def record(self) -> ServerRecord:
        """Read server.json; return the default options if the file does not exist.

        Raises:
            ServerError: the file cannot be read or is damaged.
        """
        remedy = f"Remove that file and start again: kgqa virtuoso start{self.folder_option}"
        return self.read_json("server.json", ServerRecord, remedy) or ServerRecord()

    def journal(self) -> LoadListJournal | None:
        """Read loading.json; return None if no load is running or was interrupted.

        Raises:
            ServerError: the file cannot be read or is damaged.
        """
        remedy = "Remove that file and load the files that it lists again."
        return self.read_json(self.journal_file.name, LoadListJournal, remedy)

    def password(self) -> str:
        """Read the password of the database user dba.

        Raises:
            ServerError: the file does not exist or cannot be read.
        """
        try:
            return self.password_file.read_text(encoding="utf-8").rstrip("\n")
        except FileNotFoundError:
            raise ServerError(
                f"There is no password file {self.password_file}.",
                "Create this file with only the password of the "
                f"database user dba, or adopt the database again: "
                f"kgqa virtuoso adopt {self.database}{self.folder_option}",
            ) from None
        except OSError as error:
            raise ServerError(f"{self.password_file} cannot be read: {error.strerror}.") from error

    def write_private(self, name: str, text: str) -> Path:
        """Write a file atomically; it has mode 0600 from its creation.

        Raises:
            ServerError: permission is missing, or the disk is full.
        """
        target = self.path / name
        try:
            replace_file(target, [text.encode("utf-8")], mode=0o600)
        except OSError as error:
            raise ServerError(
                f"{target} cannot be written ({error.strerror}).",
                f"Check free space and permissions, or choose another folder: {CHOOSE_ANOTHER}",
            ) from error
        return target

    def write_json(self, name: str, data: object) -> None:
        """Write a data class as JSON; see `write_private`."""
        self.write_private(name, json.dumps(to_builtins(data), indent=1))

    def read_json(self, name: str, kind: type[T], remedy: str, error: type[KgqaError] = ServerError) -> T | None:
        """Read a file of `write_json`; return None if there is no such file.

        Args:
            kind: the data class.
            remedy: what to do if the file is damaged.
            error: the class of the error to raise if the file is damaged or cannot be read.
        """
        path = self.path / name
        try:
            found: T = convert(json.loads(path.read_text(encoding="utf-8")), kind)
            return found
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            raise error(f"{path} cannot be read: {problem.strerror}.") from problem
        except ValueError as problem:
            raise error(f"{path} is damaged ({clean(str(problem))[:200]}).", remedy) from problem
