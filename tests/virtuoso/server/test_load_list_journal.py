"""The journal of the load list: lost files and advice."""

from __future__ import annotations

import json

import pytest
from kgqa.virtuoso.server.server import Server

from kgqa.virtuoso.server import load_list


@pytest.fixture
def server(tmp_path) -> Server:
    server = Server.at(tmp_path / "server")
    server.folder.create()
    return server


def test_journal_keeps_the_files_that_are_not_loaded(server):
    folder = server.folder
    paths = [folder.import_folder / f"{name}.nt" for name in "abc"]
    load_list.begin(folder, paths, "http://one")
    load_list.settle(folder, [str(paths[0])])
    assert folder.journal().files == [str(path) for path in paths[1:]]
    message = server.status().message
    assert "2 files have" in message and "b.nt, c.nt into <http://one>" in message
    assert load_list.unfinished_loads(folder, map(str, paths)) == ""
    load_list.settle(folder, map(str, paths))
    assert folder.journal() is None and server.status().message == ""


def test_long_list_of_lost_files_is_shortened(server):
    files = [server.folder.import_folder / f"chunk{n:03}.nt" for n in range(50)]
    load_list.begin(server.folder, files, "http://g")
    message = server.status().message
    assert "chunk019.nt and 30 more" in message and "chunk020" not in message


@pytest.mark.parametrize(
    ("name", "command", "journal"),
    [
        ("freebase-load", "kgqa freebase load DUMP", {"options": {"graph_iri": "http://one"}}),
        ("graph-load", "kgqa graph load", {"graph": "http://one"}),
    ],
)
def test_message_names_the_command_to_resume(server, name, command, journal):
    folder = server.folder
    load_list.begin(folder, [folder.import_folder / name / "000001.nt"], "http://one")
    folder.write_private(f"{name}.json", json.dumps(journal))
    message = server.status().message
    assert f"into <http://one> was interrupted. Resume it: {command} --resume" in message
    assert "000001.nt" not in message
    load_list.forget_chunks_of(folder, name)
    assert folder.journal() is None
