"""Kills the Virtuoso servers of a test run when the run ends, even if it is killed.

    python end_servers.py FOLDER

Standard input is a pipe held by the test process. When that process ends, reading returns, and the servers whose
settings file is below FOLDER are killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

# another server may still be starting
SECONDS = 5.0


def servers(folder: str) -> list[int]:
    """Return the ids of the servers with a settings file below a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = process.joinpath("cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"+configfile" in arguments:
            settings = os.fsdecode(arguments[arguments.index(b"+configfile") + 1])
            if settings.startswith(folder + os.sep):
                found.append(int(process.name))
    return found


def main() -> None:
    folder = sys.argv[1]
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.stdin.buffer.read()
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for pid in servers(folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.1)


if __name__ == "__main__":
    main()
