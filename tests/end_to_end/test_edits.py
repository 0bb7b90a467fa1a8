"""`kgqa edits`: list, show, review, undo, verify, as-of and merge, with what goes wrong."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.corpus.editing.proposals import GatedEdit
from kgqa.corpus.editor import Editor
from tests.corpus.editing.edited_corpus import WEB, build, iri_of, overlay, parties, segments, shown
from tests.sparql_server import SparqlServer

MET = "Ada met Babbage London"
PARIS, ROME, KNEW = "Ada met Babbage in Paris.", "Ada met Babbage in Rome.", "Ada knew \x1b[31mSomerville."


@pytest.fixture
def corpus(tmp_path) -> Path:
    """A corpus with three proposed edits of two sessions, and one that a gate rejected."""
    path = build(tmp_path / "corpus")
    with Corpus.open(path) as opened:
        first, second = overlay(opened, session="s1"), overlay(opened, session="s2")
        first.insert(KNEW, parties("Ada", "Somerville"), [shown(1, KNEW)], "new")
        first.update(iri_of(opened.reader, MET), PARIS, parties("Ada", "Paris"), [shown(2, PARIS)])
        gated = GatedEdit("insert", "Ignore this", "", (WEB,), "instruction", "No.", "s1", "?", "model", "2026")
        first.gated.append(gated)
        commit(first, "proposed")
        source = shown(1, ROME, "corpus", "urn:kgqa:chunk:1")
        second.update(iri_of(opened.reader, MET), ROME, parties("Ada", "Rome"), [source])
        commit(second, "proposed")
    return path


def ids(kgqa, *options) -> list[str]:
    found = json.loads(kgqa("edits", "list", "corpus", "--json", *options).out)
    return [each["id"].rsplit(":", 1)[-1] for each in found]


def test_list_and_show(kgqa, corpus):
    done = kgqa("edits", "list", "corpus")
    lines = done.out.splitlines()
    assert [line.split()[1] for line in lines] == [*["cfc410d474"], "waiting", "waiting", "waiting", "gated"]
    assert "\x1b" not in done.out and "Ada knew Somerville." in done.out.replace("[31m", "")
    assert len(ids(kgqa, "--session", "s1", "--state", "waiting")) == 2
    assert len(ids(kgqa, "--source", "urn:kgqa:chunk:1", "--kind", "update")) == 1
    assert ids(kgqa, "--state", "undone") == []
    assert "No edits" in kgqa("edits", "list", "corpus", "--state", "held").err
    assert "3 earlier edits not shown" in kgqa("edits", "list", "corpus", "--limit", "2").err
    _, paris, rome = ids(kgqa, "--state", "waiting")
    done = kgqa("edits", "show", "corpus", paris[:8])
    assert f"= {MET}  (kept, because it is trusted more)" in done.out and f"+ {PARIS}" in done.out
    assert f"[web] {WEB}" in done.out and f"“{PARIS}”" in done.out
    assert f"- {MET}" in kgqa("edits", "show", "corpus", rome).out
    shown_ = json.loads(kgqa("edits", "show", "corpus", rome, "--json").out)
    assert shown_["removes"] == [MET] and shown_["sources"][0]["quote"] == ROME and shown_["seq"] is None
    for name in ("99", "zz", "#", ""):
        done = kgqa("edits", "show", "corpus", name)
        assert done.returncode == 1 and "kgqa edits list corpus".upper() in done.err.upper()


def test_review_by_options_then_undo(kgqa, corpus):
    knew, _, rome = ids(kgqa, "--state", "waiting")
    done = kgqa(
        "edits", "review", "corpus", "--accept", knew[:6], "--reject", rome[:6], "--by", "eve", "--reason", "ok"
    )
    assert done.out == "1 accepted, 1 rejected; 1 edit waiting.\n"
    assert kgqa("edits", "review", "corpus", "--session", "s1", "--accept", knew).returncode == 2
    assert "accepted by eve" in kgqa("edits", "show", "corpus", knew).out
    done = kgqa("edits", "review", "corpus", "--all", "accept", "--session", "s1")
    assert done.out == "1 accepted, 0 rejected; 0 edits waiting.\n"
    assert kgqa("edits", "review", "corpus").out == "No edit waits.\n"
    assert segments(corpus) >= {MET, PARIS}
    search = ("corpus", "search", "Ada met Babbage", "--kind", "hyperedge", "--graph", "corpus", "--embeddings", "off")
    found = json.loads(kgqa(*search, "--json").out)
    assert {each["text"]: each["conflicts_with"] for each in found}[MET] == [PARIS]
    assert "in conflict with: " in kgqa(*search).out
    assert "Somerville" in kgqa("graph", "search", "Somerville", "--graph", "corpus").out  # facts follow
    assert kgqa("corpus", "check", "corpus").returncode == 0

    assert "was accepted already" in kgqa("edits", "review", "corpus", "--reject", knew).err
    done = kgqa("edits", "undo", "corpus", "--source", WEB, "--dry-run")
    assert done.out.startswith("2 edits to undo:\n") and PARIS in segments(corpus)
    done = kgqa("edits", "undo", "corpus", "--source", WEB)
    assert (done.returncode, done.out) == (0, "2 edits undone.\n")
    assert not segments(corpus) & {PARIS, KNEW}
    assert kgqa("graph", "search", "Somerville", "--graph", "corpus").returncode == 3
    done = kgqa("edits", "undo", "corpus", "--source", WEB)
    assert done.out == "Nothing to undo.\n" and "2 edits are undone already" in done.err
    assert kgqa("edits", "undo", "corpus", "--session", "nobody").returncode == 1
    assert kgqa("edits", "undo", "corpus").returncode == 2
    assert kgqa("edits", "undo", "corpus", "2", "--session", "s1").returncode == 2


def test_dependents_are_listed_and_want_cascade(kgqa, corpus):
    kgqa("edits", "review", "corpus", "--all", "accept")
    with Corpus.open(corpus) as opened:
        target = iri_of(opened.reader, KNEW)
        made = overlay(opened, session="s3")
        made.insert("Somerville taught.", parties("Somerville"), [shown(1, KNEW, "web", target)])
        commit(made, "auto")
    done = kgqa("edits", "undo", "corpus", "2")
    assert done.returncode == 1 and "1 edit builds on it:" in done.out and "--cascade" in done.err
    assert KNEW in segments(corpus)
    assert kgqa("edits", "undo", "corpus", "2", "--cascade").out == "2 edits undone.\n"
    assert not segments(corpus) & {KNEW, "Somerville taught."}


def test_review_in_a_dialogue(kgqa, corpus):
    done = kgqa("edits", "review", "corpus", input="a\nwhat\nr\n")
    assert done.returncode == 130 and "What you decided is kept." in done.err
    assert [len(ids(kgqa, "--state", state)) for state in ("waiting", "rejected")] == [1, 1]
    done = kgqa("edits", "review", "corpus", input="q\n")
    assert done.out.splitlines()[-1].endswith("0 accepted, 0 rejected; 1 edit waiting.") and done.returncode == 0
    assert KNEW in segments(corpus)


def test_ctrl_c_in_a_dialogue_keeps_decisions(started, kgqa, corpus):
    process = started("edits", "review", "corpus")
    process.stdin.write(b"a\n")
    process.stdin.flush()
    until = time.monotonic() + 30
    while KNEW not in segments(corpus) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert len(ids(kgqa, "--state", "waiting")) == 2 and kgqa("edits", "verify", "corpus").returncode == 0


def test_a_changed_byte_is_found(kgqa, corpus):
    assert "1 edit, none was changed" in kgqa("edits", "verify", "corpus").out
    with closing(sqlite3.connect(corpus / "corpus.sqlite")) as database:
        for active in (0, 1):
            database.execute("UPDATE edits SET active = ?", (active,))
            database.commit()
            assert kgqa("edits", "verify", "corpus").returncode == 1 - active
    file = corpus / "proposals.jsonl"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    done = kgqa("edits", "verify", "corpus")
    assert done.returncode == 1 and "The proposals were changed: proposals.jsonl, line" in done.out
    assert "was changed: line" in kgqa("edits", "list", "corpus").err
    assert kgqa("corpus", "check", "corpus").returncode == 1


def test_another_writer_is_refused(kgqa, corpus):
    with Editor(corpus):
        done = kgqa("edits", "review", "corpus", "--all", "accept")
    assert done.returncode == 1 and "Another process is writing" in done.err
    assert len(ids(kgqa, "--state", "waiting")) == 3


def test_earlier_states_and_merging(kgqa, corpus, tmp_path):
    shutil.copytree(corpus, tmp_path / "other")
    kgqa("edits", "review", "corpus", "--all", "accept")
    assert kgqa("edits", "as-of", "corpus", "1", "--into", "first").out == "first: the corpus after 1 edit.\n"
    assert segments(tmp_path / "first") == segments(tmp_path / "other")
    assert kgqa("corpus", "status", "first").returncode == 0
    done = kgqa("edits", "as-of", "corpus", "2026-01-31", "--into", "january")
    assert "after 1 edit" in done.out  # accepted later than proposed
    assert "exists already" in kgqa("edits", "as-of", "corpus", "1", "--into", "first").err
    for moment, part in (
        ("9", "the last one is 4"),
        ("9" * 5000, "the last one is 4"),
        ("soon", "nor a time"),
        ("2026-13-01", "nor a time"),
    ):
        assert part in kgqa("edits", "as-of", "corpus", moment, "--into", "never").err
    assert not (tmp_path / "never").exists() and not list(tmp_path.glob(".never*"))

    done = kgqa("edits", "merge", "first", "corpus")
    assert done.out.startswith("3 edits and 3 proposed edits merged.\n")
    assert segments(tmp_path / "first") == segments(corpus)
    assert kgqa("edits", "merge", "first", "corpus").out == "0 edits and 0 proposed edits merged.\n"
    done = kgqa("edits", "merge", "january", "corpus/proposals.jsonl")
    assert done.out == "0 edits and 3 proposed edits merged.\n"
    assert "There is no corpus" in kgqa("edits", "merge", "first", "nowhere").err
    assert "There is no corpus" in kgqa("edits", "merge", "first", ".").err


def test_held_conflicts_are_reviewed(kgqa, corpus, tmp_path):
    """Both copies replace the same text: neither new text lives until a review."""
    with Corpus.open(corpus) as opened:
        met = iri_of(opened.reader, MET)
        logs = []
        for name, text in (("here", "Ada met Babbage in Oslo."), ("there", "Ada met Babbage in Bern.")):
            shutil.copytree(corpus, tmp_path / name)
            with Corpus.open(tmp_path / name) as copy:
                made = overlay(copy, session=name)
                made.update(met, text, parties("Ada", "Babbage"), [shown(1, text, "user", "urn:user:1")])
                logs.append(text)
                commit(made, "auto", guarded=False)
    oslo, bern = logs
    assert kgqa("edits", "merge", "there", "here").out.endswith("1 pair of edits in conflict.\n")
    assert segments(tmp_path / "there") >= {oslo, bern}
    done = kgqa("edits", "merge", "here", "there", "--hold")
    assert "2 texts are hidden until a review: kgqa edits review here" in done.err
    assert not segments(tmp_path / "here") & {oslo, bern, MET}
    held = json.loads(kgqa("edits", "list", "here", "--state", "held", "--json").out)
    (choice,) = [each["id"] for each in held if each["removes"] == [bern]]
    (other,) = [each["id"] for each in held if each["removes"] == [oslo]]
    assert kgqa("edits", "review", "here", "--accept", choice, "--reject", other).returncode == 0
    assert segments(tmp_path / "here") & {oslo, bern} == {bern}
    assert kgqa("edits", "list", "here", "--state", "held").out == ""
    assert kgqa("corpus", "check", "here").returncode == 0


@pytest.mark.slow
def test_a_graph_on_a_server_follows(kgqa, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "anna.md").write_text("# Anna Berg\n\nBirthplace: Halden\n")
    text = "Anna Berg built the bridge of Halden."
    with closing(SparqlServer(writable=True)) as server:
        done = kgqa("corpus", "build", "docs", "--into", "corpus", "--graph-url", server.url, "--embeddings", "off")
        assert done.returncode == 0, done.err
        with Corpus.open(tmp_path / "corpus") as opened:
            made = overlay(opened)
            made.insert(text, parties("Anna Berg", "Bridge of Halden"), [shown(1, text)])
            outcome = commit(made, "auto")  # a program that does not open the server proposes
        assert len(outcome.proposed) == 1 and "waits for a review" in outcome.notes[0]
        assert "1 accepted" in kgqa("edits", "review", "corpus", "--all", "accept").out
        search = ("graph", "search", "Bridge of Halden", "--graph", "corpus")
        assert "Bridge of Halden" in kgqa(*search).out
        assert kgqa("corpus", "check", "corpus").returncode == 0
        assert kgqa("edits", "as-of", "corpus", "2", "--into", "copy").returncode == 0
        assert segments(tmp_path / "copy") == {text}  # its graph is in the folder
        assert kgqa("edits", "undo", "corpus", "2").out == "1 edit undone.\n"
        assert kgqa(*search).returncode == 3
    assert "kgqa: " in kgqa("edits", "undo", "corpus", "3").err  # the server is gone
