"""The folder of a Virtuoso server and the files that kgqa keeps there.

~/.local/share/kgqa/virtuoso/    mode 0700
  server.json        options of the last start; each write is atomic
  password           password of the user dba; mode 0600
  password.adopted   password of the user dba of an adopted database; mode 0600
  virtuoso.ini       the server's settings, written at every start
  virtuoso.db ...    the server's database files (elsewhere if a database was adopted)
  virtuoso.log       the server's log; output.log has what the server prints before it opens its log
  new/               a database that is being created
  import/            the only folder from which the server may read files
  loading.lock       held while files are loaded
  *-load.json        the state of a load that is running or was interrupted
  www/               document root of the HTTP server, empty
"""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import TypeVar

from platformdirs import user_data_dir

from kgqa.storage.atomic_files import replace_file
from kgqa.errors import KgqaError, ServerError
from kgqa.storage.model_json import from_json, to_json
from kgqa.virtuoso.configuration import ServerOptions
from kgqa.text.words import clean

FOLDER_VARIABLE = "KGQA_VIRTUOSO_FOLDER"
T = TypeVar("T")
# a folder that has files, but none with these names, belongs to another program and is not used
KNOWN_NAMES = frozenset(("server.json", "virtuoso.ini", "import"))


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
        self.load_lock = self.path / "loading.lock"

    @property
    def folder_option(self) -> str:
        """The --folder option that commands for this server need; empty for the default folder."""
        return "" if self.path == default_folder().absolute() else f" --folder {shlex.quote(str(self.path))}"

    @property
    def own_database(self) -> Path:
        """The path of the database file in this folder; an adopted one may be in use."""
        return self.path / "virtuoso.db"

    @property
    def database(self) -> Path:
        """The path of the database file in use."""
        return Path(self.options().database or self.own_database)

    @property
    def lock(self) -> Path:
        """The server's lock file. It is beside the database, so that two folders with the same database share it."""
        return self.database.with_suffix(".lck")

    @property
    def password_file(self) -> Path:
        """The file with the password of the user dba of the database in use."""
        return self.path / ("password.adopted" if self.options().database else "password")

    def create(self) -> None:
        """Create the folder (mode 0700) and its subfolders.

        Raises:
            ServerError: permission is missing, or the folder has files of other programs.
        """
        choose = f"Choose another folder: {FOLDER_VARIABLE}=/path or --folder /path"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            names = os.listdir(self.path)
            if names and not KNOWN_NAMES & set(names):
                raise ServerError(f"{self.path} contains other files; the server needs a folder of its own.", choose)
            self.path.chmod(0o700)
            for folder in (self.import_folder, self.path / "www"):
                folder.mkdir(exist_ok=True)
        except OSError as error:
            raise ServerError(
                f"The server's folder {self.path} cannot be created or written ({error.strerror}).", choose
            ) from error

    def options(self) -> ServerOptions:
        """Return the options of the last start; the defaults if the server was never started.

        Raises:
            ServerError: server.json cannot be read or is damaged.
        """
        remedy = f"Remove that file and start again: kgqa virtuoso start{self.folder_option}"
        return self.read_json("server.json", ServerOptions, remedy) or ServerOptions()

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
                "Create this file with only the password of the database user dba, or adopt the database again: "
                f"kgqa virtuoso adopt {self.database}{self.folder_option}",
            ) from error

    def write(self, name: str, text: str) -> Path:
        """Write a file atomically; it has mode 0600 from its creation.

        Raises:
            ServerError: permission is missing, or the disk is full.
        """
        target = self.path / name
        try:
            replace_file(target, [text.encode("utf-8")], mode=0o600)
        except OSError as error:
            raise ServerError(f"{target} cannot be written ({error.strerror}).", "Check free space and permissions.") from error
        return target

    def write_json(self, name: str, data: object) -> None:
        """Write a data class as JSON; see `write`."""
        self.write(name, json.dumps(to_json(data), indent=1))

    def read_json(self, name: str, kind: type[T], remedy: str, error: type[KgqaError] = ServerError) -> T | None:
        """Read a file of `write_json`; return None if there is no such file.

        Args:
            kind: the data class.
            remedy: what to do if the file is damaged.
            error: the class of the error to raise if the file is damaged or cannot be read.
        """
        path = self.path / name
        try:
            return from_json(kind, json.loads(path.read_text(encoding="utf-8")))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            raise error(f"{path} cannot be read: {problem.strerror}.") from problem
        except ValueError as problem:
            raise error(f"{path} is damaged ({clean(str(problem))[:200]}).", remedy) from problem
