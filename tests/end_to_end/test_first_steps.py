"""What a new user types wrongly while loading data: standard input, empty files, RDF as questions, folders of /proc."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import signal
import time

import pytest

from kgqa.errors import StoreCrashed
from kgqa.graph.names.graph_names import GraphNames
from tests.conftest import ROOT

TURTLE = "@prefix e: <http://e/> .\n# a comment\ne:a e:likes e:b , e:c .\n"


@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_loaded(kgqa, packed):
    data = gzip.compress(TURTLE.encode()) if packed else TURTLE
    done = kgqa("graph", "load", "-", "--format", ".TTL.gz" if packed else "ttl", "--into", "g", "--json", input=data)
    assert done.returncode == 0 and json.loads(done.out)["added"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-",), "--format nt"),
        (("-", "x.nt", "--format", "nt"), "one by one"),
        (("-", "--format", "../x"), "Unknown RDF format"),
    ],
)
def test_standard_input_that_cannot_be_loaded_is_refused_before_it_is_read(kgqa, tmp_path, arguments, message):
    done = kgqa("graph", "load", *arguments, "--into", "g", input=TURTLE)
    assert done.returncode == 2 and message in done.err and not (tmp_path / "g").exists()


def test_a_stopped_load_of_standard_input_leaves_nothing_to_resume(started, kgqa, tmp_path):
    running = started("graph", "load", "-", "--format", "nt", "--into", "g")
    running.stdin.write(b"".join(b"<http://e/%d> <http://e/p> <http://e/x> .\n" % number for number in range(150_000)))
    running.stdin.close()
    while not (tmp_path / "g" / "gen-1" / "loading.json").exists() and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    assert running.wait(30) == 130, running.stderr.read()
    assert b"--resume" not in running.stderr.read()
    assert kgqa("graph", "load", "-", "--format", "ttl", "--into", "g", input=TURTLE).returncode == 0


def test_a_load_whose_names_cannot_be_indexed_has_succeeded(kgqa, monkeypatch):
    def fail(*_: object) -> None:
        raise StoreCrashed("The engine crashed.")

    monkeypatch.setattr(GraphNames, "within", fail)
    done = kgqa("graph", "load", "-", "--format", "ttl", "--into", "g", "--json", input=TURTLE)
    assert done.returncode == 0 and json.loads(done.out)["added"] == 2


def test_files_without_triples_are_named(kgqa, tmp_path):
    (tmp_path / "a.ttl").write_text(TURTLE)
    (tmp_path / "b.nt").write_text("")
    (tmp_path / "c.ttl").write_text("# nothing\n")
    done = kgqa("graph", "load", "a.ttl", "b.nt", "c.ttl", "--into", "g")
    warnings = [line for line in done.out.splitlines() if line.startswith("Warning")]
    assert done.returncode == 0
    assert warnings == ["Warning: b.nt contains no triples.", "Warning: c.ttl contains no triples."]
    again = json.loads(kgqa("graph", "load", "a.ttl", "--into", "g", "--json").out)
    assert again["empty"] == [] and again["added"] == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.ttl", TURTLE),
        ("x.json", "# data\n\nPREFIX e: <http://e/>\ne:a e:b e:c ."),
        ("x.txt.gz", "<http://e/a> <http://e/b> <http://e/c> .\n"),
        ("x.rdf", "<?xml version='1.0'?><rdf:RDF/>"),
    ],
)
def test_rdf_is_not_a_file_of_questions(kgqa, tmp_path, name, text):
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    for source in (name, f"cwq:{name}"):
        done = kgqa("eval", "run", "--dataset", source, "--out", "r")
        assert (
            done.returncode == 1
            and f"contains RDF, not questions. Load it as a graph: kgqa graph load {name}" in done.err
        )


def test_plain_questions_are_not_a_data_set(kgqa, tmp_path):
    (tmp_path / "q.txt").write_text("Who directed Parasite?\n")
    done = kgqa("eval", "run", "--dataset", "q.txt", "--out", "r")
    assert done.returncode == 1 and "q.txt, line 1 is not JSON." in done.err and "kgqa ask --json < q.txt" in done.err
    (tmp_path / "q.txt").write_text('{"question": "Who?"\n')
    assert "line 1: Expecting" in kgqa("eval", "run", "--dataset", "q.txt", "--out", "r").err


def test_rdf_among_documents_is_named(kgqa, tmp_path):
    (tmp_path / "a.ttl").write_text(TURTLE)
    done = kgqa("corpus", "build", "a.ttl", "--into", "c", "--embeddings", "off")
    assert done.returncode == 0 and "To load it as a graph: kgqa graph load a.ttl --into mygraph/" in done.err


def test_a_question_that_begins_like_rdf_is_a_question(kgqa, tmp_path):
    (tmp_path / "q.jsonl").write_text(
        '{"question": "Who directed the film Parasite?", "answers": [{"name": "Bong Joon-ho"}]}\n'
    )
    assert kgqa("data", "check", "q.jsonl").returncode == 0


def test_a_folder_that_cannot_exist_has_one_message(kgqa, tmp_path):
    (tmp_path / "a.ttl").write_text(TURTLE)
    for arguments in (
        ("graph", "load", "a.ttl", "--into", "/proc/x"),
        ("corpus", "build", "a.ttl", "--into", "/proc/x"),
        ("eval", "run", "--dataset", "demo", "--embeddings", "off", "--out", "/proc/x"),
    ):
        done = kgqa(*arguments)
        assert done.returncode == 1 and "/proc/x cannot be created. Choose" in done.err, done.err
        assert "permission" not in done.err and "No such file" not in done.err


def test_the_page_getting_started_works(kgqa, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    turtle, commands = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)[0] for kind in ("turtle", "console"))
    assert (ROOT / "docs" / "company.ttl").read_text() == turtle  # the README asks it
    (tmp_path / "company.ttl").write_text(turtle)
    done = [kgqa(*shlex.split(line.removeprefix("$ "))[1:]) for line in commands.splitlines()]
    assert [each.returncode for each in done] == [0] * len(done), [each.err for each in done]
    loaded, found, founder, she, _, again, shown = (each.out for each in done)
    assert "Acme" in found and "Warning" not in loaded
    assert founder.startswith("Bergen") and she.startswith("Bergen") and again.startswith("Ada Berg")
    assert "company/" in shown
