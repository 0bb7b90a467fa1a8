"""The log of unpublished edits, from which the next process learns what a killed one left."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from pathlib import Path

from kgqa.storage.loading import read_bytes
from kgqa.text.words import counted

MAX_BYTES = 64 << 20
_START = re.compile(r"after generation ([0-9]{1,10})")
_EDIT = re.compile(r"\+([0-9]{1,12}) -([0-9]{1,12})")
_PUBLISHING = "publishing"


class UnpublishedLog:
    """A text file: the published generation, then one line for each edit after it, with the numbers of its triples.

    A line is written before its edit. It reaches the operating system at once, so a killed process has written it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append_edit(self, published: int, added: int, removed: int) -> None:
        """Append an edit. Raises OSError."""
        self._append(published, f"+{added} -{removed}")

    def append_publishing(self, published: int) -> None:
        """Append the line which says that the edits before are being published. Raises OSError."""
        self._append(published, _PUBLISHING)

    def drop_last(self) -> None:
        """Remove the last line, because its edit or publication has failed."""
        with suppress(OSError):
            data = self.path.read_bytes()
            os.truncate(self.path, data[:-1].rfind(b"\n") + 1)

    def remove(self) -> None:
        """Remove the log: all edits are published or discarded."""
        self.path.unlink(missing_ok=True)

    def notice(self, published: int | None) -> str:
        """Return a sentence about the edits that a killed process left, or "".

        Args:
            published: the number of the published generation.
        """
        try:
            lines = read_bytes(self.path, MAX_BYTES).decode("ascii", "replace").splitlines()
        except (OSError, ValueError):
            return ""
        start = _START.fullmatch(lines[0]) if lines else None
        edits = [match for match in map(_EDIT.fullmatch, lines) if match]
        if not start or not edits:
            return ""
        what = counted(len(edits), "edit")
        who = f"The last process that edited {self.path.parent} ended"
        if int(start[1]) != published:
            return f"{who} just after it published {what}. Nothing was lost."
        while_publishing = " while it was publishing them" if lines[-1] == _PUBLISHING else ""
        added, removed = (sum(int(match[number]) for match in edits) for number in (1, 2))
        return (
            f"{who} without publishing {what}{while_publishing}: {added:,} added and {removed:,} removed "
            f"{'triple is' if added + removed == 1 else 'triples are'} lost. The graph is as it was before these edits."
        )

    def _append(self, published: int, line: str) -> None:
        start = "" if self.path.exists() else f"after generation {published}\n"
        text = f"{start}{line}\n"
        with open(self.path, "ab", buffering=0) as file:
            if file.write(text.encode()) < len(text):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
