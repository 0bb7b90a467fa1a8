"""Loads are killed at each of their writes, and processes that edit and publish at random moments while others read."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from kgqa.errors import LoadError
from kgqa.graph.embedded.folder import GraphFolder
from kgqa.graph.embedded.loading import discard_interrupted, load_graph
from kgqa.graph.embedded.store import EmbeddedStore
from tests.conftest import SOAK
from tests.graph.embedded.test_editing import ALL, assert_published_alike, numbered
from tests.graph.embedded.test_store import idle_workers
from tests.kill_at_write import kill_at

pytestmark = pytest.mark.slow

KILLS = 30 if SOAK else 4
CONTENT = """
from kgqa.model import Entity, Literal, Triple

def triple(n):
    return Triple(Entity(f"http://e/new{n}"), "http://e/p", Literal(f"value {n}"))

def change(k):  # edit k adds 20 triples, or 300, and removes those of edit k - 3
    return [triple(1000 * k + n) for n in range(300 if k % 5 == 4 else 20)]

def content(k):
    return {t for edit in range(max(0, k - 2), k + 1) for t in change(edit)}

def number(store):
    "Return the number of the last edit in the store; check that the store is as that edit left it."
    found = {Triple(s, p.iri, o) for s, p, o in store.select("SELECT ?s ?p ?o { ?s ?p ?o }")}
    k = max((int(t.subject.iri[12:]) // 1000 for t in found), default=-1)
    assert found == content(k) and store.triples_of() == len(found), (k, len(found), store.triples_of())
    return k
"""
WRITER = (
    CONTENT
    + """
import sys
from pathlib import Path
from kgqa.graph.embedded import store as embedded
store = embedded.EmbeddedStore(Path(sys.argv[1]), writable=True, create=True)
k = number(store) + 1
print("open", k - 1, store.notice(), flush=True)
while True:
    store.edit("", change(k), change(k - 3) if k > 2 else [])
    print("edited", k, flush=True)
    if k % 3 == 2:
        store.publish()
        print("published", k, flush=True)
    k += 1
"""
)
READER = (
    CONTENT
    + """
import sys
from pathlib import Path
from kgqa.graph.embedded.store import EmbeddedStore
folder, stop = Path(sys.argv[1]), Path(sys.argv[2])
last = -1
kept = EmbeddedStore(folder, workers=1)
print("open", flush=True)
while not stop.exists():
    with EmbeddedStore(folder, workers=1) as store:
        k = number(store)
    assert k >= last and k % 3 == 2 or k == -1, (k, last)
    last = k
    kept.refresh()
    assert number(kept) >= k
print("read", last, flush=True)
"""
)


@pytest.mark.soak
def test_killed_while_editing_and_publishing(tmp_path, load, python, wait_until):
    folder, stop = tmp_path / "g", tmp_path / "stop"
    EmbeddedStore(folder, writable=True, create=True).close()
    reader = python(READER, folder, stop)
    assert reader.stdout.readline() == "open\n", reader.stderr.read()
    scope: dict = {}
    exec(CONTENT, scope)
    generator = random.Random(7)
    notices = []
    for _ in range(KILLS):
        writer = python(WRITER, folder)
        first = writer.stdout.readline()
        assert first.startswith("open"), writer.stderr.read()
        said = [writer.stdout.readline() for _ in range(generator.randint(0, 8))]
        time.sleep(generator.uniform(0, 0.2))
        writer.send_signal(signal.SIGKILL)
        writer.wait(10)
        lines = [line.split() for line in (*said, *writer.stdout.read().splitlines())]
        before = int(first.split()[1])
        edited, published = (
            max((int(line[1]) for line in lines if line[0] == done and len(line) == 2), default=before)
            for done in ("edited", "published")
        )
        with EmbeddedStore(folder, workers=1) as store:
            now = scope["number"](store)
            assert now == published or now == edited, (now, published, edited)
        assert wait_until(lambda: not GraphFolder(folder).is_being_written()), "a lock outlived its process"
        with EmbeddedStore(folder, writable=True) as store:
            notice = store.notice() or ""
            lost = re.search(r"without publishing (\d+) edit", notice)
            # the last edit may have been logged, but not made; the last publication may not have been reported
            assert int(lost[1] if lost else 0) in (edited - now, edited - now + 1), (notice, edited, now)
            notices.append(notice)
            assert scope["number"](store) == now
        assert {item.name.partition("-")[0] for item in folder.iterdir()} <= {"gen", "graph.json", "write.lock"}
    assert_published_alike(load, GraphFolder(folder))
    assert any("without publishing" in notice for notice in notices)
    stop.touch()
    out, errors = reader.communicate(timeout=60)
    assert reader.returncode == 0 and out.startswith("read"), errors


def test_notice_of_the_next_load(tmp_path, load):
    killed, lost = tmp_path / "killed", "without publishing 2 edits: 2 added and 1 removed triples are lost"
    with EmbeddedStore(tmp_path / "g", writable=True, create=True) as store:
        store.edit("", numbered(1))
        store.publish()
        store.edit("", numbered(2, 3))
        store.edit("", [], numbered(1))
        (worker,) = idle_workers(store)
        os.kill(worker, signal.SIGSTOP)
        os.waitpid(worker, os.WUNTRACED)  # the engine tidies up in the background, and a copy must not miss a file
        shutil.copytree(tmp_path / "g", killed)  # as after a kill
        os.kill(worker, signal.SIGCONT)
    with EmbeddedStore(killed, workers=1) as reader:
        assert lost in reader.notice()
    (tmp_path / "one.nt").write_text("<http://e/1> <http://e/p> <http://e/2> .\n")
    report = load_graph(killed, [tmp_path / "one.nt"])
    assert lost in report.notice and report.added == 1
    with EmbeddedStore(killed, workers=1) as reader:
        assert not reader.notice()
    assert_published_alike(load, GraphFolder(killed))


def test_worker_killed_while_editing(tmp_path, load):
    """The store finds out whether the edit was made, and its hash is right."""
    generator = random.Random(11)
    failures = 0
    with EmbeddedStore(tmp_path / "g", writable=True, create=True) as store:
        there: set[int] = set()
        for number in range(KILLS * 4):
            store.ask("ASK {}")
            (worker,) = idle_workers(store)
            timer = threading.Timer(generator.uniform(0, 0.02), os.kill, (worker, signal.SIGKILL))
            adds = set(range(number * 1000, number * 1000 + 800))
            timer.start()
            try:
                store.edit("", numbered(*adds))
                there |= adds
            except Exception:
                failures += 1
            timer.join()
            assert store.triples_of() == len(there) == len(store.select(ALL))
        history = store.edits_since("0")
        assert history is not None and sum(len(report.added) for report in history) == len(there)
    assert failures
    assert_published_alike(load, GraphFolder(tmp_path / "g"))


# --- loads

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
