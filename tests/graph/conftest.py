"""Fixtures for everything that speaks SPARQL: graphs made from a few lines, opened by the real engine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from kgqa.graph.graph import KnowledgeGraph
from tests.graph.facts import FACTS, NAMES
from tests.graph.in_process import in_process_loads
from tests.graph.stores import KINDS, EmbeddedGraphs, Graphs, VirtuosoGraphs


@pytest.fixture(autouse=True)
def cache_dir(tmp_path_factory, monkeypatch) -> Path:
    """No test sees or leaves anything in the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("KGQA_CACHE_FOLDER", str(folder))
    return folder


@pytest.fixture(scope="module", params=KINDS)
def graphs(request, tmp_path_factory) -> Iterator[Graphs]:
    """Makes graphs, once in the embedded store and once on a real Virtuoso: each test that uses it runs on both."""
    made: Graphs
    if request.param == "embedded":
        made = EmbeddedGraphs(tmp_path_factory.mktemp("graphs"))
    else:
        made = VirtuosoGraphs(request.getfixturevalue("virtuoso_server"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def make(graphs):
    """`make(lines, schema=..., **options) -> KnowledgeGraph`, in either store, closed with the module."""
    return graphs.make


@pytest.fixture(scope="module")
def named(make) -> KnowledgeGraph:
    """The small graph with names."""
    return make(FACTS + NAMES)


@pytest.fixture(scope="module")
def nameless(make) -> KnowledgeGraph:
    """The same facts, and nothing has a name."""
    return make(FACTS)


@pytest.fixture(params=["named", "nameless"])
def graph(request, named, nameless) -> KnowledgeGraph:
    """The small graph, once with names and once without."""
    return {"named": named, "nameless": nameless}[request.param]


@pytest.fixture
def loads_in_process() -> Iterator[None]:
    """Let loads of this test run in its own process."""
    with in_process_loads():
        yield


@pytest.fixture
def load(tmp_path) -> Callable[..., Path]:
    """`load(content, ...) -> graph folder`. `content`: N-Triples text, lines, a file, or several files.

    `into` names the folder (a new one otherwise); other options go to `load_graph`.
    """
    count = 0

    def load(content: str | Iterable[str] | Path | list[Path], *, into: Path | None = None, **options) -> Path:
        nonlocal count
        count += 1
        folder = into or tmp_path / f"graph{count}"
        with in_process_loads():
            load_graph(folder, _files(content, tmp_path / f"lines{count}.nq"), **options)
        return folder

    return load


def _files(content, place: Path) -> list[Path]:
    if isinstance(content, Path):
        return [content]
    items = [content] if isinstance(content, str) else list(content)
    if items and all(isinstance(item, Path) for item in items):
        return items
    place.write_text("\n".join(item.rstrip("\n") for item in items) + "\n", encoding="utf-8")
    return [place]


@pytest.fixture
def opened(load):
    """`opened(content, ...) -> EmbeddedStore` on a freshly loaded graph; closed at the end of the test."""
    stores: list[EmbeddedStore] = []

    def opened(content, *, workers: int = 1, writable: bool = False, timeout: float = 60.0, **options) -> EmbeddedStore:
        store = EmbeddedStore(load(content, **options), workers=workers, writable=writable, timeout=timeout)
        stores.append(store)
        return store

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def python():
    """`python(code, *arguments, user=None) -> Popen`: a script in a process of its own, ended with the test."""
    started: list[subprocess.Popen] = []

    def python(code: str, *arguments: object, **options) -> subprocess.Popen:
        process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            **options,
        )
        started.append(process)
        return process

    yield python
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def users_of() -> Callable[[Path], set[int]]:
    """Processes that have a file of a folder open: workers, and whoever holds a lock."""

    def users_of(folder: Path) -> set[int]:
        found = set()
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                try:
                    targets = [os.readlink(fd) for fd in (process / "fd").iterdir()]
                except OSError:
                    continue
                if any(target.startswith(f"{folder}/") for target in targets):
                    found.add(int(process.name))
        return found

    return users_of


@pytest.fixture
def wait_until():
    """`wait_until(condition, seconds=10)`: whether it became true in time."""

    def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.02)
        return condition()

    return wait_until
