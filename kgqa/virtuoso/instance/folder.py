"""What lies in the folder of a Virtuoso server, and the small files kgqa keeps there.

~/.local/share/kgqa/virtuoso/    only its owner may enter
  server.json        how the server was last started; replaced atomically
  password           of the user dba; only its owner may read it
  password.own       that of the folder's own database, while an adopted one is in use
  virtuoso.ini       written anew at every start
  virtuoso.db ...    the server's own files (elsewhere where a database was adopted)
  virtuoso.log       what the server says; output.log what it said before it had a log
  loading.json       only while files are loaded, or after that was interrupted
  import/            the only folder the server may read files from
  www/               empty: what the HTTP server shows
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from kgqa.errors import ServerError
from kgqa.virtuoso.instance.memory import DEFAULT_SHARE
from kgqa.words import clean

VARIABLE = "KGQA_VIRTUOSO_FOLDER"
HTTP_PORT = 8890
SQL_PORT = 1111
ROW_CAP = 1_000_000
QUERY_SECONDS = 60
ANOTHER = f"{VARIABLE}=/path or --folder /path"
# by these a folder is known for a server's: whatever else lies in a folder is not ours to lock away
OWN_NAMES = frozenset(("server.json", "virtuoso.ini", "making", "import"))
# the server's settings file cannot quote: these would end a value or split it
UNUSABLE = frozenset(",;\n\r$\"'#")


@dataclass(frozen=True)
class ServerRecord:
    """The content of server.json: how the server was started last, and what is known of its database.

    `database` is the adopted database file, empty for the folder's own.
    """

    http_port: int = HTTP_PORT
    sql_port: int = SQL_PORT
    bind: str = "127.0.0.1"
    memory_share: float = DEFAULT_SHARE
    row_cap: int = ROW_CAP
    query_seconds: int = QUERY_SECONDS
    database: str = ""


def _is_journal(data: dict[str, Any]) -> bool:
    """Whether this has the form of loading.json."""
    graph, files, lost, clients = (data.get(name) for name in ("graph", "files", "lost", "clients"))
    return (
        isinstance(graph, str)
        and isinstance(files, list)
        and isinstance(lost, dict)
        and isinstance(clients, list)
        and all(isinstance(text, str) for text in (*files, *lost.values()))
        and all(type(pid) is int for pid in clients)
    )


def default_folder() -> Path:
    """KGQA_VIRTUOSO_FOLDER, or a folder among the user's application data."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    from platformdirs import user_data_dir

    return Path(user_data_dir("kgqa")) / "virtuoso"


