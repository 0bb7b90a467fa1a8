"""The server's process: started, waited for, and ended if it comes to nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.instance.folder import ServerFolder
from kgqa.virtuoso.instance.isql import LOST_CONNECTION, NO_CONNECTION, SqlAddress, environment, run_sql
from kgqa.virtuoso.instance.processes import alive
from kgqa.virtuoso.instance.programs import server_program
from kgqa.virtuoso.instance.server_log import explain_log, log_tail, trouble_in

ONLINE = "Server online at"
QUIET_SECONDS = 900
Say = Callable[[str], None]
# the children of this process: one that has ended is a zombie until it is asked after
_children: dict[int, subprocess.Popen[bytes]] = {}


def command(ini: Path) -> list[str]:
    """The command line of the server."""
    return [str(server_program()), "+foreground", "+configfile", str(ini)]


def launch(folder: ServerFolder, ini: Path) -> subprocess.Popen[bytes]:
    """Start the server's process, in a session of its own: it outlives us, and Ctrl-C does not reach it.

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
            f"{command(ini)[0]} cannot be run: {error.strerror}. Install it: kgqa virtuoso install"
        ) from error
    _children[process.pid] = process
    _without_core(process.pid)
    return process


def _without_core(pid: int) -> None:
    """A core file would be as large as all buffers together, and comes when a disk is full."""
    import resource

    try:
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
    except (AttributeError, OSError):
        pass  # not Linux, or it has ended already


def wait_until_online(folder: ServerFolder, process: subprocess.Popen[bytes], *, say: Say) -> None:
    """Wait until the server accepts connections. Rolling forward a long log of changes may take minutes: as long as
    the server lives and writes to its log now and then, we wait.

    Raises:
        ServerError: it ended, or is online without having had room for its database; in that case it was ended.
    """
    last, since, told = "", time.monotonic(), False
    while True:
        ended = process.poll() is not None
        said = log_tail(folder.output)
        trouble = trouble_in(said)
        if ended or (trouble and trouble.kind == "disk"):
            end_process(process.pid)
            reason = explain_log(said, place=folder.database.parent) or "It says nothing about why."
            raise ServerError(f"The server did not start. {reason} All it said: {folder.output}")
        if ONLINE in said:
            return
        if said != last:
            last, since, told = said, time.monotonic(), False
        waited = time.monotonic() - since
        if waited > 10 and not told:
            told = True
            say(f"Still starting: {last.strip().splitlines()[-1] if last.strip() else 'nothing in its log yet'}")
        if waited > QUIET_SECONDS:
            raise ServerError(
                f"The server (process {process.pid}) has not come online, and has said nothing for "
                f"{QUIET_SECONDS // 60} minutes. It is left running; look at it: kgqa virtuoso status"
            )
        time.sleep(0.03)


def shut_down(address: SqlAddress, *, timeout: float | None = None) -> None:
    """Tell the server to write everything to disk and end; that it breaks the connection is no error.

    Raises:
        SqlError: it refuses. ServerError: it has not answered within so many seconds.
    """
    try:
        run_sql(address, "shutdown", timeout=timeout)
    except SqlError as error:
        if error.state not in (LOST_CONNECTION, NO_CONNECTION):
            raise


def wait_for_end(pid: int, *, timeout: float) -> bool:
    """Whether the process ended in time."""
    deadline = time.monotonic() + timeout
    while True:
        child = _children.get(pid)
        ended = child.poll() is not None if child else not alive(pid)
        if ended:
            _children.pop(pid, None)
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.03)


def end_process(pid: int, *, by: signal.Signals = signal.SIGTERM, timeout: float = 60) -> bool:
    """End a server by signal: it commits nothing more, what was committed is in its log. Whether it ended in time."""
    try:
        os.kill(pid, by)
    except ProcessLookupError:
        pass
    return wait_for_end(pid, timeout=timeout)
