"""The process of a Virtuoso server: starts it, finds it by its lock file, waits until it is online or has ended."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kgqa.errors import ServerError
from kgqa.virtuoso.folder import ServerFolder
from kgqa.virtuoso.isql import environment, server_program
from kgqa.virtuoso.server_log import QUOTED_LINES, explain_log, last_lines

ONLINE = "Server online at"
POLL_SECONDS = 0.03
NOTICE_SECONDS = 10.0
PROC = Path("/proc")
Notify = Callable[[str], None]
_started: list[subprocess.Popen[bytes]] = []


def command(ini: Path) -> list[str]:
    """Return the command line of the server."""
    return [str(server_program()), "+foreground", "+configfile", str(ini)]


def launch(folder: ServerFolder, ini: Path, *, notify: Notify) -> int:
    """Start the server, wait until it is online, and return its process id.

    It runs in a session of its own, so that it outlives this process and Ctrl-C does not stop it. Replaying a long
    transaction log may take minutes.

    Raises:
        ServerError: the server ended; the message explains the end of its log.
    """
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
    _started.append(process)  # an object that is dropped would warn that the process still runs
    # a core dump is as large as all buffers and would be written when the disk is already full
    with suppress(AttributeError, OSError):  # not Linux, or the process has ended
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
    notice = time.monotonic() + NOTICE_SECONDS
    while not any(ONLINE in line for line in (lines := last_lines(folder.output))):
        if process.poll() is not None:
            reason = explain_log(folder.output) or f"Its log ends with: {' | '.join(lines[-QUOTED_LINES:])}"
            raise ServerError(f"The server did not start. {reason}. Full output: {folder.output}")
        if time.monotonic() > notice:
            notice = float("inf")
            notify(f"Still starting: {lines[-1] if lines else 'nothing in its log yet'}")
        time.sleep(POLL_SECONDS)
    return process.pid


def lock_owner(lock: Path) -> int | None:
    """Return the process id of the server that holds this lock file; None if it has ended or there is no file."""
    with suppress(OSError):
        owner = re.search(r"VIRT_PID=(\d+)", lock.read_text(encoding="utf-8", errors="replace"))
        return int(owner[1]) if owner and is_running(int(owner[1])) else None
    return None


def is_running(pid: int) -> bool:
    """Tell whether this process is a running Virtuoso server; on systems without /proc, whether it runs."""
    try:
        if not PROC.joinpath("self").exists():
            os.kill(pid, 0)
            return True
        name, state = re.findall(r"\((.*)\) (\w)", PROC.joinpath(str(pid), "stat").read_text())[0]
    except OSError:
        return False
    return bool(name.startswith("virtuoso")) and state not in "ZX"


def wait_for_end(pid: int, *, timeout: float) -> bool:
    """Wait until a server ends; return False if it still runs after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while is_running(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def end_process(pid: int, *, by: signal.Signals = signal.SIGTERM, timeout: float = 60) -> bool:
    """End a server with a signal; return False if it still runs after `timeout` seconds.

    The transaction log keeps committed changes.
    """
    with suppress(ProcessLookupError):
        os.kill(pid, by)
    return wait_for_end(pid, timeout=timeout)


def free_port() -> int:
    """Return a TCP port that is free now; another process may still take it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_listening(port: int) -> bool:
    """Tell whether a process accepts connections on this port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False

