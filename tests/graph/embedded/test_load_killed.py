"""Loads killed at each of their writes: the published graph is unchanged, and the load can be resumed or discarded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kgqa.errors import LoadError
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import discard_interrupted, load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from tests.conftest import SOAK
from tests.kill_at_write import kill_at

pytestmark = pytest.mark.slow

OLD, NEW = "<http://e/1> <http://e/p> <http://e/2> .", "<http://e/3> <http://e/p> <http://e/4> ."
MAX_WRITES = 200
"""More writes than a load makes."""


def subjects(folder: Path) -> set[str]:
    with EmbeddedStore(folder, workers=1) as store:
        return {row[0].iri[-1] for row in store.select("SELECT ?s { ?s ?p ?o }")}


def fingerprint(folder: Path) -> str:
    return GraphFolder(folder).meta().fingerprint


def killed_loads(tmp_path: Path, *, into_graph: bool):
    """Return folders in which a load was killed at each of its writes, or at a few of them without SOAK."""
    (tmp_path / "old.nt").write_text(OLD + "\n")
    (tmp_path / "new.nt").write_text(NEW + "\n")
    folder, base = tmp_path / "g", tmp_path / "base"
    base.mkdir()
    if into_graph:
        load_graph(base, [tmp_path / "old.nt"])
    some = (37,) if into_graph else (16,)
    for number in range(1, MAX_WRITES) if SOAK else some:
        shutil.copytree(base, folder)
        done = kill_at(number, folder, ["graph", "load", tmp_path / "new.nt", "--into", folder])
        if done.returncode == 0:
            return
        assert done.returncode == -9, done.stderr
        yield number, folder
        shutil.rmtree(folder)


@pytest.mark.soak
@pytest.mark.parametrize("into_graph", [False, True], ids=["first load", "second load"])
@pytest.mark.parametrize("then", ["resume", "discard"])
def test_killed_at_a_write(tmp_path, into_graph, then):
    before, after = ({"1"}, {"1", "3"}) if into_graph else (set(), {"3"})
    expected = tmp_path / "expected"
    (tmp_path / "all.nt").write_text("".join(f"{line}\n" for line in ([OLD] if into_graph else []) + [NEW]))
    load_graph(expected, [tmp_path / "all.nt"])
    for number, folder in killed_loads(tmp_path, into_graph=into_graph):
        published = (folder / "graph.json").exists()
        now = subjects(folder) if published else set()
        assert now in (before, after), number
        if then == "discard":
            discard_interrupted(folder)
            assert (subjects(folder) if published else set()) == now, number
        else:
            try:
                load_graph(folder, resume=True)
            except LoadError as error:  # killed before the journal was written, or after the load was complete
                assert "no interrupted load" in str(error), number  # noqa: PT017 - it need not fail
                load_graph(folder, [tmp_path / "new.nt"])
            assert subjects(folder) == after and fingerprint(folder) == fingerprint(expected), number
        left = {item.name.partition("-")[0] for item in folder.iterdir()}
        assert left <= {"gen", "graph.json", "write.lock"}, number
