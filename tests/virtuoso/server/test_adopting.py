"""Adoption of an existing database file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from kgqa.virtuoso.instance.folder import ServerFolder, ServerRecord
from kgqa.virtuoso.instance.isql import run_sql
from kgqa.virtuoso.instance.launching import shut_down
from kgqa.virtuoso.server.server import Server
from kgqa.virtuoso.server.starting import new_password, private_server

from kgqa.errors import ServerError
from tests.virtuoso_server import copied, needs_virtuoso, running_server

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def foreign(tmp_path_factory) -> Path:
    """A database as Virtuoso creates it, with the password dba and one table."""
    needs_virtuoso()
    folder = ServerFolder(tmp_path_factory.mktemp("foreign") / "server")
    folder.create()
    with private_server(folder, ServerRecord()) as address:
        run_sql(address, "create table theirs (a varchar primary key)")
        run_sql(address, "insert into theirs values ('treasure')")
        shut_down(address)
    return folder.path


@pytest.fixture
def database(foreign, tmp_path) -> Path:
    """A copy of that database file alone in a folder."""
    folder = tmp_path / "their data"
    folder.mkdir()
    shutil.copy(foreign / "virtuoso.db", folder / "freebase.db")
    return folder / "freebase.db"


@pytest.mark.slow
def test_adopt_with_the_default_password(database, tmp_path):
    messages: list[str] = []
    server = Server.at(tmp_path / "mine")
    adoption = server.adopt(database, notify=messages.append)
    assert adoption.database == database and adoption.password_changed
    assert "has the default password, dba" in messages[-1]
    assert not (server.folder.path / "virtuoso.db").exists()
    assert sorted(path.name for path in database.parent.iterdir()) == ["freebase.db", "freebase.pxa", "freebase.trx"]
    with running_server(server.folder.path):
        assert server.sql("select a from theirs") == [("treasure",)]
        assert server.folder.password() not in ("dba", "")
        assert server.status().disk_bytes >= database.stat().st_size
        assert (database.parent / "freebase.lck").exists()
        with pytest.raises(ServerError, match="is running .*kgqa virtuoso stop"):
            server.adopt(database)
        with pytest.raises(ServerError, match=r"freebase.db is open in virtuoso-t \(process \d+\)"):
            Server.at(tmp_path / "another").adopt(database)
    # adopted by a second folder, whose owner knows the password
    second = Server.at(tmp_path / "second")
    with pytest.raises(ServerError, match="refuses the given password.*KGQA_VIRTUOSO_DBA_PASSWORD"):
        second.adopt(database, password=lambda: "guess")
    assert not second.folder.password_file.exists() and second.folder.record().database == ""
    adoption = second.adopt(database, password=server.folder.password)
    assert not adoption.password_changed and second.folder.password() == server.folder.password()
    database.unlink()
    with pytest.raises(ServerError, match="does not exist. Mount its disk"):
        second.start()


@pytest.mark.parametrize("content", [b"", b"CREATE TABLE x;\n" * 100, os.urandom(16384)])
def test_file_that_is_not_a_database(content, tmp_path):
    needs_virtuoso()
    file = tmp_path / "virtuoso.db"
    file.write_bytes(content)
    with pytest.raises(ServerError, match="is not a Virtuoso database"):
        Server.at(tmp_path / "mine").adopt(file)
    assert file.read_bytes() == content


def test_invalid_paths(database, tmp_path):
    server = Server.at(tmp_path / "mine")
    with pytest.raises(ServerError, match="No such file.*virtuoso.db"):
        server.adopt(tmp_path / "nowhere.db")
    with pytest.raises(ServerError, match="Is a directory"):
        server.adopt(tmp_path)
    odd = database.rename(database.with_name("a;b.db"))
    with pytest.raises(ServerError, match="Rename the file"):
        server.adopt(odd)


def test_adopt_database_in_the_folder_of_the_server(prepared_folder, tmp_path):
    """A database copied into the folder without its password can be adopted."""
    server = Server.at(copied(prepared_folder, tmp_path / "mine"))
    password = server.folder.password()
    server.folder.password_file.unlink()
    with pytest.raises(ServerError, match=f"kgqa virtuoso adopt {server.folder.database}"):
        server.start()
    server.adopt(server.folder.database, password=lambda: password)
    assert server.folder.password() == password


@pytest.mark.slow
def test_password_of_the_own_database_is_kept(prepared_folder, database, tmp_path):
    server = Server.at(copied(prepared_folder, tmp_path / "mine"))
    own_password, saved_password_file = server.folder.password(), server.folder.path / "password.own"
    server.adopt(database)
    assert server.folder.password() != own_password
    assert (saved_password_file.read_text().strip(), saved_password_file.stat().st_mode & 0o777) == (
        own_password,
        0o600,
    )
    another = database.with_name("another.db")
    shutil.copy(database, another)
    server.adopt(another, password=server.folder.password)
    assert saved_password_file.read_text().strip() == own_password
    server.adopt(server.folder.path / "virtuoso.db")
    assert server.folder.password() == own_password and not saved_password_file.exists()


@pytest.mark.slow
def test_adopt_after_an_interrupted_first_start(database, tmp_path):
    """Files of the interrupted start are removed, adopted files are not."""
    server = Server.at(tmp_path / "mine")
    server.folder.create()
    server.folder.creation_marker.touch()
    (server.folder.path / "virtuoso.db").write_text("half")
    copied_database = Path(shutil.copy(database, server.folder.path / "freebase.db"))
    for file in (copied_database, server.folder.path / "virtuoso.db"):
        with pytest.raises(
            ServerError, match="was interrupted.*move this file to another folder and adopt it from there"
        ):
            server.adopt(file)
    assert copied_database.exists() and server.folder.creation_marker.exists()
    server.adopt(database)
    assert not server.folder.creation_marker.exists() and not (server.folder.path / "virtuoso.db").exists()
    # a marker beside an adopted database, as left by earlier versions of kgqa
    server.adopt(copied_database)
    password = server.folder.password()
    server.folder.creation_marker.touch()
    with running_server(server.folder.path):
        assert server.sql("select a from theirs") == [("treasure",)]
    assert server.folder.password() == password and not server.folder.creation_marker.exists()


def test_new_passwords_are_random():
    assert len({new_password() for _ in range(20)}) == 20
    assert all(word.isalnum() and len(word) == 40 for word in (new_password() for _ in range(5)))
