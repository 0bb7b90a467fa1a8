"""The server's folder, settings file and share of memory, and the end of its log."""

from __future__ import annotations

import configparser
from pathlib import Path

import pytest

from kgqa.errors import ServerError
from kgqa.virtuoso.folder import MIN_BUFFERS, ServerFolder, ServerOptions, default_folder, machine_memory, render
from kgqa.virtuoso.process import explain_log, find_problem

GB = 1 << 30


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 16 * GB),
        ({"memory.max": "max"}, 16 * GB),
        ({"memory.max": str(4 * GB)}, 4 * GB),
        ({"memory/memory.limit_in_bytes": str(2 * GB)}, 2 * GB),
    ],
)
def test_machine_memory_respects_cgroup_limits(tmp_path, limits, expected):
    assert machine_memory(tmp_path) == 4 * GB
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(f"MemTotal:  {16 << 20} kB\nMemFree:  1 kB\n")
    for name, text in limits.items():
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True)
        file.write_text(text + "\n")
    assert machine_memory(tmp_path) == expected


def settings(folder: Path, options: ServerOptions) -> configparser.ConfigParser:
    ini = configparser.ConfigParser()
    ini.read_string(render(folder, options))
    return ini


def test_settings_file(tmp_path, monkeypatch):
    monkeypatch.setattr("kgqa.virtuoso.folder.machine_memory", lambda: 64 * GB)
    folder = tmp_path / "a folder"
    ini = settings(folder, ServerOptions(http_port=8891, sql_port=1112, row_cap=77, query_seconds=9, bind="0.0.0.0"))
    assert ini["Parameters"]["serverport"] == "127.0.0.1:1112" and ini["HTTPServer"]["serverport"] == "0.0.0.0:8891"
    assert ini["Parameters"]["dirsallowed"] == str(folder / "import")
    assert ini["HTTPServer"]["serverroot"] == str(folder / "www")
    assert (ini["SPARQL"]["resultsetmaxrows"], ini["SPARQL"]["maxqueryexecutiontime"]) == ("77", "9")
    buffers = int(0.4 * 64 * GB / 8700)
    assert (ini["Parameters"]["numberofbuffers"], ini["Parameters"]["maxdirtybuffers"]) == (
        str(buffers),
        str(buffers * 3 // 4),
    )
    assert ini["Parameters"]["maxquerymem"] == str(int(0.1 * 64 * GB)) and ini["I18N"]["xanynormalization"] == "3"
    assert "$" not in render(folder, ServerOptions())
    small = settings(folder, ServerOptions(memory_share=0.0001))
    assert small["Parameters"]["numberofbuffers"] == str(MIN_BUFFERS)


def test_files_of_a_database_elsewhere(tmp_path):
    ini = settings(tmp_path, ServerOptions(database="/data/freebase.db"))
    names = ("databasefile", "lockfile", "transactionfile", "errorlogfile")
    log = str(tmp_path / "virtuoso.log")
    assert [ini["Database"][name] for name in names] == [
        "/data/freebase.db", "/data/freebase.lck", "/data/freebase.trx", log
    ]  # fmt: skip


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "kgqa" / "virtuoso"
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(tmp_path / "named"))
    assert default_folder() == tmp_path / "named"


def test_private_files(tmp_path):
    folder = ServerFolder(tmp_path)
    for text in ("secret", "other"):
        file = folder.write("password", text + "\n")
        assert file.stat().st_mode & 0o777 == 0o600 and folder.password() == text
        file.chmod(0o644)
    assert [path.name for path in tmp_path.iterdir()] == ["password"]


@pytest.mark.parametrize("content", ["{", "[]", '{"http_port": "8890"}', '{"sql_port": null}', '{"bind": []}'])
def test_damaged_options(tmp_path, content):
    (tmp_path / "server.json").write_text(content)
    with pytest.raises(ServerError, match=r"server\.json cannot be read.*Remove that file"):
        ServerFolder(tmp_path).options()


# ---- the log ----

LOG = """
\t\tSat Nov 21 2026
14:58:40 OpenLink Virtuoso Universal Server
14:58:40 Out of disk space for database
\t\tSun Nov 22 2026
15:03:29 OpenLink Virtuoso Universal Server
15:03:29 Version 07.20.3229-pthreads for Linux as of Feb  8 2023
15:03:29 {line}\x1b[31m
15:03:29 virtuoso-t(+0x8f9f6) [0x55ac502499f6]
15:03:29 Server exiting
"""


@pytest.mark.parametrize(
    ("line", "meaning"),
    [
        ("Out of disk space for database", "The disk is full"),
        ("PL LOG: File x.nt error 40003 SR173: Transaction out of disk", "The disk is full"),
        ("Failed HTTP listen at 127.0.0.1:8890.", "--http-port N"),
        ("Failed to start listening at SQL port '127.0.0.1:1111'", "--sql-port N"),
        ("Virtuoso is already runnning (pid 14751)", "Another server has this database open"),
        ("Unable to create file virtuoso.lck (Read-only file system).", "may not write"),
        ("The database you are opening was last closed with a server of version 3240.", "made by another server"),
        ("GPF: disk.c:1775 Reference past end of configured stripes", "is damaged"),
    ],
)
def test_known_problems_are_explained(tmp_path, line, meaning):
    (tmp_path / "log").write_text(LOG.replace("{line}", line))
    explained = explain_log(tmp_path / "log")
    assert meaning in explained and line in explained and meaning in find_problem(line)
    assert not any(text in explained for text in ("\x1b", "0x8f9f6", "Nov", "14:58"))


def test_only_problems_of_the_last_run_are_explained(tmp_path):
    (tmp_path / "log").write_text(LOG.replace("{line}", "Incorrect login for dba from IP [127.0.0.1]"))
    assert explain_log(tmp_path / "log") == explain_log(tmp_path / "none") == ""
