"""Loading of RDF files into a graph folder, with a schema that is stored in the folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kgqa.corpus_file import check_no_corpus
from kgqa.graph.embedded.atomic_files import write_atomically
from kgqa.graph.embedded.loading import load_graph, make_folder
from kgqa.graph.store import LoadReport, OnError, Progress
from kgqa.schema import BUNDLED, load_schema


def load_into_folder(
    files: Iterable[str | Path],
    folder: Path,
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
    check_no_corpus(folder)
    return load_graph(
        folder,
        files,
        on_error=on_error,
        progress=progress,
        format=format,
        resume=resume,
        restart=restart,
        schema=None if schema is None else keep_schema(schema, folder),
        settings=settings,
        memory=memory,
    )


def keep_schema(schema: str, folder: Path) -> str:
    """Return the name of a bundled schema, or copy a schema file into the folder and return the name of the copy.

    The name of the copy contains the digest of its content, so that a failed load does not overwrite the schema in use.
    """
    loaded = load_schema(schema)
    if schema in BUNDLED:
        return schema
    name = f"schema-{loaded.digest}.toml"
    write_atomically(make_folder(folder).path / name, loaded.source)
    return name
