"""Folders and databases that may come from somebody else: checked once, before kgqa writes to them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from kgqa.errors import KgqaError

_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""Last bytes of a journal that contains the name of a second file; SQLite deletes that file after a rollback."""


def refuse_links(folder: Path, error: type[KgqaError], *, itself: bool = False) -> None:
    """Refuse a folder with a symbolic link in it, at any depth: a file elsewhere would be written or removed.

    Args:
        folder: the folder; it need not exist.
        error: the class of the error.
        itself: also refuse a folder that is a link, because the user has not named it.

    Raises:
        KgqaError: there is a link; the message names it.
    """
    inside = (Path(where, name) for where, folders, files in os.walk(folder) for name in (*folders, *files))
    for each in (*([folder] if itself else []), *inside):
        if each.is_symlink():
            raise error(
                f"{each} is a link, and kgqa does not write to a folder that contains links.",
                "Remove the link, or choose another folder.",
            )


def refuse_companions(database: Path, error: type[KgqaError]) -> None:
    """Refuse a database whose journal, WAL or shared-memory file refers to another file.

    When SQLite writes to these files, it follows symbolic links. SQLite also deletes a file named in the journal.

    Raises:
        KgqaError: of the class `error`: one of these files is a symbolic link, or the journal names another file.
    """
    file = database.resolve()
    journal, *others = (file.with_name(file.name + ending) for ending in ("-journal", "-wal", "-shm"))
    strange = next((each for each in (journal, *others) if each.is_symlink()), None)
    if strange is None and journal.exists():
        with suppress(FileNotFoundError), journal.open("rb") as opened:  # another process may remove the journal
            opened.seek(max(0, journal.stat().st_size - len(_SUPER_JOURNAL)))
            strange = journal if opened.read() == _SUPER_JOURNAL else None
    if strange is not None:
        raise error(
            f"{strange}, which belongs to {database}, refers to another file.",
            f"Remove {strange} if you did not create it.",
        )
