"""The server's settings file and its share of memory."""

from __future__ import annotations

import configparser
import socket
from pathlib import Path

import pytest
from kgqa.virtuoso.instance.configuration import MIN_BUFFERS, machine_memory, memory_plan, render
from kgqa.virtuoso.instance.folder import ServerFolder, ServerRecord, default_folder
from kgqa.virtuoso.instance.processes import free_port, is_alive, listen_error, listener, processes_with_open

GB = 1 << 30


def machine(root: Path, *, kilobytes: int, **limits: str) -> Path:
    (root / "proc").mkdir()
    (root / "proc" / "meminfo").write_text(f"MemTotal:  {kilobytes} kB\nMemFree:  1 kB\n")
    files = {"v2": "sys/fs/cgroup/memory.max", "v1": "sys/fs/cgroup/memory/memory.limit_in_bytes"}
    for version, text in limits.items():
        (root / files[version]).parent.mkdir(parents=True, exist_ok=True)
        (root / files[version]).write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 16 * GB),
        ({"v2": "max"}, 16 * GB),
        ({"v2": str(4 * GB)}, 4 * GB),
        ({"v1": str(2 * GB)}, 2 * GB),
        ({"v1": "9223372036854771712"}, 16 * GB),
    ],
)
def test_machine_memory_respects_cgroup_limits(tmp_path, limits, expected):
    assert machine_memory(machine(tmp_path, kilobytes=16 << 20, **limits)) == expected


def test_default_memory_size(tmp_path):
    assert machine_memory(tmp_path) == 4 * GB


def test_memory_plan():
    plan = memory_plan(0.5, total=64 * GB)
    assert plan.buffers == int(0.4 * 64 * GB / 8700) == 3159516
    assert plan.dirty == plan.buffers * 3 // 4
    assert plan.query_bytes == int(0.1 * 64 * GB)
    assert memory_plan(0.001, total=GB).buffers == MIN_BUFFERS


def test_settings_file(tmp_path):
    folder = ServerFolder(tmp_path / "a folder")
    record = ServerRecord(http_port=8891, sql_port=1112, row_cap=77, query_seconds=9, memory_share=0.25)
    ini = configparser.ConfigParser()
    ini.read_string(render(folder, record))
    assert ini["Parameters"]["serverport"] == "127.0.0.1:1112"
    assert ini["HTTPServer"]["serverport"] == "127.0.0.1:8891"
    assert ini["Parameters"]["dirsallowed"] == str(folder.import_folder)
    assert ini["HTTPServer"]["serverroot"] == str(folder.path / "www")
    assert (ini["SPARQL"]["resultsetmaxrows"], ini["SPARQL"]["maxqueryexecutiontime"]) == ("77", "9")
    assert int(ini["Parameters"]["numberofbuffers"]) == memory_plan(0.25).buffers
    assert int(ini["Parameters"]["maxdirtybuffers"]) < int(ini["Parameters"]["numberofbuffers"])
    assert ini["I18N"]["xanynormalization"] == "3"
    assert "$" not in render(folder, record)


def test_files_of_an_adopted_database(tmp_path):
    folder = ServerFolder(tmp_path)
    ini = configparser.ConfigParser()
    ini.read_string(render(folder, ServerRecord(database="/data/freebase.db", bind="0.0.0.0")))
    names = ("databasefile", "lockfile", "transactionfile", "errorlogfile")
    assert [ini["Database"][name] for name in names] == [
        "/data/freebase.db",
        "/data/freebase.lck",
        "/data/freebase.trx",
        str(tmp_path / "virtuoso.log"),
    ]
    assert ini["HTTPServer"]["serverport"] == "0.0.0.0:8890"
    assert ini["Parameters"]["serverport"] == "127.0.0.1:1111"


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "kgqa" / "virtuoso"
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(tmp_path / "named"))
    assert default_folder() == tmp_path / "named"


def test_private_files(tmp_path):
    folder = ServerFolder(tmp_path)
    file = folder.write_private("password", "secret\n")
    assert file.stat().st_mode & 0o777 == 0o600 and folder.password() == "secret"
    file.chmod(0o644)
    folder.write_private("password", "other\n")
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["password"]


def test_owner_of_a_port_and_a_file(tmp_path):
    port = free_port()
    assert listener(port) is None and listen_error(port) is None
    with socket.create_server(("127.0.0.1", port)), open(tmp_path / "file", "w"):
        owner = listener(port)
        assert is_alive(owner.pid) and owner in processes_with_open(tmp_path / "file")
        assert listen_error(port) is not None
    assert processes_with_open(tmp_path / "file") == [] == processes_with_open(tmp_path / "none")
    assert not is_alive(2**22 + 1)
