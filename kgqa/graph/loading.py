"""Loading of RDF files into a graph folder, with a schema that is stored in the folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kgqa.errors import LoadError
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.store import LoadReport, OnError, Progress
from kgqa.schema import BUNDLED, load_schema
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.corpus_file import check_no_corpus
from kgqa.text.display import in_notebook, progress_bar


def load_into_folder(
    files: Iterable[str | Path],
    folder: str | Path,
    *,
    schema: str | None = None,
    settings: dict[str, Any] | None = None,
    on_error: OnError = "fail",
    format: str | None = None,
    resume: bool = False,
    restart: bool = False,
    memory: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> LoadReport:
    """Load RDF files into a graph folder; see `load_graph` for the arguments that are not listed.

    Args:
        files: RDF files.
        folder: the graph folder, created if needed.
        progress: called with the progress; None for a bar in a notebook, and for nothing elsewhere.
        schema: name of a bundled schema, or path of a schema file (TOML), which is copied into the folder; None keeps
            the folder's present schema.

    Raises:
        SchemaError: the schema is invalid.
        LoadError: a file is missing, malformed or truncated; the graph is unchanged.
        StoreBusy: another load is running.
        StoreUnavailable: the folder is not writable, or contains other files.
        KeyboardInterrupt: Ctrl-C; the load can be resumed.
        SettingsError: the folder is a corpus folder.
    """
    folder, paths = Path(folder), [Path(file) for file in files]
    check_no_corpus(folder)
    if not (paths or resume):
        raise LoadError("No file to load.", "Name at least one RDF file.")
    with ExitStack() as stack:
        if progress is None and in_notebook():
            progress = stack.enter_context(_LoadBar(paths))
        return load_graph(
            folder,
            paths,
            on_error=on_error,
            progress=progress,
            format=format,
            resume=resume,
            restart=restart,
            schema=None if schema is None else keep_schema(schema, folder),
            settings=settings,
            memory=memory,
        )


class _LoadBar:
    """A bar over the bytes of the files of a load, for notebooks."""

    def __init__(self, files: Iterable[Path]) -> None:
        total = sum(file.stat().st_size for file in files if file.is_file())
        self._bar = progress_bar(total=total or None, unit="B", unit_scale=True, desc="loading")
        self._done: dict[str, int] = {}

    def __enter__(self) -> _LoadBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def __call__(self, progress: Progress) -> None:
        """Move the bar."""
        self._done[progress.file] = progress.bytes_done
        self._bar.update(max(0, sum(self._done.values()) - self._bar.n))


def keep_schema(schema: str, folder: Path) -> str:
    """Return the name of a bundled schema, or copy a schema file into the folder and return the name of the copy.

    The name of the copy contains the digest of its content, so that a failed load does not overwrite the schema in use.
    """
    loaded = load_schema(schema)
    if schema in BUNDLED:
        return schema
    name = f"schema-{loaded.digest}.toml"
    GraphFolder(folder).create()
    replace_file(folder / name, [loaded.source.encode()])
    return name