class ServerFolder:
    """Reads and writes the bookkeeping of one server's folder; starts nothing."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path).absolute()

    @property
    def option(self) -> str:
        """What a command for this server needs behind it: nothing where it is the default one."""
        return "" if self.path == default_folder().absolute() else f" --folder {shlex.quote(str(self.path))}"

    @property
    def import_folder(self) -> Path:
        return self.path / "import"

    @property
    def ini(self) -> Path:
        return self.path / "virtuoso.ini"

    @property
    def log(self) -> Path:
        return self.path / "virtuoso.log"

    @property
    def output(self) -> Path:
        return self.path / "output.log"

    @property
    def password_file(self) -> Path:
        return self.path / "password"

    @property
    def own_database(self) -> Path:
        """The folder's own database file, in use or not; without links, so that it can be compared."""
        return self.path.resolve() / "virtuoso.db"

    @property
    def own_password_file(self) -> Path:
        """The password of the folder's own database while another one is in use."""
        return self.path / "password.own"

    @property
    def making(self) -> Path:
        """Is there while a new database is made, and after that was interrupted."""
        return self.path / "making"

    @property
    def journal_file(self) -> Path:
        return self.path / "loading.json"

    @property
    def database(self) -> Path:
        """The database file in use."""
        return self.database_of(self.record())

    def database_of(self, record: ServerRecord) -> Path:
        """The database file that a start with this record would use."""
        return Path(record.database or self.path / "virtuoso.db")

    @property
    def lock(self) -> Path:
        """The server's own lock file. It lies beside the database, so that two folders with one database meet."""
        return self.database.with_suffix(".lck")

    def make(self) -> None:
        """Make the folder and those in it; nobody but their owner may enter.

        Raises:
            ServerError: no permission, other files in it, or a path the server cannot be told.
        """
        if UNUSABLE & set(str(self.path)) or str(self.path) != str(self.path).strip():
            raise ServerError(
                f"{self.path} cannot be the server's folder: its settings file cannot hold a path with any of "
                f", ; # $ ' \" in it, or a blank at its end. Choose another: {ANOTHER}"
            )
        try:
            if self.path.is_dir() and any(self.path.iterdir()) and not OWN_NAMES & set(os.listdir(self.path)):
                raise ServerError(
                    f"{self.path} has other files in it; a server needs a folder of its own. Choose another: {ANOTHER}"
                )
            self.path.mkdir(parents=True, exist_ok=True)
            self.path.chmod(0o700)
            self.import_folder.mkdir(exist_ok=True)
            (self.path / "www").mkdir(exist_ok=True)
        except OSError as error:
            raise ServerError(
                f"The server's folder {self.path} cannot be made or written ({error.strerror}). "
                f"Choose another: {ANOTHER}"
            ) from error

    def record(self) -> ServerRecord:
        """What server.json says; the defaults where there is none.

        Raises:
            ServerError: it cannot be read or is damaged.
        """
        data = self._read_json(self.path / "server.json")
        if data is None:
            return ServerRecord()
        try:
            record = ServerRecord(**data)
        except TypeError:
            raise ServerError(
                f"{self.path / 'server.json'} was written by another version of kgqa. "
                f"Remove that file and start again: kgqa virtuoso start{self.option}"
            ) from None
        for each in fields(record):
            value, kind = getattr(record, each.name), type(each.default)
            if type(value) is not kind and not (kind is float and type(value) is int):
                raise ServerError(
                    f"{self.path / 'server.json'} is damaged ({each.name} is {clean(repr(value))[:80]}). Remove that file "
                    f"and start again: kgqa virtuoso start{self.option}"
                )
        return record

    def save_record(self, record: ServerRecord) -> None:
        self.write_private("server.json", json.dumps(asdict(record), indent=1))

    def journal(self) -> dict[str, Any] | None:
        """What loading.json says; None when no load is running or was interrupted.

        Raises:
            ServerError: it cannot be read or is damaged.
        """
        data = self._read_json(self.journal_file)
        if data is not None and not _is_journal(data):
            raise ServerError(
                f"{self.journal_file} was written by another version of kgqa. Remove it: what it says has to be loaded "
                f"again is then forgotten."
            )
        return data

    def password(self) -> str:
        """The password of dba.

        Raises:
            ServerError: there is none, or it cannot be read.
        """
        try:
            return self.password_file.read_text(encoding="utf-8").rstrip("\n")
        except FileNotFoundError:
            raise ServerError(
                f"There is no password file at {self.password_file}. Put the password of dba into it (and nothing "
                f"else), or adopt the database again: kgqa virtuoso adopt {self.database}{self.option}"
            ) from None
        except OSError as error:
            raise ServerError(f"{self.password_file} cannot be read: {error.strerror}.") from error

    def write_private(self, name: str, text: str) -> Path:
        """Write a file that only its owner can read from the moment it is there; a reader sees all of it or none.

        Raises:
            ServerError: no permission, or no space.
        """
        target = self.path / name
        temporary = target.with_name(f".{name}.{secrets.token_hex(4)}")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with open(descriptor, "w", encoding="utf-8") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, target)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise ServerError(
                f"{target} cannot be written ({error.strerror}). Give the folder space and permissions, or choose "
                f"another: {ANOTHER}"
            ) from error
        return target

    def _read_json(self, path: Path) -> dict[str, Any] | None:
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(data, dict):
                raise ValueError("not an object")
            return data
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ServerError(f"{path} cannot be read: {error.strerror}.") from error
        except ValueError as error:
            raise ServerError(f"{path} is damaged ({error}). Remove that file and try again.") from error
