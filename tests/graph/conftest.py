"""Fixtures that load small graphs and open them in both kinds of store."""

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
from tests.graph.graph_factories import (
    KINDS,
    EmbeddedGraphFactory,
    GraphFactory,
    RdflibGraphFactory,
    VirtuosoGraphFactory,
)
from tests.graph.in_process_loads import in_process_loads


@pytest.fixture(autouse=True)
def cache_dir(tmp_path_factory, monkeypatch) -> Path:
    """Give each test a cache folder of its own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("KGQA_CACHE_FOLDER", str(folder))
    return folder


@pytest.fixture(scope="module", params=KINDS)
def graphs(request, tmp_path_factory) -> Iterator[GraphFactory]:
    """Yield a graph factory of each kind of store, so that a test that uses it runs on both."""
    made: GraphFactory
    if request.param == "embedded":
        made = EmbeddedGraphFactory(tmp_path_factory.mktemp("graphs"))
    elif request.param == "rdflib":
        made = RdflibGraphFactory(tmp_path_factory.mktemp("graphs"))
    else:
        made = VirtuosoGraphFactory(request.getfixturevalue("virtuoso_server"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def make(graphs):
    """Return `make(lines, schema=..., **options) -> KnowledgeGraph`; the graphs are closed after the module."""
    return graphs.make


@pytest.fixture(scope="module")
def named(make) -> KnowledgeGraph:
    """Return the small graph with names."""
    return make(FACTS + NAMES)


@pytest.fixture(scope="module")
def nameless(make) -> KnowledgeGraph:
    """Return the small graph without names."""
    return make(FACTS)


@pytest.fixture(params=["named", "nameless"])
def graph(request, named, nameless) -> KnowledgeGraph:
    """Return the small graph, once with names and once without."""
    return {"named": named, "nameless": nameless}[request.param]


@pytest.fixture
def loads_in_process() -> Iterator[None]:
    """Run the loads of a test in its own process."""
    with in_process_loads():
        yield


@pytest.fixture
def load(tmp_path) -> Callable[..., Path]:
    """Return `load(content, ...) -> graph folder`; content is N-Triples text, lines, a file or several files.

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


def _files(content, path: Path) -> list[Path]:
    if isinstance(content, Path):
        return [content]
    items = [content] if isinstance(content, str) else list(content)
    if items and all(isinstance(item, Path) for item in items):
        return items
    path.write_text("\n".join(item.rstrip("\n") for item in items) + "\n", encoding="utf-8")
    return [path]


@pytest.fixture
def new_store(load):
    """Return `new_store(content, ...) -> EmbeddedStore` on a new graph; the stores are closed after the test."""
    stores: list[EmbeddedStore] = []

    def new_store(
        content, *, workers: int = 1, writable: bool = False, timeout: float = 60.0, **options
    ) -> EmbeddedStore:
        store = EmbeddedStore(load(content, **options), workers=workers, writable=writable, timeout=timeout)
        stores.append(store)
        return store

    yield new_store
    for store in stores:
        store.close()


@pytest.fixture
def python():
    """Return `python(code, *arguments, **options) -> Popen`; the processes are killed after the test."""
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
    """Return `users_of(folder)`, the ids of the processes that have a file of the folder open."""

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
    """Return `wait_until(condition, seconds=10) -> bool`, false on timeout."""

    def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.02)
        return condition()

    return wait_until
