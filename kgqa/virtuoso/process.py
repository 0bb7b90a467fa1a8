"""The process of a Virtuoso server: starts it, finds it by its lock file, waits for its end, and explains its log."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from kgqa.errors import ServerError
from kgqa.text.hints import Hint, Option
from kgqa.text.words import clean
from kgqa.virtuoso.folder import ServerFolder

POLL_SECONDS = 0.03
PROC = Path("/proc")
Notify = Callable[[str], None]
_started: list[subprocess.Popen[bytes]] = []
QUOTED_LINES = 4
SEARCHED_LINES = 12
_TIME = re.compile(r"^\d\d:\d\d:\d\d ")

PROBLEMS = {
    r"out of (?:disk|seg)|disk full|no space left|Can't write": "The disk is full. Free some space and start the "
    "server, which returns to its last checkpoint: kgqa virtuoso start",
    r"Failed HTTP listen": "The HTTP port is in use. Choose another port: kgqa virtuoso start --http-port N",
    r"Failed to start listening at SQL port|Address already in use": "The SQL port is in use. Choose another port: "
    "kgqa virtuoso start --sql-port N",
    r"is already runn?ning|Unable to lock file": "Another server has this database open. Stop the other server, or use "
    "it instead of this one. Check it: kgqa virtuoso status",
    r"Permission denied|Read-only file system|Unable to (?:create|open) file": Hint(
        "The server may not write in the folder of its database. Make the folder writable for the user who runs kgqa, "
        "or choose another folder: ",
        Option("folder", "/path"),
    ),
    r"last closed with a server of version|This server does not read|produced by different server instance": "The "
    "database or its transaction log (.trx) was made by another server. Use the version that made it "
    "(VIRTUOSO_T=/path/virtuoso-t), or restore the files from a backup.",
    r"(?:cannot|unable to|failed to) allocate|out of memory": "There is not enough memory. Give the server a smaller "
    "share: kgqa virtuoso start --memory-share 0.25",
    r"GPF|corrupt|structure inconsistent|bad (?:page|parent)": Hint(
        "The database file is damaged, or the server was killed during a checkpoint. Start it once more, which "
        "completes the recovery: kgqa virtuoso start. Otherwise restore the file from a backup, or load the data again "
        "into another folder: ",
        Option("folder", "/path"),
    ),
}
"""Map from patterns of log lines to explanations; the most specific pattern is first."""


def server_program() -> Path:
    """Return the path of virtuoso-t; raise ServerError if it is not installed."""
    return _find("VIRTUOSO_T", ("virtuoso-t", "virtuoso"), "The Virtuoso server (virtuoso-t)")


def client_program() -> Path:
    """Return the path of Virtuoso's SQL client, not of the program with the same name in unixODBC.

    Raises:
        ServerError: the program is not installed.
    """
    return _find("ISQL", ("isql-vt", "isql-v", "isql"), "Virtuoso's SQL client (isql-vt)")


def _find(variable: str, names: Sequence[str], what: str) -> Path:
    for name in filter(None, (os.environ.get(variable), *names)):
        path = shutil.which(name)
        if path and (name != "isql" or b"OpenLink Virtuoso" in Path(path).read_bytes()):
            return Path(path).absolute()
    raise ServerError(
        f"{what} is not installed.",
        "Install Virtuoso: kgqa virtuoso install (on Debian and Ubuntu; other systems get instructions). Or set "
        "environment variables to its programs: VIRTUOSO_T=/path/virtuoso-t ISQL=/path/isql",
    )


def environment() -> dict[str, str]:
    """Return the environment variables of the server and its client: PATH and locale, but no API keys of the user."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}


def command(ini: Path) -> list[str]:
    """Return the command line of the server."""
    return [str(server_program()), "+foreground", "+configfile", str(ini)]


def launch(folder: ServerFolder, ini: Path) -> int:
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
    while "Server online at" not in "\n".join(lines := last_lines(folder.output)):
        if process.poll() is not None:
            reason = explain_log(folder.output) or f"Its log ends with: {' | '.join(lines[-QUOTED_LINES:])}"
            raise ServerError(f"The server did not start. {reason}. Full output: {folder.output}")
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
        os.kill(pid, 0)
        stat = PROC / str(pid) / "stat"
        return not PROC.exists() or re.search(r"\(virtuoso.*\) [^ZX]", stat.read_text()) is not None
    except OSError:
        return False


def wait_for_end(pid: int, *, timeout: float) -> bool:
    """Wait until a server ends; return False if it still runs after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return not is_running(pid)


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
        return int(probe.getsockname()[1])


def is_listening(port: int) -> bool:
    """Tell whether a process accepts connections on this port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


def find_problem(text: str) -> str:
    """Return what the first known problem in an output of the server means; "" if it contains none."""
    return next((str(meaning) for pattern, meaning in PROBLEMS.items() if re.search(pattern, text, re.IGNORECASE)), "")


def last_lines(log: Path) -> list[str]:
    """Return the last lines that the server has written to a log file since its last start, without stack traces."""
    text = log.read_bytes()[-100_000:].decode("utf-8", "replace") if log.exists() else ""
    last_run = text[max(text.rfind("OpenLink Virtuoso Universal Server"), 0) :]
    lines = [clean(_TIME.sub("", line))[:200] for line in last_run.splitlines() if _TIME.match(line)]
    return [line for line in lines if "(+0x" not in line][-SEARCHED_LINES:]


def explain_log(log: Path) -> str:
    """Explain the problem at the end of a log file, with its last lines; "" if no problem is known."""
    lines = last_lines(log)
    problem = find_problem("\n".join(lines))
    return problem and f"{problem} The log ends with: {' | '.join(lines[-QUOTED_LINES:])}"
