"""What a server's log and its refusals mean, and what to do about them."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from kgqa.words import clean

QUOTED_LINES = 4
LOG_TAIL_BYTES = 200_000
SHUT_DOWN = "Server shutdown complete"
_DATE = re.compile(r"^\t+\w{3} \w{3} \d+ \d{4}$")
_TIME = re.compile(r"^\d\d:\d\d:\d\d ")
_FAREWELL = re.compile(r"Server exiting")
_ADDRESS = re.compile(r"\(\+?0x[0-9a-f]+\)|\[0x[0-9a-f]+\]")
_TELLING = re.compile(
    r"fail|error|unable|cannot|not |out of |disk|already|GPF|corrupt|broken|produced by|last closed|exiting|invalid|signal",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """What kind of trouble a log tells of: words that show it, what happened, and the next step."""

    kind: str
    sign: re.Pattern[str]
    meaning: str
    remedy: str


TROUBLES = (
    Trouble(
        "disk",
        re.compile(r"out of (?:disk|seg)|disk full|no space left|Can't write", re.IGNORECASE),
        "The disk is full.",
        "Make room there, then start the server: it goes back to its last checkpoint.",
    ),
    Trouble(
        "http port",
        re.compile(r"Failed HTTP listen"),
        "The HTTP port is taken.",
        "Choose another: kgqa virtuoso start --http-port N",
    ),
    Trouble(
        "sql port",
        re.compile(r"Failed to start listening at SQL port|Address already in use"),
        "The SQL port is taken.",
        "Choose another: kgqa virtuoso start --sql-port N",
    ),
    Trouble(
        "open elsewhere",
        re.compile(r"is already runn?ning|Unable to lock file"),
        "Another server has this database open.",
        "Stop that one, or use it: kgqa virtuoso status",
    ),
    Trouble(
        "permission",
        re.compile(r"Permission denied|Read-only file system|Unable to (?:create|open) file"),
        "The server may not write where its database lies.",
        "Give it the permission, or choose another folder: --folder /path",
    ),
    Trouble(
        "other version",
        re.compile(r"last closed with a server of version|This server does not read"),
        "The database was made by another version of Virtuoso, or its first page is damaged.",
        "Use the version that made it (VIRTUOSO_T=/path/virtuoso-t), or a copy of the file that is whole.",
    ),
    Trouble(
        "other log",
        re.compile(r"transaction log file has been produced by different server instance"),
        "The log of changes (.trx) belongs to another database.",
        "Put the right one beside the database, or move this one away: changes in it are lost then.",
    ),
    Trouble(
        "memory",
        re.compile(r"(?:cannot|unable to|failed to) allocate|out of memory", re.IGNORECASE),
        "There is not enough memory.",
        "Give the server less: kgqa virtuoso start --memory-share 0.25",
    ),
    Trouble(
        "checkpoint",
        # of a long log only the end is looked at
        re.compile(r"(?:killed during checkpoint|page with free remap)[\s\S]*(?:GPF|Broken index)"),
        "The server had been killed while it wrote a checkpoint, and died of mending that.",
        "It takes two starts: kgqa virtuoso start",
    ),
    Trouble(
        "damage",
        re.compile(
            r"GPF|corrupt|invalid blob|non-blob page|past end of|structure inconsistent|bad (?:page|parent)",
            re.IGNORECASE,
        ),
        "The database file is damaged.",
        "Take a copy of it that is whole, or load the data anew into another folder: --folder /path",
    ),
)


def log_tail(log: Path, *, start: int = 0) -> str:
    """The end of a log file, from the byte `start` on; at most 200 kB; empty where there is none."""
    try:
        with open(log, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(start, size - LOG_TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def trouble_in(log: str) -> Trouble | None:
    """The trouble a log tells of, the most telling kind first."""
    return next((trouble for trouble in TROUBLES if trouble.sign.search(log)), None)


def telling_lines(log: str) -> str:
    """The last lines of a log that tell of something unusual, cleaned, on one line; empty where there are none."""
    found: list[str] = []
    for line in log.splitlines():
        text = clean(_TIME.sub("", line))
        if _is_content(line) and _TELLING.search(text) and text not in found:
            found.append(text[:200])
    return " | ".join(found[-QUOTED_LINES:])


def since_last_start(log: str) -> str:
    """The part of a log that the last run of the server wrote."""
    return log[max(log.rfind("OpenLink Virtuoso Universal Server"), 0) :]


def explain_log(log: str, *, place: Path | None = None) -> str:
    """What the last run of a server died of, with the lines that show it; empty where the log says nothing."""
    last = since_last_start(log)
    return _explained(trouble_in(last), telling_lines(last), place)


def _explained(trouble: Trouble | None, lines: str, place: Path | None) -> str:
    if trouble is None:
        return f"Its log ends with: {lines}." if lines else ""
    parts = [trouble.meaning]
    if trouble.kind == "disk" and place is not None:
        parts.append(f"{free_space(place)} are free at {place}.")
    return " ".join([*parts, trouble.remedy, f"Its log says: {lines}."])


def last_error(log: str, *, place: Path | None = None) -> str:
    """What the last run of a server died of, where an error is the last thing that it wrote; else empty. What it wrote
    before of other things, such as of a client's wrong password, is not why it died.
    """
    lines = [line for line in since_last_start(log).splitlines() if _is_content(line)]
    end = len(lines)
    while end and _FAREWELL.search(lines[end - 1]):
        end -= 1
    start = end
    while start and trouble_in(lines[start - 1]):
        start -= 1
    if start == end:
        return ""
    # the kind shows in what the whole run wrote: damage after an interrupted checkpoint is another thing
    return _explained(trouble_in("\n".join(lines[:end])), telling_lines("\n".join(lines[start:end])), place)


def _is_content(line: str) -> bool:
    text = clean(_TIME.sub("", line))
    return bool(text) and not _DATE.match(line) and not _ADDRESS.search(text)


def free_bytes(place: Path) -> int:
    """Bytes that can still be written where this path lies."""
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place).free


def free_space(place: Path) -> str:
    return f"{free_bytes(place) / 1e6:,.0f} MB"
