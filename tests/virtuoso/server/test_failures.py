"""Failures of a server: detection, message with the next step, and safe recovery."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

import pytest
from kgqa.virtuoso.instance.isql import BAD_LOGIN
from kgqa.virtuoso.instance.launching import server_program
from kgqa.virtuoso.instance.processes import free_port, listener, lock_owner
from kgqa.virtuoso.instance.session import explain_sql
from kgqa.virtuoso.server.server import Server

from kgqa.errors import ServerError, SqlError
from tests.virtuoso_server import needs_virtuoso, running_server

pytestmark = pytest.mark.server


def refusal_message(server: Server, **options) -> str:
    """Return the message with which `start` refuses; the server must not run and the database must be unchanged."""
    database = server.folder.path / "virtuoso.db"
    before = database.stat() if database.exists() else None
    with pytest.raises(ServerError) as caught:
        server.start(**{"http_port": free_port(), "sql_port": free_port(), "memory_share": 0.02, **options})
    assert lock_owner(database.with_suffix(".lck")) is None
    assert before is None or (database.stat().st_size, database.stat().st_mtime) == (before.st_size, before.st_mtime)
    return str(caught.value)


# ---- before it starts ----


def test_not_installed(stopped_server, monkeypatch, tmp_path):
    server = str(server_program())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert re.search(
        r"virtuoso-t\) is not installed.*kgqa virtuoso install.*VIRTUOSO_T=", refusal_message(stopped_server)
    )
    monkeypatch.setenv("VIRTUOSO_T", server)
    other = tmp_path / "isql"  # unixODBC has a program with this name
    other.write_text("#!/bin/sh\nexit 0\n")
    other.chmod(0o755)
    assert "isql-vt) is not installed" in refusal_message(stopped_server)


def test_configured_program_is_not_executable(stopped_server, monkeypatch):
    monkeypatch.setenv("VIRTUOSO_T", "/nowhere/virtuoso-t")
    assert "VIRTUOSO_T is set to /nowhere/virtuoso-t, which is not an" in refusal_message(stopped_server)


@pytest.mark.parametrize("option_name", ["http_port", "sql_port"])
def test_port_in_use(stopped_server, option_name):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        message = refusal_message(stopped_server, **{option_name: port})
    option = "--" + option_name.replace("_", "-")
    assert re.search(rf"Port {port} is used by .*\(process {os.getpid()}\).*{option} \d+", message)


def test_port_used_by_another_virtuoso(virtuoso_server, stopped_server):
    record = virtuoso_server.folder.record()
    pid = virtuoso_server.status().pid
    message = refusal_message(stopped_server, sql_port=record.sql_port)
    assert f"Port {record.sql_port} is used by virtuoso-t (process {pid})" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"http_port": 0}, "0 is not a port"),
        ({"sql_port": 70000}, "70000 is not a port"),
        ({"http_port": 4000, "sql_port": 4000}, "cannot share port 4000"),
        ({"memory_share": 0}, "is out of range"),
        ({"memory_share": 1.5}, "is out of range"),
        ({"row_cap": 0}, "must be at least 1"),
        ({"query_seconds": -1}, "must be at least 1"),
        ({"bind": "example.org"}, "not an IPv4 address"),
        ({"bind": "127.0.0.1\nfoo = bar"}, "not an IPv4 address"),
        ({"bind": "192.0.2.1"}, "cannot be opened on 192.0.2.1"),
    ],
)
def test_invalid_options(stopped_server, options, message):
    assert message in refusal_message(stopped_server, **options)


def test_unusable_folders(tmp_path):
    needs_virtuoso()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    mode = (tmp_path / "full").stat().st_mode
    assert "contains other files" in refusal_message(Server.at(tmp_path / "full"))
    assert (tmp_path / "full").stat().st_mode == mode
    assert "cannot be created or written" in refusal_message(Server.at(tmp_path / "full" / "letter.txt"))
    assert "cannot hold a path that contains any of" in refusal_message(Server.at(tmp_path / "a;b"))
    for message in (refusal_message(Server.at(tmp_path / "full")), refusal_message(Server.at(tmp_path / "a,b"))):
        assert "KGQA_VIRTUOSO_FOLDER=" in message


def test_read_only_disk(prepared_folder, small_disk):
    disk = small_disk(200)
    server = Server.at(shutil.copytree(prepared_folder, disk / "server"))
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert "cannot be created or written (Read-only file system)" in refusal_message(server)


def test_full_disk_at_the_first_start(small_disk):
    needs_virtuoso()
    server = Server.at(small_disk(60) / "server")
    assert re.search(r"The disk is full: \d+ MB are free at .*folder=", refusal_message(server))


@pytest.mark.slow
def test_disk_fills_while_the_database_is_created(small_disk, monkeypatch):
    needs_virtuoso()
    monkeypatch.setattr("kgqa.virtuoso.server.starting.MIN_FREE_BYTES", 0)
    server = Server.at(small_disk(40) / "server")
    message = refusal_message(server)
    assert re.search(r"did not start. The disk is full. \d+ MB are free at .*Its log says:.*(?i:out of disk)", message)
    assert not server.folder.database.exists()  # no incomplete database is kept
    assert not server.folder.password_file.exists() and not server.folder.creation_marker.exists()


# ---- its files ----


@pytest.mark.slow
def test_hanging_and_killed_server(own_server):
    """Committed rows survive a kill, and a stale lock may name the id of another process."""
    own_server.sql("create table kept (a varchar primary key)")
    own_server.sql("insert into kept values (?)", ["of value"])
    pid = own_server.status().pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ServerError, match="not answered .* within 0.3 s. Check the server: kgqa virtuoso status"):
        own_server.stop(timeout=0.3)
    assert own_server.status().pid == pid
    os.kill(pid, signal.SIGKILL)
    while own_server.status().state != "crashed":
        time.sleep(0.02)
    assert re.search(r"killed or crashed.*kgqa virtuoso start", own_server.status().message)
    assert own_server.stop() is False
    own_server.folder.lock.write_text(f"VIRT_PID={os.getpid()}\n")
    assert own_server.status().state == "crashed"
    notes = []
    assert own_server.start(notify=notes.append)
    assert notes == ["The server was not shut down properly; it recovers from its transaction log."]
    assert lock_owner(own_server.folder.lock).pid not in (pid, os.getpid())
    assert own_server.sql("select a from kept") == [("of value",)]


@pytest.mark.slow
def test_killed_first_start(tmp_path):
    """The next start removes the incomplete database, ends the hidden server and creates the database again."""
    needs_virtuoso()
    server = Server.at(tmp_path / "server")
    script = f"from kgqa.virtuoso.server.server import Server; Server.at({str(server.folder.path)!r}).start(memory_share=0.02)"
    starting = subprocess.Popen([os.sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    while not lock_owner(server.folder.lock):
        time.sleep(0.01)
    starting.kill()
    starting.wait()
    hidden = lock_owner(server.folder.lock).pid
    with running_server(server.folder.path):
        assert server.status().pid != hidden and not Path(f"/proc/{hidden}").exists()
        assert server.sql("select 1") == [("1",)]
        assert not server.folder.creation_marker.exists()


def damage(file: Path, *, at: int, count: int) -> None:
    with open(file, "r+b") as opened:
        opened.seek(at)
        opened.write(os.urandom(count))


def test_file_that_is_not_a_database_is_unchanged(stopped_server):
    stopped_server.folder.database.write_text("my diary\n" * 1000)
    assert "is not a Virtuoso database" in refusal_message(stopped_server)
    assert stopped_server.folder.database.read_text() == "my diary\n" * 1000


def test_damaged_first_page(stopped_server):
    damage(stopped_server.folder.database, at=0, count=8192)
    assert re.search("first page is damaged; it was not changed.*folder=", refusal_message(stopped_server))


def test_truncated_database(stopped_server):
    size = stopped_server.folder.database.stat().st_size
    os.truncate(stopped_server.folder.database, size - 100)
    assert "is truncated" in refusal_message(stopped_server)


def test_damaged_pages(stopped_server):
    damage(stopped_server.folder.database, at=20 * 8192, count=400 * 8192)
    message = refusal_message(stopped_server)
    assert re.search(r"did not start. The database file is damaged.*Its log says: ", message), message


def test_damaged_transaction_log(stopped_server):
    transaction_log = stopped_server.folder.database.with_suffix(".trx")
    transaction_log.write_bytes(os.urandom(3000))
    assert re.search(rf"{transaction_log} is damaged.*mv {transaction_log} ", refusal_message(stopped_server))


def test_transaction_log_without_database(stopped_server):
    transaction_log, database = stopped_server.folder.database.with_suffix(".trx"), stopped_server.folder.database
    content = b"byte_order_check and changes"
    transaction_log.write_bytes(content)
    database.unlink()
    assert "but no database. Restore the database" in refusal_message(stopped_server)
    assert transaction_log.read_bytes() == content


def test_missing_password_file(stopped_server):
    stopped_server.folder.password_file.unlink()
    assert re.search("There is no password file.*kgqa virtuoso adopt", refusal_message(stopped_server))


@pytest.mark.parametrize("name", ["server.json", "loading.json"])
@pytest.mark.parametrize("content", ["{", "[]", '{"graph": 1, "http_port": "1"}'])
def test_damaged_json_files(stopped_server, name, content):
    (stopped_server.folder.path / name).write_text(content)
    assert re.search(rf"{name} (is damaged|was written by another version).*[Rr]emove", refusal_message(stopped_server))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("server.json", '{"http_port": "8890"}'),
        ("server.json", '{"sql_port": null}'),
        ("server.json", '{"memory_share": true}'),
        ("server.json", '{"database": 7}'),
        ("server.json", '{"bind": []}'),
        ("loading.json", '{"graph": 1, "files": [], "clients": []}'),
        ("loading.json", '{"graph": "g", "files": 5, "clients": []}'),
        ("loading.json", '{"graph": "g", "files": [{}], "clients": []}'),
        ("loading.json", '{"graph": "g", "files": [], "clients": ["1"]}'),
    ],
)
def test_json_files_with_wrong_types(stopped_server, name, content):
    (stopped_server.folder.path / name).write_text(content)
    for attempt in (stopped_server.start, stopped_server.status):
        with pytest.raises(ServerError, match=rf"{name} (is damaged|was written by another version).*Remove"):
            attempt()


def test_database_open_in_another_server(virtuoso_server, stopped_server):
    """The other server is found by the lock or by the open file."""
    folder, other = stopped_server.folder, virtuoso_server.folder
    folder.database.unlink()
    folder.database.hardlink_to(other.database)
    message = refusal_message(stopped_server)
    assert f"is open in virtuoso-t (process {virtuoso_server.status().pid})" in message
    assert "Two servers would destroy the database" in message


# ---- while it runs ----


@pytest.mark.slow
def test_lockout_after_four_wrong_passwords(own_server):
    file = own_server.folder.password_file
    right_password = file.read_text()
    file.write_text("wrong\n")
    run_query = lambda: own_server.sql("select 1")  # noqa: E731
    for attempt in (run_query, own_server.stop, lambda: own_server.status(count=True), run_query):
        with pytest.raises(ServerError, match="refuses the password in .*Write the password of the database user dba"):
            attempt()
    assert own_server.status().state == "running"
    file.write_text(right_password)
    with pytest.raises(ServerError) as caught:
        own_server.sql("select 1")
    message = str(caught.value)
    assert "four wrong passwords" in message and "for a minute" in message and "Try again in a minute" in message
    assert "Write the password" not in message

    os.kill(own_server.status().pid, signal.SIGKILL)
    while own_server.status().state != "crashed":
        time.sleep(0.02)
    message = own_server.status().message
    assert re.search(r"ended without a shutdown: it was killed or crashed\..*kgqa virtuoso start", message)
    assert "log" not in message and "Too many" not in message


@pytest.mark.slow
def test_requests_while_the_server_is_stopped(own_server, monkeypatch):
    """A server that is shutting down refuses every login; the message does not blame the password."""
    bad_login = SqlError("CL034: Bad login", state=BAD_LOGIN)
    with monkeypatch.context() as patch:
        patch.setattr("kgqa.virtuoso.instance.session.ENDING_SECONDS", 0)
        assert "refuses the password" in str(explain_sql(bad_login, own_server.folder))
    errors: list[str] = []

    def ask() -> None:
        deadline = time.monotonic() + 30
        while not errors and time.monotonic() < deadline:
            try:
                own_server.sql("select 1")
            except ServerError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    own_server.stop()
    for thread in threads:
        thread.join()
    assert errors and not [text for text in errors if "password" in text], errors
    start = f"kgqa virtuoso start --folder {own_server.folder.path}"
    explained = str(explain_sql(bad_login, own_server.folder))
    assert explained == f"The server was stopped during the request. Start it: {start}"
    monkeypatch.setenv("KGQA_VIRTUOSO_FOLDER", str(own_server.folder.path))
    assert str(explain_sql(bad_login, own_server.folder)).endswith("Start it: kgqa virtuoso start")


def test_another_server_listens_on_the_port(virtuoso_server, stopped_server):
    folder = stopped_server.folder
    from dataclasses import replace

    folder.write_json("server.json", replace(folder.record(), sql_port=virtuoso_server.folder.record().sql_port))
    folder.password_file.write_text("ours\n")
    with pytest.raises(ServerError, match=r"Another server, virtuoso-t \(process \d+\), listens on port"):
        stopped_server.sql("select 1")
    assert listener(virtuoso_server.folder.record().sql_port).pid == virtuoso_server.status().pid
