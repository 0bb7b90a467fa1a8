"""Lines that the server's loader does not take as they are: those it would change, known by their form, and those it
refuses, found by halves, because it gives up a whole file for one of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kgqa.errors import ServerError
from kgqa.graph.rdf.upload import upload_problem
from kgqa.virtuoso.server.server import Server

MOST_REFUSED = 100
"""Refused lines in one chunk beyond which something else must be wrong."""

_RISKY = re.compile(
    rb'"\^\^<http://www\.w3\.org/2001/XMLSchema#(integer|duration|dayTimeDuration|yearMonthDuration)> \.\n\Z'
)
_INTEGER = re.compile(rb'"[+-]?[0-9]+"\^\^')


def unfit(line: bytes) -> str | None:
    """Why the server's loader would not keep a canonical line as it is, None where it would."""
    typed = _RISKY.search(line)
    if typed and typed[1] == b"integer" and not _INTEGER.match(line, line.index(b' "') + 1):
        return "no integer, though it says so: the server would make 0 of it"
    if typed and typed[1] != b"integer":
        return "the server does not keep durations: it would make a number of this one"
    return upload_problem(line)


def refused_lines(server: Server, chunk: Path, graph: str) -> dict[bytes, str]:
    """The lines of a file that the server refuses, and what it says of each; all others are loaded.

    Args:
        chunk: N-Triples in the import folder; what is written beside it is removed again.

    Raises:
        ServerError: there are too many, or the load fails otherwise.
    """
    refused: dict[bytes, str] = {}
    pending: list[list[bytes]] = [chunk.read_bytes().splitlines(keepends=True)]
    while pending:
        lines = pending.pop()
        halves = [half for half in (lines[: len(lines) // 2], lines[len(lines) // 2 :]) if half]
        for half, error in zip(halves, _loaded(server, chunk, halves, graph)):
            if error and len(half) > 1:
                pending.append(half)
            elif error:
                refused[half[0]] = error
        if len(refused) > MOST_REFUSED:
            raise ServerError(
                f"The server refuses more than {MOST_REFUSED} lines in a row of files, the last one with: "
                f"{list(refused.values())[-1]}. Look at its log: kgqa virtuoso status"
            )
    return refused


def _loaded(server: Server, chunk: Path, pieces: Sequence[list[bytes]], graph: str) -> list[str | None]:
    """What the server says of each piece, None where it took all of it."""
    paths = [chunk.with_suffix(f".{number}.nt") for number in range(len(pieces))]
    try:
        for path, lines in zip(paths, pieces):
            path.write_bytes(b"".join(lines))
        # one by one: a piece that fails must not take another one with it
        return [server.load([path], graph)[0].error for path in paths]
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
