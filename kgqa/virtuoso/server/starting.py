"""Starts a server: checks its options and files, creates its database at the first start, recovers after a crash."""

from __future__ import annotations

import errno
import ipaddress
import math
import secrets
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from kgqa.errors import ServerError
from kgqa.storage.lock_files import only_one
from kgqa.text.hints import hint_text
from kgqa.virtuoso.instance.configuration import render
from kgqa.virtuoso.instance.folder import ServerFolder, ServerRecord
from kgqa.virtuoso.instance.isql import SqlAddress, run_sql
from kgqa.virtuoso.instance.launching import (
    Notify,
    client_program,
    end_process,
    launch,
    server_program,
    shut_down,
    wait_for_end,
    wait_until_online,
)
from kgqa.virtuoso.instance.processes import free_port, is_listening, listen_error, listener, lock_owner
from kgqa.virtuoso.instance.server_log import find_problem, free_bytes, free_space, last_run, log_tail
from kgqa.virtuoso.instance.session import Session
from kgqa.virtuoso.server.database_files import check_database, check_no_changes
from kgqa.virtuoso.server.load_list import loaded_files, settle, unfinished_loads

SPARQL_PATHS = ("/sparql", "/sparql-auth")
# a new database takes 55 MB, and its first checkpoints another 55 MB
MIN_FREE_BYTES = 120_000_000
PORT_RELEASE_SECONDS = 5
DATABASE_FILES = (
    "virtuoso.db",
    "virtuoso.trx",
    "virtuoso.pxa",
    "virtuoso.lck",
    "virtuoso-temp.db",
    "virtuoso-temp.trx",
)


def new_password() -> str:
    """Return 160 random bits as a hexadecimal password, because such digits need no quoting in SQL, shell or files."""
    return secrets.token_hex(20)


def close_paths(address: SqlAddress) -> None:
    """Remove all HTTP paths except those of SPARQL.

    A new server offers a proxy and other services to everybody. The next start restores some of them, but without
    privileges.
    """
    paths = run_sql(address, "select HP_HOST, HP_LISTEN_HOST, HP_LPATH from DB.DBA.HTTP_PATH")
    for host, listens_on, path in paths:
        if path not in SPARQL_PATHS:
            run_sql(address, "DB.DBA.VHOST_REMOVE(vhost=>?, lhost=>?, lpath=>?)", (host, listens_on, path))


def start(folder: ServerFolder, changes: Mapping[str, Any], *, notify: Notify) -> bool:
    """Start the server; see `Server.start`."""
    server_program(), client_program()
    folder.create()
    with start_lock(folder):
        if folder.creation_marker.exists():
            discard_unfinished(folder)
        if _runs_already(folder, notify):
            return False
        record = replace(folder.record(), **changes)
        folder.journal()  # reports a damaged journal before the server runs
        check_record(record)
        _check_ports(folder, record)
        _check_space(folder)
        if folder.database.exists():
            check_database(folder.database)
            folder.password()
        elif record.database:
            raise ServerError(
                f"The adopted database {record.database} does not exist.",
                "Mount its disk, restore the file, or adopt another database: kgqa virtuoso adopt FILE",
            )
        else:
            check_no_changes(folder.database)
            notify("Creating a new database ...")
            _create_database(folder, record)
        if folder.lock.exists():
            notify("The server was not shut down properly; it recovers from its transaction log.")
            folder.lock.unlink()
        if not ipaddress.ip_address(record.bind).is_loopback:
            notify(f"The SPARQL endpoint is open on {record.bind}: everybody who can reach this machine may query it.")
        folder.write_json("server.json", record)
        folder.write_private("virtuoso.ini", render(folder, record))
        try:
            wait_until_online(folder, launch(folder, folder.ini), notify=notify)
        except ServerError:
            problem = find_problem(last_run(log_tail(folder.output)))
            if problem is None or problem.kind != "checkpoint":
                raise
            notify("The server was killed during a checkpoint; starting it a second time to complete its recovery.")
            folder.lock.unlink(missing_ok=True)
            wait_until_online(folder, launch(folder, folder.ini), notify=notify)
        _settle_load(folder, notify)
    return True


def _runs_already(folder: ServerFolder, notify: Notify) -> bool:
    """Tell whether the server runs; if another process is starting it, wait until it answers."""
    port, notified = folder.record().sql_port, False
    while owner := lock_owner(folder.lock):
        if is_listening(port):
            return True
        if not notified:
            notified = True
            notify(f"Another process is already starting the server ({owner}); waiting until the server answers.")
        time.sleep(0.1)
    return False


def start_lock(folder: ServerFolder) -> AbstractContextManager[bool]:
    """Hold the lock for starting the server and adopting a database; wait while another process holds it."""
    return only_one(folder.path / "start.lock", wait_seconds=math.inf)


