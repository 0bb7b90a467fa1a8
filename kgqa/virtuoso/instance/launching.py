"""Finds the programs of Virtuoso, starts the server process, waits until it is online, and ends it."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.isql import LOST_CONNECTION, NO_CONNECTION, SqlAddress, environment, run_sql
from kgqa.virtuoso.instance.processes import is_alive
from kgqa.virtuoso.instance.server_log import explain_log, find_problem, log_tail

ONLINE = "Server online at"
QUIET_SECONDS = 900
Notify = Callable[[str], None]
# servers started by this process; an ended child process stays a zombie until it is polled
_children: dict[int, subprocess.Popen[bytes]] = {}


def server_program() -> Path:
    """Return the path of virtuoso-t.

    Raises:
        ServerError: the program is not installed.
    """
    return _find("VIRTUOSO_T", ("virtuoso-t", "virtuoso"), "The Virtuoso server (virtuoso-t)")


def client_program() -> Path:
    """Return the path of Virtuoso's SQL client, not of the program with the same name in unixODBC.

    Raises:
        ServerError: the program is not installed.
    """
    return _find("ISQL", ("isql-vt", "isql-v", "isql"), "Virtuoso's SQL client (isql-vt)")


def _find(variable: str, names: Sequence[str], what: str) -> Path:
    named = os.environ.get(variable)
    if named:
        if os.access(named, os.X_OK) and Path(named).is_file():
            return Path(named).absolute()
        raise ServerError(
            f"The environment variable {variable} is set to {named}, which is not an executable program.",
            "Correct or unset the variable.",
        )
    for name in names:
        found = shutil.which(name)
        if found and (name != "isql" or b"OpenLink Virtuoso" in Path(found).read_bytes()):
            return Path(found)
    raise ServerError(
        f"{what} is not installed.",
        "Install Virtuoso: kgqa virtuoso install (on Debian and Ubuntu; other systems get instructions). Or set "
        "environment variables to its programs: VIRTUOSO_T=/path/virtuoso-t ISQL=/path/isql",
    )


def command(ini: Path) -> list[str]:
    """Return the command line of the server."""
    return [str(server_program()), "+foreground", "+configfile", str(ini)]


def launch(folder: ServerFolder, ini: Path) -> subprocess.Popen[bytes]:
    """Start the server in its own session, so that it outlives this process and Ctrl-C does not stop it.

    Raises:
        ServerError: the program cannot be run.
    """
    try:
        with open(folder.output, "wb") as output:
            process = subprocess.Popen(
                command(ini),
                cwd=folder.path,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=0o077,
                env=environment(),
            )
    except OSError as error:
        raise ServerError(
            f"{command(ini)[0]} cannot be run: {error.strerror}.", "Install it: kgqa virtuoso install"
        ) from error
    _children[process.pid] = process
    # a core dump is as large as all buffers and would be written when the disk is already full
    with contextlib.suppress(AttributeError, OSError):  # not Linux, or the process has ended
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
    return process


def wait_until_online(folder: ServerFolder, process: subprocess.Popen[bytes], *, notify: Notify) -> None:
    """Wait until the server accepts connections.

    Replaying a long transaction log may take minutes, so the function waits as long as the server runs and writes to
    its log.

    Raises:
        ServerError: the server ended, has written nothing to its log for too long, or has no disk space. If the disk is
            full, the function ends the server.
    """
    last, since, notified = "", time.monotonic(), False
    while True:
        ended = process.poll() is not None
        output = log_tail(folder.output)
        problem = find_problem(output)
        if ended or (problem and problem.kind == "disk"):
            end_process(process.pid)
            reason = explain_log(output, disk=folder.database.parent) or "Its log gives no reason."
            raise ServerError(f"The server did not start. {reason} Full output: {folder.output}")
        if ONLINE in output:
            return
        if output != last:
            last, since, notified = output, time.monotonic(), False
        waited = time.monotonic() - since
        if waited > 10 and not notified:
            notified = True
            notify(f"Still starting: {last.strip().splitlines()[-1] if last.strip() else 'nothing in its log yet'}")
        if waited > QUIET_SECONDS:
            raise ServerError(
                f"The server (process {process.pid}) is not online and has written nothing to its log for "
                f"{QUIET_SECONDS // 60} minutes. The server is left running.",
                "Check it: kgqa virtuoso status",
            )
        time.sleep(0.03)


def shut_down(address: SqlAddress, *, timeout: float | None = None) -> None:
    """Make the server write everything to disk and exit; ignore that the exit breaks the connection.

    Raises:
        SqlError: the server refuses.
        ServerError: no answer within `timeout` seconds.
    """
    try:
        run_sql(address, "shutdown", timeout=timeout)
    except SqlError as error:
        if error.state not in (LOST_CONNECTION, NO_CONNECTION):
            raise


def wait_for_end(pid: int, *, timeout: float) -> bool:
    """Wait until a process ends; return False if it still runs after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        child = _children.get(pid)
        ended = child.poll() is not None if child else not is_alive(pid)
        if ended:
            _children.pop(pid, None)
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.03)


def end_process(pid: int, *, by: signal.Signals = signal.SIGTERM, timeout: float = 60) -> bool:
    """End a server with a signal; return False if it still runs after `timeout` seconds.

    The transaction log keeps committed changes.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, by)
    return wait_for_end(pid, timeout=timeout)
