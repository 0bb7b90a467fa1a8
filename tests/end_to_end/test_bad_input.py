"""Bad input, interruptions and unwritable folders: a message and an exit code, never a traceback."""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
from pathlib import Path

import pytest

from kgqa.graph.embedded.folder import GraphFolder
from tests.conftest import SOAK

TRIPLE_COUNT = 300_000 if SOAK else 60_000
TRIPLE = "<http://example.org/a> <http://example.org/likes> <http://example.org/b> .\n"


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("", "empty"),
        ("   \t", "empty"),
        ("🎉🎉🎉", "empty"),
        ("東京の首都はどこですか", None),
        ("quelle est la capitale du Japan?", None),
        ('who "directed" {Parasite} } FILTER(1=1) #', None),
        ("who directed Parasite\x1b[31m\x07?", None),
        ("where is xyzzy?", "No entity of this graph"),
    ],
)
def test_odd_questions(kgqa, question, message):
    done = kgqa("ask", question)
    if message:
        assert done.returncode == (1 if message == "empty" else 3) and message in done.out
    else:
        assert done.returncode in (0, 3)
    assert "\x1b" not in done.out and "\x07" not in done.out


def test_question_of_100_kb(kgqa):
    done = kgqa("ask", input="why " * 25_000)
    assert done.returncode == 1 and "100,000 characters" in done.out.replace("99,999", "100,000")


def test_invalid_utf8(kgqa):
    done = kgqa("ask", "--json", input=b"\xff\xfe who directed Parasite?\n")
    assert json.loads(done.out)["status"] == "answered"


@pytest.mark.parametrize(
    "topic", ["m.demo_nothing", "m.0> . ?s ?p ?o", "http://", "", "no such thing", "javascript:alert(1)"]
)
def test_unknown_topics(kgqa, topic):
    done = kgqa("ask", "who?", "--topic", topic)
    assert done.returncode == 3 and "kgqa graph search" in done.out


def test_empty_standard_input(kgqa):
    done = kgqa("ask", input="\n\n")
    assert done.returncode == 2 and "No question given" in done.err


def test_empty_graph(kgqa, tmp_path):
    (tmp_path / "empty.nt").touch()
    assert kgqa("graph", "load", "empty.nt", "--into", "g").returncode == 0
    assert "empty" in kgqa("ask", "who is it?", "--graph", "g").out
    assert "0" in kgqa("graph", "info", "g").out
    assert kgqa("graph", "search", "x", "--graph", "g").returncode == 3


def test_graph_without_names(kgqa, tmp_path):
    (tmp_path / "x.nt").write_text(TRIPLE)
    kgqa("graph", "load", "x.nt", "--into", "g")
    found = json.loads(
        kgqa("ask", "whom does a like?", "--topic", "http://example.org/a", "--graph", "g", "--json").out
    )
    assert [answer["iri"] for answer in found["answers"]] == ["http://example.org/b"]


def test_graph_of_named_graphs_only(kgqa, tmp_path):
    (tmp_path / "x.nq").write_text(TRIPLE.replace(" .", " <http://example.org/g1> ."))
    kgqa("graph", "load", "x.nq", "--into", "g")
    found = json.loads(
        kgqa("ask", "whom does a like?", "--topic", "http://example.org/a", "--graph", "g", "--json").out
    )
    assert [answer["iri"] for answer in found["answers"]] == ["http://example.org/b"]
    assert "FROM <http://example.org/g1>" in found["sparql"] and found["query_class"] == "exact"


def test_graph_of_many_named_graphs(kgqa, tmp_path):
    """The load succeeds; which graphs to query must be chosen."""
    (tmp_path / "x.nq").write_text("".join(TRIPLE.replace(" .", f" <http://g/{n}> .") + "\n" for n in range(101)))
    done = kgqa("graph", "load", "x.nq", "--into", "g")
    assert (
        done.returncode == 0 and "more than 100 named graphs" in done.out and "The first 100: http://g/0, " in done.out
    )
    assert kgqa("ask", "whom does a like?", "--graph", "g").returncode == 1


