"""Finds lines that the server's loader rejects or would change.

Lines that the loader would change are recognised by their form. Rejected lines are found by bisection, because the
loader stops reading a file at the first line that it rejects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kgqa.errors import ServerError
from kgqa.graph.rdf.upload import upload_problem
from kgqa.virtuoso.server.server import Server

MAX_REJECTED = 100
"""Maximum number of rejected lines per chunk; if the loader rejects more, single lines are not the cause."""

_RISKY = re.compile(
    rb'"\^\^<http://www\.w3\.org/2001/XMLSchema#(integer|duration|dayTimeDuration|yearMonthDuration)> \.\n\Z'
)
_INTEGER = re.compile(rb'"[+-]?[0-9]+"\^\^')


def unloadable_reason(line: bytes) -> str | None:
    """Return why the server's loader would change a canonical N-Triples line; None if the line stays as it is."""
    typed = _RISKY.search(line)
    if typed and typed[1] == b"integer" and not _INTEGER.match(line, line.index(b' "') + 1):
        return "not an integer despite its datatype: the server would store 0"
    if typed and typed[1] != b"integer":
        return "the server does not support durations: it would store a number"
    return upload_problem(line)


def load_accepted_lines(server: Server, chunk: Path, graph: str) -> dict[bytes, str]:
    """Load a file without the lines that the server rejects; return each rejected line with its error message.

    Args:
        chunk: N-Triples file in the import folder; temporary files are written beside it.

    Raises:
        ServerError: more than MAX_REJECTED lines are rejected, or the load fails for another reason.
    """
    rejected: dict[bytes, str] = {}
    pending: list[list[bytes]] = [chunk.read_bytes().splitlines(keepends=True)]
    while pending:
        lines = pending.pop()
        halves = [half for half in (lines[: len(lines) // 2], lines[len(lines) // 2 :]) if half]
        for half, error in zip(halves, _loaded(server, chunk, halves, graph)):
            if error and len(half) > 1:
                pending.append(half)
            elif error:
                rejected[half[0]] = error
        if len(rejected) > MAX_REJECTED:
            raise ServerError(
                f"The server rejects more than {MAX_REJECTED} lines of a chunk file, most recently because of: "
                f"{list(rejected.values())[-1]}.",
                "Check the server: kgqa virtuoso status",
            )
    return rejected


def _loaded(server: Server, chunk: Path, pieces: Sequence[list[bytes]], graph: str) -> list[str | None]:
    """Load each piece and return its error message; None for a piece without an error."""
    paths = [chunk.with_suffix(f".{number}.nt") for number in range(len(pieces))]
    try:
        for path, lines in zip(paths, pieces):
            path.write_bytes(b"".join(lines))
        # one file at a time, because an error in one file can stop the load of the others
        return [server.load([path], graph)[0].error for path in paths]
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
