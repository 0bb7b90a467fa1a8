"""The bundled demo graph, loaded into the cache on first use."""

from __future__ import annotations

import hashlib
import shutil
import time
from importlib.resources import as_file, files
from pathlib import Path

from kgqa.errors import StoreBusy, StoreIncomplete, StoreUnavailable
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.storage.cache import Cache


def demo_folder(cache: Cache) -> Path:
    """Return the folder of the demo graph, which is loaded on first use (in less than a second).

    Raises:
        StoreUnavailable: the cache is not writable.
        StoreIncomplete: another process is loading the demo graph and did not finish in 30 seconds.
    """
    with as_file(files("kgqa") / "demo" / "graph.nt") as source:
        digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
        folder = cache.entry("demo", digest)
        if not _is_usable(folder):
            try:
                # free: a step to a mediator and the next step count as one hop
                load_graph(folder, [source], restart=True, schema="freebase", settings={"mediator_hop": "free"})
            except StoreBusy:
                _wait_for_load(folder)
    return folder


def _is_usable(path: Path) -> bool:
    """Return whether the demo graph is complete. A damaged demo graph is removed."""
    try:
        return GraphFolder(path).exists() and bool(GraphFolder(path).meta())
    except StoreUnavailable:
        shutil.rmtree(path, ignore_errors=True)
        return False


def _wait_for_load(path: Path, seconds: float = 30.0) -> None:
    """Wait until another process has loaded the graph."""
    deadline = time.monotonic() + seconds
    while not GraphFolder(path).exists():
        if time.monotonic() > deadline:
            raise StoreIncomplete(f"Another process is still loading the demo graph at {path}.", "Try again later.")
        time.sleep(0.05)
