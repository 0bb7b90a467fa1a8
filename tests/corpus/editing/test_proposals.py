"""The file of proposals: a changed byte is found, a torn record is repaired, many processes append at once."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.editing.committing import commit
from kgqa.corpus.editing.proposals import MAX_LINE_BYTES, Decision, GatedEdit, ProposalFile, ProposedEdit
from kgqa.errors import CorpusError
from tests.corpus.editing.edited_corpus import build, overlay, parties, shown

GATED = GatedEdit("insert", "x" * 50, "", ("http://web.example/",), "names", "No source.", "s", "q?", "m", "2026")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The bytes of a file with records of all kinds."""
    path = build(tmp_path_factory.mktemp("proposals") / "c")
    with Corpus.open(path) as corpus:
        made = overlay(corpus)
        for number, text in enumerate(("Ada knew Somerville.", "Ada knew \ud83d \ude00 \U0001f600 \u2028 “Dickens”.")):
            made.insert(text, parties("Ada"), [shown(number, text)], "learnt")
        made.gated.append(GATED)
        commit(made, "proposed")
    file = ProposalFile(path)
    file.append([Decision(made.edits[0].edit.id, "rejected", "me", "2026", "no")])
    assert [type(each) for each in file.records()] == [GatedEdit, ProposedEdit, ProposedEdit, Decision]
    assert [each.edit for each in file.records()[1:3]] == [replace(each.edit, seq=0) for each in made.edits]
    assert list(file.findings()) == []
    return file.path.read_bytes()


@given(st.data())
def test_a_changed_byte_is_found(written, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("changed")
    at = data.draw(st.integers(0, len(written) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != written[at]))
    (folder / "proposals.jsonl").write_bytes(written[:at] + bytes([byte]) + written[at + 1 :])
    assert list(ProposalFile(folder).findings()) != []


def test_missing_and_swapped_records_are_found(written, tmp_path):
    lines = written.splitlines(keepends=True)
    for changed in (lines[1:], [lines[0], *lines[2:]], [lines[1], lines[0], *lines[2:]], [*lines, lines[-1]]):
        (tmp_path / "proposals.jsonl").write_bytes(b"".join(changed))
        with pytest.raises(CorpusError, match="was changed: line"):
            ProposalFile(tmp_path).records()


def test_a_record_that_a_killed_process_began_is_replaced(written, tmp_path):
    file = ProposalFile(tmp_path)
    for torn in (b"", written[:200], written + written[:200]):
        file.path.write_bytes(torn)
        before = len(file.records())
        assert bool(list(file.findings())) == bool(torn)
        file.append([GATED])
        assert len(file.records()) == before + 1 and list(file.findings()) == []
    file.path.write_bytes(written[:-2] + b"\n")
    with pytest.raises(CorpusError, match="its last line is not a record"):
        file.append([GATED])


def test_many_processes_append_at_once(tmp_path):
    children = []
    for _ in range(4):
        child = os.fork()
        if not child:
            code = 1
            try:
                for _ in range(10):
                    ProposalFile(tmp_path).append([GATED, GATED])
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert ProposalFile(tmp_path).records() == [GATED] * 80


def test_the_file_is_never_a_link(tmp_path):
    (tmp_path / "other").write_text("")
    (tmp_path / "proposals.jsonl").symlink_to(tmp_path / "other")
    with pytest.raises(CorpusError, match="is a link"):
        ProposalFile(tmp_path).append([GATED])


def test_a_file_with_a_long_damaged_end_keeps_its_records(written, tmp_path):
    damaged = written + bytes(2 * MAX_LINE_BYTES)
    (tmp_path / "proposals.jsonl").write_bytes(damaged)
    with pytest.raises(CorpusError, match="ends without a record"):
        ProposalFile(tmp_path).append([GATED])
    assert (tmp_path / "proposals.jsonl").read_bytes() == damaged
