"""Starting a server: what is checked before, its very first start, and what a crash left behind."""

from __future__ import annotations

import errno
import ipaddress
import math
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from kgqa.errors import ServerError
from kgqa.lock_files import only_one
from kgqa.virtuoso.instance.configuration import render
from kgqa.virtuoso.instance.folder import ServerFolder, ServerRecord
from kgqa.virtuoso.instance.isql import SqlAddress, run_sql
from kgqa.virtuoso.instance.launching import Say, end_process, launch, shut_down, wait_for_end, wait_until_online
from kgqa.virtuoso.instance.processes import free_port, listen_error, listener, listens, lock_owner
from kgqa.virtuoso.instance.programs import client_program, server_program
from kgqa.virtuoso.instance.server_log import free_bytes, free_space, log_tail, since_last_start, trouble_in
from kgqa.virtuoso.instance.session import Session
from kgqa.virtuoso.instance.users import close_paths, new_password
from kgqa.virtuoso.server import load_list_journal
from kgqa.virtuoso.server.database_files import check_database, check_no_changes
from kgqa.virtuoso.server.load_list import done_files

# a new database takes 55 MB, and as much again is needed to write its first checkpoints
LEAST_FREE_BYTES = 120_000_000
DYING_SECONDS = 5
DATABASE_FILES = (
    "virtuoso.db",
    "virtuoso.trx",
    "virtuoso.pxa",
    "virtuoso.lck",
    "virtuoso-temp.db",
    "virtuoso-temp.trx",
)


def start(folder: ServerFolder, changes: Mapping[str, Any], *, say: Say) -> bool:
    """See `Server.start`."""
    server_program(), client_program()
    folder.make()
    with only_start(folder):
        if folder.making.exists():
            discard_unfinished(folder)
        if _runs_already(folder, say):
            return False
        record = replace(folder.record(), **changes)
        folder.journal()  # not to be surprised by it once the server is up
        check_record(record)
        _check_ports(folder, record)
        _check_space(folder)
        if folder.database.exists():
            check_database(folder.database)
            folder.password()
        elif record.database:
            raise ServerError(
                f"The adopted database {record.database} is gone. Mount its disk or put it back, or adopt another: "
                f"kgqa virtuoso adopt FILE"
            )
        else:
            check_no_changes(folder.database)
            say("Making a new database ...")
            _make_database(folder, record)
        if folder.lock.exists():
            say("The server was not ended properly last time; it recovers from its log of changes.")
            folder.lock.unlink()
        if not ipaddress.ip_address(record.bind).is_loopback:
            say(f"SPARQL is served on {record.bind}: everybody who reaches this machine may query it.")
        folder.save_record(record)
        folder.write_private("virtuoso.ini", render(folder, record))
        try:
            wait_until_online(folder, launch(folder, folder.ini), say=say)
        except ServerError:
            trouble = trouble_in(since_last_start(log_tail(folder.output)))
            if trouble is None or trouble.kind != "checkpoint":
                raise
            say("It had been killed while it wrote a checkpoint; Virtuoso takes two starts to mend that.")
            folder.lock.unlink(missing_ok=True)
            wait_until_online(folder, launch(folder, folder.ini), say=say)
        _settle_load(folder, say)
    return True


def _runs_already(folder: ServerFolder, say: Say) -> bool:
    """Whether the server is there, after waiting for one that somebody else has just started."""
    port, told = folder.record().sql_port, False
    while owner := lock_owner(folder.lock):
        if listens(port):
            return True
        if not told:
            told = True
            say(f"It is being started already ({owner}); waiting until it answers.")
        time.sleep(0.1)
    return False


@contextmanager
def only_start(folder: ServerFolder) -> Iterator[None]:
    """Hold the lock of starts and adoptions; whoever comes second waits until the first is done."""
    with only_one(folder.path / "start.lock", wait_seconds=math.inf):
        yield


def check_record(record: ServerRecord) -> None:
    """Raises ServerError for what no server could be started with."""
    for name, port in (("--http-port", record.http_port), ("--sql-port", record.sql_port)):
        if not 1 <= port <= 65535:
            raise ServerError(f"{port} is not a port. Give {name} a number from 1 to 65535.")
    if record.http_port == record.sql_port:
        raise ServerError(f"SPARQL and SQL cannot share port {record.http_port}. Choose another: --sql-port N")
    if not 0 < record.memory_share <= 1:
        raise ServerError(
            f"{record.memory_share:g} is not a share of the memory. Give --memory-share a number above 0, at most 1."
        )
    if record.row_cap < 1 or record.query_seconds < 1:
        raise ServerError("The row cap and the time limit of queries must be 1 or more: --row-cap N --query-seconds N")
    try:
        if ipaddress.ip_address(record.bind).version == 4:
            return
    except ValueError:
        pass
    raise ServerError(
        f"{record.bind!r} is not an IPv4 address. Give --bind an address of this machine, or 0.0.0.0 for all."
    )


