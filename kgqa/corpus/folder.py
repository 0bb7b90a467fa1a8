"""The folder of a corpus: where its parts are, and corpus.json, which says what it is made of.

    mycorpus/
      corpus.json     the graph (the folder `graph`, or the URL of a server), its views, its schema, settings
      corpus.sqlite   the texts, the log of edits, replies of models: everything else follows from it
      graph/          the graph folder, unless the graph is on a server
      index/          vectors, words, matrices
      write.lock      locked by the process that writes

`corpus_file.py` reads corpus.json.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from kgqa.corpus.rdf.vocabulary import KC, graph_iris
from kgqa.errors import CorpusError, StoreUnavailable
from kgqa.storage.atomic_files import cannot_create, replace_file
from kgqa.storage.corpus_file import FILE_NAME, GRAPH_FOLDER, CorpusFile, read_corpus_file
from kgqa.storage.foreign import refuse_links
from kgqa.storage.lock_files import only_one
from kgqa.text.hints import Command

DATABASE = "corpus.sqlite"
INDEX = "index"
LOCK = "write.lock"
STAGING = ".loading.nq"
_LEFT_BEHIND = re.compile(r"\.corpus\.json\.[0-9]+-[0-9]+")
"""Names of temporary files that a killed process may leave; see `replace_file`."""


class CorpusFolder:
    """The folder of a corpus.

    Args:
        path: The folder; it need not exist.

    Raises:
        CorpusError: corpus.json cannot be read, or has a wrong value.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self._file = read_corpus_file(self.path)
        except StoreUnavailable as error:
            raise CorpusError(error.message, "Restore corpus.json, or build the corpus again.") from error

    @property
    def exists(self) -> bool:
        """Whether there is a corpus."""
        return self._file is not None

    @property
    def file(self) -> CorpusFile:
        """The content of corpus.json. Raises CorpusError if there is no corpus."""
        if self._file is None:
            raise CorpusError(
                f"There is no corpus at {self.path}.", "Build it: ", Command("corpus build", "FILES", into=self.path)
            )
        return self._file

    @property
    def base(self) -> str:
        """The prefix of the IRIs of the graphs."""
        return self.file.base or KC

    @property
    def graphs(self) -> dict[str, str]:
        """The IRI of the graph of each view that the Editor writes."""
        return graph_iris(self.base)

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / DATABASE

    @property
    def graph(self) -> Path:
        """The graph folder, which is not there if the graph is on a server."""
        return self.path / GRAPH_FOLDER

    @property
    def index(self) -> Path:
        """The folder of the indexes."""
        return self.path / INDEX

    @property
    def staging(self) -> Path:
        """A temporary file of quads."""
        return self.path / STAGING

    def create(self, **settings: Any) -> None:
        """Create the folder with its corpus.json.

        Args:
            settings: fields of `CorpusFile`, such as `graph`, the URL of the server that holds the graph, and `base`.
                The views follow from `base`.

        Raises:
            CorpusError: the folder contains other files, a value is wrong, or the folder is not writable.
        """
        if self.exists:
            raise CorpusError(f"There is a corpus at {self.path}.", "Choose another folder.")
        names = [each.name for each in self.path.iterdir()] if self.path.is_dir() else []
        if any(name not in (LOCK, STAGING) and not _LEFT_BEHIND.fullmatch(name) for name in names):
            raise CorpusError(f"{self.path} contains other files.", "Choose a new folder for the corpus.")
        file = CorpusFile(**settings)
        views = {view: (iri,) for view, iri in graph_iris(file.base or KC).items()}
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        self.save(structs.replace(file, views=views))

    def save(self, file: CorpusFile) -> None:
        """Replace corpus.json, unless it says so already.

        Raises:
            CorpusError: a value is wrong, or the folder is not writable.
        """
        file = structs.replace(file, folder=self.path)
        if file == self._file:
            return
        try:
            text = file.text()
        except ValueError as error:
            raise CorpusError(f"A setting of the corpus is wrong: {error}.", "Correct the setting.") from error
        with writing(self.path):
            replace_file(self.path / FILE_NAME, [text.encode()])
        self._file = file

    def remove_leftovers(self) -> None:
        """Remove the temporary files of a process that was killed. The caller holds the lock."""
        for each in self.path.iterdir():
            if each.name == STAGING or _LEFT_BEHIND.fullmatch(each.name):
                with suppress(OSError):
                    each.unlink()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the process that writes. Raises CorpusError if another process holds it, or for a link."""
        refuse_links(self.path, CorpusError)
        with writing(self.path):
            lock = only_one(self.path / LOCK)
            alone = lock.__enter__()
        try:
            if not alone:
                raise CorpusError(f"Another process is writing to the corpus at {self.path}.", "Try again later.")
            yield
        finally:
            lock.__exit__(None, None, None)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert the error of a file that cannot be written into a CorpusError."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "Free some space and try again." if full else "Choose a folder that is writable."
        raise CorpusError(cannot_create(path, error), hint) from error
