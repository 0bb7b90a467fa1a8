"""The bundled demo graph, loaded into the cache when it is first asked for."""

from __future__ import annotations

import hashlib
import shutil
from importlib.resources import as_file, files
from pathlib import Path

from kgqa.cache import Cache
from kgqa.errors import StoreBusy, StoreIncomplete, StoreUnavailable
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph


def demo_folder(cache: Cache) -> Path:
    """The folder of the demo graph; it is loaded there if it is not yet (well under a second).

    Raises:
        StoreUnavailable: the cache cannot be written.
    """
    with as_file(files("kgqa") / "demo" / "graph.nt") as source:
        digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
        place = cache.entry("demo", digest)
        if not _usable(place):
            try:
                # a mediator and its exit count as one hop here, so that two hops reach what two thoughts reach
                load_graph(place, [source], restart=True, schema="freebase", settings={"mediator_hop": "free"})
            except StoreBusy:
                _wait(place)
    return place


def _usable(place: Path) -> bool:
    """Whether the demo graph is there whole. What is damaged is thrown away: it can be made again."""
    folder = GraphFolder(place)
    if not folder.exists():
        return False
    try:
        folder.meta()
    except StoreUnavailable:
        shutil.rmtree(place, ignore_errors=True)
        return False
    return True


def _wait(place: Path, seconds: float = 30.0) -> None:
    """Another process loads it right now."""
    import time

    deadline = time.monotonic() + seconds
    while not GraphFolder(place).exists():
        if time.monotonic() > deadline:
            raise StoreIncomplete(f"The demo graph at {place} is still being loaded by another process. Try again.")
        time.sleep(0.05)