def check_record(record: ServerRecord) -> None:
    """Raise ServerError for options with which the server cannot start."""
    for name, port in (("--http-port", record.http_port), ("--sql-port", record.sql_port)):
        if not 1 <= port <= 65535:
            raise ServerError(f"{port} is not a port.", f"Give a number from 1 to 65535: {name} N")
    if record.http_port == record.sql_port:
        raise ServerError(
            f"SPARQL and SQL cannot share port {record.http_port}.", "Choose another port for SQL: --sql-port N"
        )
    if not 0 < record.memory_share <= 1:
        share = hint_text(f"--memory-share {record.memory_share:g}")
        raise ServerError(f"{share} is out of range.", "Give a number above 0 and at most 1.")
    if record.row_cap < 1 or record.query_seconds < 1:
        raise ServerError(hint_text("--row-cap and --query-seconds") + " must be at least 1.")
    try:
        ipaddress.IPv4Address(record.bind)
    except ValueError:
        raise ServerError(
            f"{hint_text(f'--bind {record.bind}')} is not an IPv4 address.",
            "Give an address of this machine, or 0.0.0.0 for all of them.",
        ) from None


def _check_ports(folder: ServerFolder, record: ServerRecord) -> None:
    for option, port, host in (
        ("--http-port", record.http_port, record.bind),
        ("--sql-port", record.sql_port, "127.0.0.1"),
    ):
        deadline = time.monotonic() + PORT_RELEASE_SECONDS
        while error := listen_error(port, host):
            owner = listener(port)
            # a killed server keeps its ports until the system has released its memory
            if owner is None and error.errno == errno.EADDRINUSE and time.monotonic() < deadline:
                time.sleep(0.05)
                continue
            reason = f"is used by {owner}" if owner else f"cannot be opened on {host} ({error.strerror})"
            raise ServerError(
                f"Port {port} {reason}.",
                f"Choose another port: kgqa virtuoso start {option} {free_port()}{folder.folder_option}",
            )


def _check_space(folder: ServerFolder) -> None:
    new = not folder.database.exists()
    for path in {folder.path, folder.database.parent}:
        if free_bytes(path) < (MIN_FREE_BYTES if new else MIN_FREE_BYTES // 10):
            raise ServerError(
                f"The disk is full: {free_space(path)} are free at {path}, too little to start a server.",
                "Free some space, or choose another folder: --folder /path",
            )


def _create_database(folder: ServerFolder, record: ServerRecord) -> None:
    """Create a database and set its passwords while the server listens only on random loopback ports.

    A new database has the login dba/dba. The first start of its HTTP server adds the login dav/dav.
    """
    password = new_password()
    folder.creation_marker.touch(mode=0o600)
    try:
        with private_server(folder, record) as address:
            run_sql(address, "USER_CHANGE_PASSWORD(?, ?, ?)", ("dav", "dav", new_password()))
            close_paths(address)
            # without the rule that puts every literal into the full-text index; `index_names` adds literals
            run_sql(address, "DB.DBA.RDF_OBJ_FT_RULE_DEL(?, ?, ?)", ("", "", "ALL"))
            run_sql(address, "USER_SET_PASSWORD(?, ?)", ("dba", password))
            shut_down(replace(address, password=password))
        folder.write_private("password", password + "\n")
    except BaseException:
        discard_unfinished(folder)
        raise
    folder.creation_marker.unlink()


@contextmanager
def private_server(folder: ServerFolder, record: ServerRecord) -> Iterator[SqlAddress]:
    """Run the server with little memory on free loopback ports until the `with` block ends; the login is dba/dba."""
    hidden = replace(record, sql_port=free_port(), http_port=free_port(), bind="127.0.0.1", memory_share=0.001)
    ini = folder.write_private("first.ini", render(folder, hidden))
    process = launch(folder, ini)
    try:
        wait_until_online(folder, process, notify=lambda text: None)
        yield SqlAddress(client_program(), hidden.sql_port, "dba")
        wait_for_end(process.pid, timeout=120)
    finally:
        end_process(process.pid)
        ini.unlink(missing_ok=True)


def discard_unfinished(folder: ServerFolder) -> None:
    """Remove a database whose creation was interrupted, because it is empty and its password is unknown.

    The files and the password of an adopted database are kept.
    """
    if folder.record().database:
        folder.creation_marker.unlink(missing_ok=True)
        return
    owner = lock_owner(folder.path / "virtuoso.lck")
    if owner:
        end_process(owner.pid, by=signal.SIGKILL)
    for name in (*DATABASE_FILES, "password", "first.ini"):
        (folder.path / name).unlink(missing_ok=True)
    folder.creation_marker.unlink(missing_ok=True)


def _settle_load(folder: ServerFolder, notify: Notify) -> None:
    """After a start, tell the user which files of an interrupted load have to be loaded again."""
    if folder.journal() is None:
        return
    settle(folder, loaded_files(Session(folder)))
    if advice := unfinished_loads(folder):
        notify(advice)
