"""Clusters: the same results as a loop, on two nodes; killed workers; secrets; messages."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest

from kgqa.cluster import PlainLoop, open_cluster
from kgqa.corpus.building.build import build_corpus
from kgqa.corpus.building.options import BuildOptions
from kgqa.corpus.building.tools import open_tools
from kgqa.corpus.corpus import Corpus
from kgqa.corpus.rdf.triples import quad_blocks
from kgqa.errors import ClusterError, LoadError
from kgqa.settings.values import resolve
from tests.cluster_nodes import ROOT, nodes, processes_of
from tests.cluster_work import (
    DiesOnArrival,
    Squares,
    fail_at_three,
    kill_self,
    kill_self_once,
    place_of,
    slow,
    variables,
)

NUMBERS = list(range(40))


def squares(cluster):
    return list(cluster.map(Squares(), NUMBERS))


def streamed(cluster, function, items=NUMBERS):
    return [each for part in cluster.stream(function, items, workers=2, threads=3) for each in part]


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:1", "localhost:99999", "localhost:x"])
def test_unreachable_addresses(address):
    with pytest.raises(ClusterError, match=f"no Ray cluster at {address} .*Start it there"), open_cluster(address):
        pass
    assert "RAY_USAGE_STATS_ENABLED" not in os.environ


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch, nodes(patch) as (address, _):
        patch.setenv("SOME_API_KEY", "sk-0123456789")  # after the nodes: it is the secret of the driver alone
        with open_cluster(address) as cluster:
            yield cluster


@pytest.mark.slow
class TestTwoNodes:
    def test_results_are_those_of_a_loop(self, cluster):
        assert cluster.workers == 2
        assert squares(cluster) == sorted(streamed(cluster, Squares())) == squares(PlainLoop())

    def test_a_wait_for_processors_is_told(self, cluster, monkeypatch):
        monkeypatch.setattr("kgqa.cluster.START_SECONDS", 0.0)
        monkeypatch.setattr("kgqa.cluster.POLL_SECONDS", 0.0)  # no worker can start before the first look at the time
        said = []
        assert len(list(filter(None, cluster.stream(Squares(), NUMBERS, say=said.append)))) == len(NUMBERS)
        assert ["ray status" in each for each in said] == [True]

    def test_each_node_works_and_sets_the_function_up_once(self, cluster):
        mapped, kept = set(cluster.map(place_of, range(200))), set(streamed(cluster, place_of))
        assert len({node for node, _, _ in mapped}) == 2 >= len({process for _, process, _ in kept})
        assert all(len({place[:2] for place in places}) == len(places) for places in (mapped, kept))

    def test_exceptions_are_those_of_a_loop(self, cluster):
        found = []
        with pytest.raises(LoadError, match="three") as raised:
            found.extend(cluster.map(fail_at_three, NUMBERS))
        assert found == [0, 1, 2] and raised.value.hint == "Do not."
        with pytest.raises(LoadError, match="three"):
            streamed(cluster, fail_at_three)

    def test_items_are_taken_as_results_are_and_processors_are_free_when_closed(self, cluster):
        for run, options in ((cluster.map, {}), (cluster.stream, {"workers": 2, "threads": 2})):
            taken = []
            results = run(slow, (taken.append(n) or n for n in range(10_000)), **options)
            while next(results) == []:
                pass
            results.close()
            assert len(taken) <= 8
        assert squares(cluster) == squares(PlainLoop())

    def test_killed_workers_lose_nothing(self, cluster, tmp_path):
        def work(name):
            return [(n, str(tmp_path / f"{name}-{n}") if n % 10 == 5 else "") for n in NUMBERS]

        assert list(cluster.map(kill_self_once, work("map"))) == NUMBERS
        assert (
            sorted(streamed(cluster, kill_self_once, work("stream"))) == NUMBERS and len(list(tmp_path.iterdir())) == 8
        )
        for deadly in (kill_self, DiesOnArrival()):
            with pytest.raises(ClusterError, match="lost a task 6 times"):
                streamed(cluster, deadly, [None])

    def test_secrets_do_not_reach_workers(self, cluster):
        assert "SOME_API_KEY" not in next(cluster.map(variables, [None]))
        with pytest.raises(ClusterError, match="SOME_API_KEY"):
            list(cluster.map(Squares(key="sk-0123456789"), NUMBERS))

    def test_other_versions(self, cluster, monkeypatch):
        monkeypatch.setattr("kgqa.cluster.__version__", "99.0")
        for ask in (squares, lambda cluster: streamed(cluster, Squares())):
            with pytest.raises(ClusterError, match=r"99\.0 is needed.*Install kgqa 99\.0"):
                ask(cluster)

    def test_corpus_built_on_two_nodes_is_the_same(self, cluster, tmp_path):
        """Files, records, chunks in tokens and facts by rules."""
        (docs := tmp_path / "docs").mkdir()
        lines = [json.dumps({"title": f"Person {number}", "text": f"Painted {number}."}) for number in range(210)]
        (docs / "people.jsonl").write_text("\n".join(lines))
        for number in range(6):
            (docs / f"page{number}.html").write_text(f"<h1>Page {number}</h1><p>See <a href='page0.html'>zero</a>.</p>")
            (docs / f"note{number}.md").write_text(f"# Note {number}\n\nColour: red\n\n{'A long line. ' * 90}")
        found = []
        for where in (None, cluster):
            folder = tmp_path / str(len(found))
            with open_tools(resolve(), cluster=where) as tools:
                added = build_corpus(folder, [docs], tools=tools, options=BuildOptions(chunks="100/10")).added
            with Corpus.open(folder) as corpus:
                found.append((added, b"".join(quad_blocks(corpus.database.snapshots.all(corpus.database.seq)))))
        assert found[0] == found[1] and found[0][0] == 222


PROGRAM = """
from kgqa.cluster import open_cluster
from kgqa.rank.embedding.encoder import open_encoder
from kgqa.settings.values import resolve
from tests.cluster_work import DiesOnArrival, Squares, slow, variables
from tests.test_cluster import listening

with open_cluster("local") as cluster:
    assert list(cluster.map(Squares(), range(9))) == [n * n for n in range(9)]
    assert "SOME_API_KEY" not in next(cluster.map(variables, [None]))
    assert listening() and all(address.endswith("7F") for address in listening())  # the last byte comes first: 127
    print("ready", flush=True)
    for _ in cluster.map(slow, range(10_000)):
        pass
"""


def listening() -> set[str]:
    """The addresses at which processes listen that have the folder for temporary files of this one, in hexadecimal."""
    sockets = set()
    for process in processes_of(Path(tempfile.gettempdir())):
        for each in Path(f"/proc/{process}/fd").glob("*"):
            with suppress(OSError):
                sockets.add(os.readlink(each))
    lines = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    fields = [line.split() for line in (*lines[0], *lines[1])]
    return {each[1].split(":")[0] for each in fields if each[3] == "0A" and f"socket:[{each[9]}]" in sockets}


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_cluster_of_this_machine_ends_with_its_process(end):
    folder = Path(tempfile.mkdtemp(prefix="kt-", dir="/tmp"))
    environment = {**os.environ, "SOME_API_KEY": "sk-0123456789", "TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    try:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, **pipes)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        assert len(processes_of(folder)) > 2
        process.send_signal(end)
        process.wait(30)
        until = time.monotonic() + 120
        while processes_of(folder):
            assert time.monotonic() < until
            time.sleep(0.1)
        assert end == signal.SIGKILL or not list(folder.iterdir())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