@pytest.mark.parametrize("folder", ["nowhere", ".", "file.txt"])
def test_paths_without_a_graph(kgqa, tmp_path, folder):
    (tmp_path / "file.txt").write_text("hello")
    done = kgqa("ask", "who?", "--graph", folder)
    assert done.returncode == 1 and "kgqa graph load" in done.err


def test_truncated_gzip_changes_nothing(kgqa, tmp_path):
    (tmp_path / "good.nt").write_text(TRIPLE)
    kgqa("graph", "load", "good.nt", "--into", "g")
    whole = gzip.compress(os.urandom(5000).hex().encode())
    (tmp_path / "bad.nt.gz").write_bytes(whole[: len(whole) // 2])
    done = kgqa("graph", "load", "bad.nt.gz", "--into", "g", "--on-error", "skip")
    assert done.returncode == 1 and "truncated" in done.err
    assert json.loads(kgqa("graph", "info", "g", "--json").out)["triples"] == 1


def test_malformed_lines(kgqa, tmp_path):
    (tmp_path / "x.nt").write_text(TRIPLE + "nonsense\n" + TRIPLE.replace("likes", "knows"))
    done = kgqa("graph", "load", "x.nt", "--into", "g")
    assert done.returncode == 1 and "x.nt, line 2" in done.err and "--on-error skip" in done.err
    done = kgqa("graph", "load", "x.nt", "--into", "g", "--on-error", "skip")
    assert done.returncode == 0 and "1 malformed line left out" in done.out and "line 2" in done.out
    assert json.loads(kgqa("graph", "info", "g", "--json").out)["triples"] == 2


def test_no_permission_to_write(kgqa, tmp_path):
    """/sys refuses new folders to everybody, root included."""
    (tmp_path / "x.nt").write_text(TRIPLE)
    done = kgqa("graph", "load", "x.nt", "--into", "/sys/kgqa-graph")
    assert done.returncode == 1 and "No permission to write to /sys/kgqa-graph" in done.err


def test_unwritable_cache(kgqa, tmp_path):
    (tmp_path / "x.nt").write_text(TRIPLE)
    own = {"KGQA_CACHE_FOLDER": "/sys/kgqa-cache"}
    assert kgqa("graph", "load", "x.nt", "--into", "g", **own).returncode == 0
    question = ("ask", "who likes it?", "--topic", "http://example.org/b", "--graph", "g", "--embeddings", "off")
    assert kgqa(*question, **own).returncode == 0
    done = kgqa("ask", "Who directed the film Parasite?", **own)
    assert done.returncode == 1 and "No permission" in done.err


def test_query_timeout(kgqa, tmp_path):
    """In a complete graph of 300 nodes a query of three hops exceeds the time limit."""
    nodes = [f"<http://example.org/{i}>" for i in range(300)]
    lines = [f"{a} <http://example.org/r{i % 3}> {b} .\n" for i, a in enumerate(nodes) for b in nodes]
    (tmp_path / "x.nt").write_text("".join(lines))
    kgqa("graph", "load", "x.nt", "--into", "g")
    started = time.monotonic()
    options = ("--graph", "g", "--depth", "4", "--timeout", "0.01", "--accept", "0")
    done = kgqa("ask", "who knows?", "--topic", "http://example.org/0", *options)
    assert time.monotonic() - started < 60
    assert done.returncode == 1 and "was stopped" in done.out


def _big_file(folder: Path, lines: int = TRIPLE_COUNT) -> Path:
    file = folder / "big.nt"
    with open(file, "w") as out:
        out.writelines(
            f"<http://example.org/{i}> <http://example.org/r{i % 7}> <http://example.org/{i * 7 % lines}> .\n"
            for i in range(lines)
        )
    return file


def _wait_for(condition, seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def _workers(folder: Path) -> list[int]:
    """Return the ids of processes that have a file of this folder open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(fd).startswith(str(folder)) for fd in (process / "fd").iterdir()):
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_load(kgqa, started, tmp_path, signal_number):
    (tmp_path / "good.nt").write_text(TRIPLE)
    kgqa("graph", "load", "good.nt", "--into", "g")
    before = json.loads(kgqa("graph", "info", "g", "--json").out)["fingerprint"]
    big = _big_file(tmp_path)
    folder = tmp_path / "g"
    process = started("graph", "load", big, "--into", "g")
    assert _wait_for(lambda: (folder / "gen-2" / "loading.json").exists())  # before that, there is nothing to resume
    process.send_signal(signal_number)
    process.wait(20)
    if signal_number == signal.SIGINT:
        assert process.returncode == 130
        assert "--resume" in process.stderr.read().decode()
    assert _wait_for(lambda: not _workers(folder), 10), "a worker was left behind"
    done = kgqa("graph", "info", "g", "--json")
    assert json.loads(done.out)["fingerprint"] == before
    assert "interrupted" in done.err and "--resume" in done.err
    done = kgqa("graph", "load", big, "--into", "g")
    assert done.returncode == 1 and "--resume" in done.err and "--restart" in done.err
    done = kgqa("graph", "load", "--resume", "--into", "g", "--json")
    assert json.loads(done.out)["triples"] == TRIPLE_COUNT + 1
    if signal_number == signal.SIGKILL:
        again = kgqa("graph", "load", big, "good.nt", "--into", "other", "--json")
        assert json.loads(again.out)["fingerprint"] == json.loads(done.out)["fingerprint"]


@pytest.mark.soak
@pytest.mark.slow
def test_second_load_is_refused(kgqa, started, tmp_path):
    big = _big_file(tmp_path)
    process = started("graph", "load", big, "--into", "g")
    assert _wait_for((tmp_path / "g" / "gen-1" / "loading.json").exists)
    process.send_signal(signal.SIGSTOP)  # keeps the load running during the other commands
    done = kgqa("graph", "load", big, "--into", "g")
    assert done.returncode == 1 and "Another process" in done.err
    assert "Another process is loading data into" in kgqa("ask", "who?", "--graph", "g").err
    process.send_signal(signal.SIGCONT)
    assert process.wait(120) == 0
    assert GraphFolder(tmp_path / "g").meta().triples == TRIPLE_COUNT


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGKILL])
def test_stopped_questions(kgqa, started, tmp_path, signal_number):
    kgqa("graph", "info")  # loads the demo graph
    process = started("ask", "--json", "--embeddings", "off")
    process.stdin.write(b"Who directed the film Parasite?\n")
    process.stdin.flush()
    first = process.stdout.readline()
    assert json.loads(first)["status"] == "answered"
    workers = [
        int(p.name) for p in Path("/proc").glob("[0-9]*")
        if (p / "stat").exists() and _parent(p) == process.pid
    ]  # fmt: skip
    assert workers
    process.send_signal(signal_number)
    process.wait(20)
    if signal_number == signal.SIGINT:
        assert process.returncode == 130
        assert "Stopped after 1 question" in process.stderr.read().decode()
    assert _wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 10)


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def test_failed_load_does_not_change_the_schema(kgqa, tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(f'name = "{name}"\n[names]\nlabel = ["http://example.org/{name}"]\n')
    (tmp_path / "a.nt").write_text(TRIPLE)
    (tmp_path / "bad.nt").write_text("nonsense\n")
    assert kgqa("graph", "load", "a.nt", "--into", "g", "--schema", "one.toml").returncode == 0
    assert kgqa("graph", "load", "bad.nt", "--into", "g", "--schema", "two.toml").returncode == 1
    assert json.loads(kgqa("graph", "info", "g", "--json").out)["schema"] == "one"
