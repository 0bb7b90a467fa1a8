"""Finds known problems in the server's log, and explains what each problem means and what the user can do."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from kgqa.text.words import clean

QUOTED_LINES = 4
LOG_TAIL_BYTES = 200_000
SHUT_DOWN = "Server shutdown complete"
_DATE = re.compile(r"^\t+\w{3} \w{3} \d+ \d{4}$")
_TIME = re.compile(r"^\d\d:\d\d:\d\d ")
_ADDRESS = re.compile(r"\(\+?0x[0-9a-f]+\)|\[0x[0-9a-f]+\]")
_PROBLEM_WORDS = re.compile(
    r"fail|error|unable|cannot|not |out of |disk|already|GPF|corrupt|broken|produced by|last closed|exiting|invalid"
    r"|signal",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LogProblem:
    """A known problem: the pattern that its log lines match, its meaning, and the next step for the user."""

    kind: str
    pattern: re.Pattern[str]
    meaning: str
    remedy: str


LOG_PROBLEMS = (
    LogProblem(
        "disk",
        re.compile(r"out of (?:disk|seg)|disk full|no space left|Can't write", re.IGNORECASE),
        "The disk is full.",
        "Free some space and start the server, which returns to its last checkpoint: kgqa virtuoso start",
    ),
    LogProblem(
        "http port",
        re.compile(r"Failed HTTP listen"),
        "The HTTP port is in use.",
        "Choose another port: kgqa virtuoso start --http-port N",
    ),
    LogProblem(
        "sql port",
        re.compile(r"Failed to start listening at SQL port|Address already in use"),
        "The SQL port is in use.",
        "Choose another port: kgqa virtuoso start --sql-port N",
    ),
    LogProblem(
        "open elsewhere",
        re.compile(r"is already runn?ning|Unable to lock file"),
        "Another server has this database open.",
        "Stop the other server, or use it instead of this one. Check it: kgqa virtuoso status",
    ),
    LogProblem(
        "permission",
        re.compile(r"Permission denied|Read-only file system|Unable to (?:create|open) file"),
        "The server may not write in the folder of its database.",
        "Make the folder writable for the user who runs kgqa, or choose another folder: --folder /path",
    ),
    LogProblem(
        "other version",
        re.compile(r"last closed with a server of version|This server does not read"),
        "The database was made by another version of Virtuoso, or its first page is damaged.",
        "Use the version that made the database (VIRTUOSO_T=/path/virtuoso-t), or restore the file from a backup.",
    ),
    LogProblem(
        "other log",
        re.compile(r"transaction log file has been produced by different server instance"),
        "The transaction log (.trx) belongs to another database.",
        "Restore the right log, or move this log away and lose the changes in it.",
    ),
    LogProblem(
        "memory",
        re.compile(r"(?:cannot|unable to|failed to) allocate|out of memory", re.IGNORECASE),
        "There is not enough memory.",
        "Give the server a smaller share: kgqa virtuoso start --memory-share 0.25",
    ),
    LogProblem(
        "checkpoint",
        # the beginning of a long log is not read
        re.compile(r"(?:killed during checkpoint|page with free remap)[\s\S]*(?:GPF|Broken index)"),
        "The server had been killed during a checkpoint and crashed while it recovered.",
        "Start the server again to complete the recovery: kgqa virtuoso start",
    ),
    LogProblem(
        "damage",
        re.compile(
            r"GPF|corrupt|invalid blob|non-blob page|past end of|structure inconsistent|bad (?:page|parent)",
            re.IGNORECASE,
        ),
        "The database file is damaged.",
        "Restore the file from a backup, or load the data again into another folder: --folder /path",
    ),
)


def log_tail(log: Path) -> str:
    """Return the end of a log file, at most LOG_TAIL_BYTES; empty without a file."""
    try:
        with open(log, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def find_problem(log: str) -> LogProblem | None:
    """Return the most specific known problem in a log."""
    return next((problem for problem in LOG_PROBLEMS if problem.pattern.search(log)), None)


def problem_lines(log: str) -> str:
    """Return the last lines of a log that report problems, joined into one line; empty if there are none."""
    found: list[str] = []
    for line in log.splitlines():
        text = clean(_TIME.sub("", line))
        if _is_content(line) and _PROBLEM_WORDS.search(text) and text not in found:
            found.append(text[:200])
    return " | ".join(found[-QUOTED_LINES:])


def last_run(log: str) -> str:
    """Return the part of a log that the server has written since its last start."""
    return log[max(log.rfind("OpenLink Virtuoso Universal Server"), 0) :]


def explain_log(log: str, *, disk: Path | None = None) -> str:
    """Explain why the last run of a server failed, with the log lines that show it; "" if the log shows no reason."""
    last = last_run(log)
    return _explanation(find_problem(last), problem_lines(last), disk)


def _explanation(problem: LogProblem | None, lines: str, disk: Path | None) -> str:
    if problem is None:
        return f"Its log ends with: {lines}." if lines else ""
    parts = [problem.meaning]
    if problem.kind == "disk" and disk is not None:
        parts.append(f"{free_space(disk)} are free at {disk}.")
    return " ".join([*parts, problem.remedy, f"Its log says: {lines}."])


def last_error(log: str, *, disk: Path | None = None) -> str:
    """Explain the error at the end of the log of the server's last run; "" if the log does not end with an error.

    Earlier errors, such as a client's wrong password, did not end the server.
    """
    lines = [line for line in last_run(log).splitlines() if _is_content(line)]
    end = len(lines)
    while end and "Server exiting" in lines[end - 1]:
        end -= 1
    start = end
    while start and find_problem(lines[start - 1]):
        start -= 1
    if start == end:
        return ""
    # search the whole run: the end of the log alone would show a damaged file even if the server crashed while it
    # recovered from an interrupted checkpoint
    return _explanation(find_problem("\n".join(lines[:end])), problem_lines("\n".join(lines[start:end])), disk)


def _is_content(line: str) -> bool:
    text = clean(_TIME.sub("", line))
    return bool(text) and not _DATE.match(line) and not _ADDRESS.search(text)


def free_bytes(path: Path) -> int:
    """Return the free bytes on the disk of this path; the path itself need not exist."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free


def free_space(path: Path) -> str:
    """Return the free space on the disk of this path as a string in MB."""
    return f"{free_bytes(path) / 1e6:,.0f} MB"
