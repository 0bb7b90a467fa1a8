"""Loads and edits on a full disk and with too few open files: a clear message, and nothing is left behind."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kgqa.errors import LoadError, StoreUnavailable
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from tests.conftest import SOAK
from tests.graph.embedded.test_editing import ALL, assert_published_alike, numbered

pytestmark = pytest.mark.slow

FREE_KB = (*range(0, 64, 8), *range(64, 1600, 96)) if SOAK else (0, 8, 100)


@pytest.fixture(scope="module")
def disk(tmp_path_factory) -> Iterator[Path]:
    """Mount a disk of 32 MB."""
    mount_point = tmp_path_factory.mktemp("disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", mount_point], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can only be mounted by root")
    yield mount_point
    subprocess.run(["umount", "--lazy", mount_point], check=True)


def leave(disk: Path, kilobytes: int) -> None:
    with open(disk / "filler", "wb", buffering=0) as file:
        with suppress(OSError):
            while True:
                file.write(b"x" * (1 << 16))
        file.truncate(max(0, file.tell() - (kilobytes << 10)))


def count(folder: Path) -> int:
    with EmbeddedStore(folder, workers=1) as store:
        return len(store.select("SELECT * { ?s ?p ?o }"))


@pytest.mark.soak
@pytest.mark.parametrize("into_graph", [False, True], ids=["first load", "second load"])
def test_load_on_a_full_disk(disk, tmp_path, into_graph):
    one, many = tmp_path / "one.nt", tmp_path / "many.nt"
    one.write_text("<http://e/1> <http://e/p> <http://e/2> .\n")
    many.write_text("".join(f'<http://e/{n}> <http://e/p> "value {n}" .\n' for n in range(2000)))
    folder = disk / f"g{into_graph}"
    if into_graph:
        load_graph(folder, [one])
    for kilobytes in FREE_KB:
        leave(disk, kilobytes)
        try:
            try:
                load_graph(folder, [many])
            except (LoadError, StoreUnavailable) as error:
                assert "No space left on the disk of" in str(error) and "Free some" in str(error), kilobytes  # noqa: PT017 - it need not fail
            else:
                assert kilobytes > 500, "there was not enough"
                break
            left = {item.name.partition("-")[0] for item in folder.iterdir()} if folder.exists() else set()
            assert left <= {"write.lock", "gen", "graph.json"}
            assert len(list(folder.glob("gen-*"))) == into_graph
            assert not into_graph or count(folder) == 1
        finally:
            (disk / "filler").unlink()
    assert load_graph(folder, [many]).triples == 2000 + into_graph


EDITS_KB = (0, 1, 2, *range(4, 260, 16), *range(260, 3000, 192)) if SOAK else (0, 30, 250)


@pytest.mark.soak
def test_editing_on_a_full_disk(disk, load):
    """Each edit is made or not, nothing published is lost, and with some space the store goes on."""
    folder = disk / "edited"
    there = set(numbered(1))
    with EmbeddedStore(folder, writable=True, create=True) as store:
        store.edit("", there)
    for attempt, kilobytes in enumerate(EDITS_KB, start=1):
        published = set(there)
        store = EmbeddedStore(folder, writable=True)
        store.ask("ASK {}")
        leave(disk, kilobytes)
        failures = 0
        try:
            for part in range(5):
                adds = numbered(*range(1000 * attempt + 100 * part, 1000 * attempt + 100 * part + 100))
                try:
                    store.edit("", adds)
                    there.update(adds)
                    store.publish()
                    published = set(there)
                except StoreUnavailable as error:
                    failures += 1
                    assert "No space left on the disk of" in str(error), kilobytes  # noqa: PT017 - it need not fail
            with EmbeddedStore(folder, workers=1) as reader:
                assert reader.triples_of() == len(reader.select(ALL)) == len(published)
            assert failures or kilobytes > 100, "there was not enough"
        finally:
            (disk / "filler").unlink()
        assert store.triples_of() == len(store.select(ALL)) == len(there), kilobytes
        store.publish()
        store.close()
        with EmbeddedStore(folder, workers=1) as reader:
            assert len(reader.select(ALL)) == len(there)
        assert {item.name.partition("-")[0] for item in folder.iterdir()} == {"gen", "graph.json", "write.lock"}
        assert len(list(folder.glob("gen-*"))) == 1
    assert_published_alike(load, GraphFolder(folder))


def test_opening_for_editing_on_a_full_disk(disk):
    folder = disk / "opened"
    with EmbeddedStore(folder, writable=True, create=True) as store:
        store.edit("", numbered(1))
    leave(disk, 0)
    try:
        with pytest.raises(StoreUnavailable, match="No space left on the disk of"):
            EmbeddedStore(folder, writable=True).select(ALL)
    finally:
        (disk / "filler").unlink()
    assert len(list(folder.glob("gen-*"))) == 1
    with EmbeddedStore(folder, writable=True) as store:
        assert len(store.select(ALL)) == 1