def _check_ports(folder: ServerFolder, record: ServerRecord) -> None:
    for option, port, host in (
        ("--http-port", record.http_port, record.bind),
        ("--sql-port", record.sql_port, "127.0.0.1"),
    ):
        deadline = time.monotonic() + DYING_SECONDS
        while error := listen_error(port, host):
            owner = listener(port)
            # a server that was killed holds its ports until the last of its memory is given back
            if owner is None and error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            reason = f"is taken by {owner}" if owner else f"cannot be had at {host} ({error.strerror})"
            raise ServerError(
                f"Port {port} {reason}. Choose another: kgqa virtuoso start {option} {free_port()}{folder.option}"
            )


def _check_space(folder: ServerFolder) -> None:
    new = not folder.database.exists()
    for place in {folder.path, folder.database.parent}:
        if free_bytes(place) < (LEAST_FREE_BYTES if new else LEAST_FREE_BYTES // 10):
            raise ServerError(
                f"The disk is full: {free_space(place)} are free at {place}, which is too little to start a server. "
                f"Make room there, or choose another folder: --folder /path"
            )


def _make_database(folder: ServerFolder, record: ServerRecord) -> None:
    """Let the server make its database on loopback ports nobody knows, and set its passwords there: it comes with
    dba/dba and, made at the first start of its HTTP server, dav/dav.
    """
    password = new_password()
    folder.making.touch(mode=0o600)
    try:
        with hidden_server(folder, record) as address:
            secure(address, password)
            shut_down(replace(address, password=password))
        folder.write_private("password", password + "\n")
    except BaseException:
        discard_unfinished(folder)
        raise
    folder.making.unlink()


@contextmanager
def hidden_server(folder: ServerFolder, record: ServerRecord, *, password: str = "dba") -> Iterator[SqlAddress]:
    """The server on free loopback ports, with little memory, for as long as the block lasts; ended at its end,
    however the block ends.
    """
    hidden = replace(record, sql_port=free_port(), http_port=free_port(), bind="127.0.0.1", memory_share=0.001)
    ini = folder.write_private("first.ini", render(folder, hidden))
    process = launch(folder, ini)
    try:
        wait_until_online(folder, process, say=lambda text: None)
        yield SqlAddress(client_program(), hidden.sql_port, password)
        wait_for_end(process.pid, timeout=120)
    finally:
        end_process(process.pid)
        ini.unlink(missing_ok=True)


def secure(address: SqlAddress, password: str) -> None:
    """Replace the passwords a new database comes with, and take away all HTTP paths but those of SPARQL, and the rule
    that every literal goes into the full-text index: `index_names` says which do.
    """
    run_sql(address, "USER_CHANGE_PASSWORD(?, ?, ?)", ("dav", "dav", new_password()))
    close_paths(address)
    run_sql(address, "DB.DBA.RDF_OBJ_FT_RULE_DEL(?, ?, ?)", ("", "", "ALL"))
    run_sql(address, "USER_SET_PASSWORD(?, ?)", ("dba", password))


def discard_unfinished(folder: ServerFolder) -> None:
    """Remove a database whose making was interrupted: nobody knows its password, and there is nothing in it. Where a
    database was adopted, files and password are that one's, and stay.
    """
    if folder.record().database:
        folder.making.unlink(missing_ok=True)
        return
    owner = lock_owner(folder.path / "virtuoso.lck")
    if owner:
        end_process(owner.pid, by=signal.SIGKILL)
    for name in (*DATABASE_FILES, "password", "first.ini"):
        (folder.path / name).unlink(missing_ok=True)
    folder.making.unlink(missing_ok=True)


def _settle_load(folder: ServerFolder, say: Say) -> None:
    """After a start: find out which files of an interrupted load are on disk."""
    if folder.journal() is None:
        return
    lost = load_list_journal.settle(folder, done_files(Session(folder)))
    if lost:
        say(load_list_journal.advice(lost))
