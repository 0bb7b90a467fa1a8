"""Explains the end of the server's log: known problems, what they mean, and what the user can do."""

from __future__ import annotations

import os
import re
from pathlib import Path

from kgqa.text.words import clean

QUOTED_LINES = 4
SEARCHED_LINES = 12
LOG_TAIL_BYTES = 100_000
SHUT_DOWN = "Server shutdown complete"
_TIME = re.compile(r"^\d\d:\d\d:\d\d ")

PROBLEMS = {
    r"out of (?:disk|seg)|disk full|no space left|Can't write": "The disk is full. Free some space and start the "
    "server, which returns to its last checkpoint: kgqa virtuoso start",
    r"Failed HTTP listen": "The HTTP port is in use. Choose another port: kgqa virtuoso start --http-port N",
    r"Failed to start listening at SQL port|Address already in use": "The SQL port is in use. Choose another port: "
    "kgqa virtuoso start --sql-port N",
    r"is already runn?ning|Unable to lock file": "Another server has this database open. Stop the other server, or use "
    "it instead of this one. Check it: kgqa virtuoso status",
    r"Permission denied|Read-only file system|Unable to (?:create|open) file": "The server may not write in the folder "
    "of its database. Make the folder writable for the user who runs kgqa, or choose another folder: --folder /path",
    r"last closed with a server of version|This server does not read|produced by different server instance": "The "
    "database or its transaction log (.trx) was made by another server. Use the version that made it "
    "(VIRTUOSO_T=/path/virtuoso-t), or restore the files from a backup.",
    r"(?:cannot|unable to|failed to) allocate|out of memory": "There is not enough memory. Give the server a smaller "
    "share: kgqa virtuoso start --memory-share 0.25",
    r"GPF|corrupt|structure inconsistent|bad (?:page|parent)": "The database file is damaged, or the server was killed "
    "during a checkpoint. Start it once more, which completes the recovery: kgqa virtuoso start. Otherwise restore the "
    "file from a backup, or load the data again into another folder: --folder /path",
}
"""Map from patterns of log lines to explanations; the most specific pattern is first."""


def find_problem(text: str) -> str:
    """Explain the first known problem in a text; "" if there is none."""
    return next((meaning for pattern, meaning in PROBLEMS.items() if re.search(pattern, text, re.IGNORECASE)), "")


def last_lines(log: Path) -> list[str]:
    """Return the last lines that the server has written to a log file since its last start, without stack traces."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    last_run = text[max(text.rfind("OpenLink Virtuoso Universal Server"), 0) :]
    lines = [clean(_TIME.sub("", line))[:200] for line in last_run.splitlines() if _TIME.match(line)]
    return [line for line in lines if "(+0x" not in line][-SEARCHED_LINES:]


def explain_log(log: Path) -> str:
    """Explain the problem at the end of a log file, with its last lines; "" if no problem is known."""
    lines = last_lines(log)
    problem = find_problem("\n".join(lines))
    return problem and f"{problem} The log ends with: {' | '.join(lines[-QUOTED_LINES:])}"
