"""The server's folder, settings file and share of memory, and the end of its log."""

from __future__ import annotations

import configparser

import pytest

from kgqa.errors import ServerError
from kgqa.virtuoso.folder import MIN_BUFFERS, ServerFolder, ServerOptions, default_folder, machine_memory
from kgqa.virtuoso.process import explain_log, find_problem

GB = 1 << 30


def test_machine_memory_respects_cgroup_limits(tmp_path):
    everything = machine_memory(tmp_path)
    assert everything > GB // 2
    for name, text, expected in (
        ("memory.max", "max", everything),
        ("memory/memory.limit_in_bytes", str(GB // 4), GB // 4),
        ("memory.max", str(GB // 8), GB // 8),
    ):
        file = tmp_path / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
        assert machine_memory(tmp_path) == expected


def test_settings_file(tmp_path, monkeypatch):
    monkeypatch.setattr("kgqa.virtuoso.folder.machine_memory", lambda: 64 * GB)
    folder = tmp_path / "a folder"

    def settings(**options) -> configparser.ConfigParser:
        text, ini = ServerFolder(folder, ServerOptions(**options)).settings(), configparser.ConfigParser()
        ini.read_string(text)
        assert "$" not in text
        return ini

    ini = settings(http_port=8891, sql_port=1112, row_cap=77, query_seconds=9, bind="0.0.0.0")
    parameters, http, buffers = ini["Parameters"], ini["HTTPServer"], int(0.4 * 64 * GB / 8700)
    assert (parameters["serverport"], http["serverport"]) == ("127.0.0.1:1112", "0.0.0.0:8891")
    assert (parameters["dirsallowed"], http["serverroot"]) == (str(folder / "import"), str(folder / "www"))
    assert (ini["SPARQL"]["resultsetmaxrows"], ini["SPARQL"]["maxqueryexecutiontime"]) == ("77", "9")
    assert (int(parameters["numberofbuffers"]), int(parameters["maxdirtybuffers"])) == (buffers, buffers * 3 // 4)
    assert (parameters["maxquerymem"], ini["I18N"]["xanynormalization"]) == (str(int(0.1 * 64 * GB)), "3")
    assert settings(memory_share=0.0001)["Parameters"]["numberofbuffers"] == str(MIN_BUFFERS)
    files = settings(database="/data/freebase.db")["Database"]
    assert [files[name] for name in ("databasefile", "lockfile", "transactionfile", "errorlogfile")] == [
        "/data/freebase.db", "/data/freebase.lck", "/data/freebase.trx", str(folder / "virtuoso.log")
    ]  # fmt: skip


def test_default_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "kgqa" / "virtuoso"
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(tmp_path / "named"))
    assert default_folder() == tmp_path / "named"


@pytest.mark.parametrize("content", ["{", '{"http_port": "8890"}', '{"bind": []}'])
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
    # the problem of an earlier run
    (tmp_path / "log").write_text(LOG.replace("{line}", "Incorrect login for dba from IP [127.0.0.1]"))
    assert explain_log(tmp_path / "log") == explain_log(tmp_path / "none") == ""
