"""The journal of the load list: lost files and advice."""

from __future__ import annotations

import pytest

from kgqa.virtuoso.server import load_list_journal
from kgqa.virtuoso.server.server import Server


@pytest.fixture
def server(tmp_path) -> Server:
    server = Server.at(tmp_path / "server")
    server.folder.create()
    return server


def test_journal_keeps_lost_files_of_several_graphs(server):
    folder = server.folder
    paths = [folder.import_folder / f"{name}.nt" for name in "abc"]
    load_list_journal.begin(folder, paths[:2], "http://one", lost={})
    assert load_list_journal.settle(folder, [str(paths[0])]) == {str(paths[1]): "http://one"}
    load_list_journal.begin(folder, paths[2:], "http://two", lost=load_list_journal.missing_files(folder.journal(), ()))
    lost = load_list_journal.settle(folder, [])
    assert lost == {str(paths[1]): "http://one", str(paths[2]): "http://two"}
    assert load_list_journal.advice(lost) == server.status().message
    advice = load_list_journal.advice(lost)
    assert "2 files have" in advice and "b.nt into <http://one>; c.nt into <http://two>" in advice
    load_list_journal.begin(folder, paths[1:], "http://two", lost=lost)
    assert load_list_journal.settle(folder, map(str, paths)) == {} and folder.journal() is None
    assert load_list_journal.advice({}) == ""


def test_long_list_of_lost_files_is_shortened():
    lost = {f"/import/chunk{n:03}.nt": "http://g" for n in range(50)}
    advice = load_list_journal.advice(lost)
    assert "chunk019.nt and 30 more" in advice and "chunk020" not in advice


@pytest.mark.parametrize(
    ("name", "command"), [("freebase-load", "kgqa freebase load DUMP"), ("graph-load", "kgqa graph load")]
)
def test_advice_names_the_command_to_resume(server, name, command):
    folder = server.folder
    chunk, given = folder.import_folder / name / "000001.nt", folder.import_folder / "given.nt"
    load_list_journal.begin(folder, [chunk], "http://one", lost={})
    lost = load_list_journal.settle(folder, [])
    assert f"into <http://one> was interrupted. Resume it: {command} --resume" in load_list_journal.advice(lost)
    load_list_journal.begin(folder, [given], "http://two", lost=lost)
    assert "2 files have" in load_list_journal.advice(load_list_journal.settle(folder, []))
    load_list_journal.forget_chunks_of(folder, name)
    assert folder.journal()["lost"] == {str(given): "http://two"}
    load_list_journal.begin(folder, [], "", lost={str(chunk): "http://one"})
    load_list_journal.forget_chunks_of(folder, name)
    assert folder.journal() is None
