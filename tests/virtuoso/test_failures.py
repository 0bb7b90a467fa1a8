"""Failures of a server: detection, message with the next step, and safe recovery; and databases elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kgqa.errors import ServerError
from kgqa.virtuoso.folder import ServerFolder
from kgqa.virtuoso.process import free_port, lock_owner
from kgqa.virtuoso.server import Server
from tests.virtuoso_server import copied, needs_virtuoso, running_server

pytestmark = pytest.mark.server


def refusal_message(server: Server, **options) -> str:
    """Return the message with which `start` refuses; the server must not run."""
    with pytest.raises(ServerError) as caught:
        server.start(**{"http_port": free_port(), "sql_port": free_port(), "memory_share": 0.02, **options})
    assert lock_owner(server.folder.path / "virtuoso.lck") is None
    return str(caught.value)


# ---- before it starts ----


def test_port_in_use(stopped_server):
    for option_name in ("http_port", "sql_port"):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            message = refusal_message(stopped_server, **{option_name: taken.getsockname()[1]})
        option = "--" + option_name.replace("_", "-")
        assert re.search(rf"did not start.*port is in use.*{option} N.*The log ends with: ", message)


def test_unusable_folders(tmp_path):
    needs_virtuoso()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("dear")
    mode = (tmp_path / "full").stat().st_mode
    message = refusal_message(Server.at(tmp_path / "full"))
    assert "contains other files" in message and "KGQA_VIRTUOSO_FOLDER=" in message
    assert (tmp_path / "full").stat().st_mode == mode
    assert "cannot be created or written" in refusal_message(Server.at(tmp_path / "full" / "letter.txt"))


def test_full_disk_at_the_first_start(small_disk):
    needs_virtuoso()
    server = Server.at(small_disk(60) / "server")
    assert re.search(r"The disk is full: \d+ MB are free at .*folder=", refusal_message(server))
    assert not (server.folder.path / "new").exists() and not server.folder.database.exists()


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
    assert "log" not in own_server.status().message
    with pytest.raises(ServerError, match="is not running. Start it: kgqa virtuoso start --folder"):
        own_server.sql("select 1")
    assert own_server.stop() is False
    own_server.folder.lock.write_text(f"VIRT_PID={os.getpid()}\n")
    assert own_server.status().state == "crashed"
    notes = []
    assert own_server.start(notify=notes.append)
    assert notes == ["The server was not shut down properly; it recovers from its transaction log."]
    assert lock_owner(own_server.folder.lock) not in (None, pid, os.getpid())
    assert own_server.sql("select a from kept") == [("of value",)]


@pytest.mark.slow
def test_killed_first_start(tmp_path):
    """The next start removes the incomplete database, ends the hidden server and creates the database again."""
    needs_virtuoso()
    server = Server.at(tmp_path / "server")
    lock = server.folder.path / "new" / "virtuoso.lck"
    script = f"from kgqa.virtuoso.server import Server; Server.at({str(server.folder.path)!r}).start(memory_share=0.02)"
    starting = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    while not lock_owner(lock):
        time.sleep(0.01)
    starting.kill()
    starting.wait()
    hidden = lock_owner(lock)
    with running_server(server.folder.path):
        assert server.status().pid != hidden and not Path(f"/proc/{hidden}").exists()
        assert server.sql("select 1") == [("1",)]
        assert not lock.parent.exists()


def test_damaged_files(stopped_server):
    folder = stopped_server.folder
    with open(folder.database, "r+b") as opened:
        opened.seek(20 * 8192)
        opened.write(os.urandom(400 * 8192))
    assert re.search(r"did not start.*log ends with: ", refusal_message(stopped_server))


# ---- while it runs ----


@pytest.mark.slow
def test_strange_and_wrong_passwords(own_server):
    file = own_server.folder.password_file
    for password in ("a'b\"c", "x\\y\\'", "$U{x};'", "é!", " blank ", "{[("):
        own_server.sql("USER_SET_PASSWORD(?, ?)", ("dba", password))
        own_server.folder.write(file.name, password + "\n")
        assert own_server.sql("select 1") == [("1",)]
        assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("wrong\n")
    for attempt in (lambda: own_server.sql("select 1"), own_server.stop, lambda: own_server.status(count=True)):
        with pytest.raises(ServerError, match=r"refuses the password in .*Write the password.*for a minute.*kill \d+"):
            attempt()
    assert own_server.status().state == "running"


# ---- a database elsewhere ----


@pytest.fixture
def database(prepared_folder, tmp_path) -> Path:
    """A database as Virtuoso creates it, with the password dba and one table, alone in a folder."""
    with running_server(copied(prepared_folder, tmp_path / "maker")) as server:
        server.sql("create table theirs (a varchar primary key)")
        server.sql("insert into theirs values ('treasure')")
        server.sql("USER_SET_PASSWORD(?, ?)", ("dba", "dba"))
        server.folder.password_file.write_text("dba")
        server.stop()
    (tmp_path / "their data").mkdir()
    return Path(shutil.copy(tmp_path / "maker" / "virtuoso.db", tmp_path / "their data" / "freebase.db"))


@pytest.mark.slow
def test_database_elsewhere(prepared_folder, database, tmp_path, monkeypatch):
    """A default password is replaced, other passwords come from the environment, and the own database is kept."""
    server = Server.at(copied(prepared_folder, tmp_path / "mine"))
    own_password = server.folder.password()
    with running_server(server.folder.path, database=str(database)):
        password = server.folder.password()
        assert server.sql("select a from theirs") == [("treasure",)] and password not in ("dba", own_password)
        assert server.folder.password_file.stat().st_mode & 0o777 == 0o600
        assert (database.parent / "freebase.lck").exists() and server.status().disk_bytes >= database.stat().st_size
        message = refusal_message(Server.at(tmp_path / "another"), database=str(database))
        assert re.search(r"freebase.db is open in another server \(process \d+\)", message)
        server.stop()
    second = Server.at(tmp_path / "second")
    monkeypatch.setenv("KGQA_VIRTUOSO_DBA_PASSWORD", "guess")
    assert "refuses the password of its user dba" in refusal_message(second, database=str(database))
    monkeypatch.setenv("KGQA_VIRTUOSO_DBA_PASSWORD", password)
    with running_server(second.folder.path, database=str(database)):
        assert second.folder.password() == password and second.sql("select a from theirs") == [("treasure",)]
        second.stop()
    with running_server(server.folder.path, database=""):
        assert server.folder.password() == own_password
        with pytest.raises(ServerError, match="theirs"):
            server.sql("select a from theirs")
    database.unlink()
    assert "freebase.db cannot be read: No such file" in refusal_message(second)


@pytest.mark.parametrize("content", [b"", b"CREATE TABLE x;\n" * 100, os.urandom(16384)])
def test_file_that_is_not_a_database(content, tmp_path):
    needs_virtuoso()
    file = tmp_path / "virtuoso.db"
    file.write_bytes(content)
    assert "is not a Virtuoso database" in refusal_message(Server.at(tmp_path / "mine"), database=str(file))
    assert file.read_bytes() == content
    assert ServerFolder(tmp_path / "mine").options().database == ""
