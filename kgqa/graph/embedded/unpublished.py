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
_EDIT = re.compile(r"^([0-9]{1,10}) \+([0-9]{1,12}) -([0-9]{1,12})$", re.MULTILINE)
_PUBLISHING = "publishing"


class UnpublishedLog:
    """A text file with one line for each edit: the published generation, and the numbers of its triples.

    A line is written before its edit. It reaches the operating system at once, so a killed process has written it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append_edit(self, published: int, added: int, removed: int) -> None:
        """Append an edit. Raises OSError."""
        self._append(f"{published} +{added} -{removed}\n")

    def append_publishing(self) -> None:
        """Append the line which says that the edits before are being published. Raises OSError."""
        self._append(f"{_PUBLISHING}\n")

    def _append(self, line: str) -> None:
        with open(self.path, "ab", buffering=0) as file:
            if file.write(line.encode()) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def drop_last(self) -> None:
        """Remove the last line, because its edit or publication has failed."""
        with suppress(OSError):
            os.truncate(self.path, self.path.read_bytes()[:-1].rfind(b"\n") + 1)

    def remove(self) -> None:
        """Remove the log: all edits are published or discarded."""
        self.path.unlink(missing_ok=True)

    def notice(self, published: int | None) -> str:
        """Return a sentence about the edits that a killed process left, or "".

        Args:
            published: the number of the published generation.
        """
        text = ""
        with suppress(OSError, ValueError):
            text = read_bytes(self.path, MAX_BYTES).decode("ascii", "replace")
        edits = [tuple(map(int, match.groups())) for match in _EDIT.finditer(text)]
        if not edits:
            return ""
        what, (_, added, removed) = counted(len(edits), "edit"), map(sum, zip(*edits))
        who = f"The last process that edited {self.path.parent} ended"
        if edits[0][0] != published:
            return f"{who} just after it published {what}. Nothing was lost."
        while_publishing = " while it was publishing them" if text.rstrip().endswith(_PUBLISHING) else ""
        return (
            f"{who} without publishing {what}{while_publishing}: {added:,} added and {removed:,} removed "
            f"{'triple is' if added + removed == 1 else 'triples are'} lost. The graph is as it was before these edits."
        )
