"""The answers behind permanent links, and answers that are given again for the same question."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kgqa.storage.answer_json import json_text
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.loading import parse_json

_ID = re.compile(r"[0-9a-f]{32}")
MEMORY_MB = 64
"""Maximum size of the answers that are held in memory beside those on disk, in MB."""


def answers_folder(given: str | None) -> Path | None:
    """Return the folder that the setting serve.folder means; None if answers are kept in memory only."""
    if given == "none":
        return None
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("kgqa", appauthor=False) / "answers"


class KeptAnswers:
    """Answers by their id, in memory and, with a folder, on disk. The oldest are removed first. Thread-safe.

    Args:
        folder: where each answer is a file; None keeps them in memory only. It is created with access for its owner
            only.
        number: maximum number of answers.
        megabytes: maximum size of all answers.

    Raises:
        OSError: the folder cannot be created or read.
    """

    def __init__(self, folder: Path | None, *, number: int = 10_000, megabytes: int = 500) -> None:
        self._folder = folder
        self._number, self._bytes = number, megabytes << 20
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._size = self._in_memory = 0
        self._lock = threading.Lock()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with os.scandir(folder) as entries:
                files = [(each.stat().st_mtime, each.name, each.stat().st_size) for each in entries if _file(each)]
            for _, name, size in sorted(files):
                self._sizes[name.removesuffix(".json")] = size
            self._size = sum(self._sizes.values())

    def put(self, id: str, answer: dict[str, Any]) -> int:
        """Keep an answer, and return its size in bytes. If it cannot be written to the disk, it is kept in memory."""
        data = json_text(answer).encode("utf-8", "surrogatepass")
        if self._folder is not None and self._number:
            with suppress(OSError):
                replace_file(self._folder / f"{id}.json", [data], mode=0o600, sync=False)
        with self._lock:
            self._memory[id] = data
            self._sizes[id] = len(data)
            self._size += len(data)
            self._in_memory += len(data)
            while self._memory and self._in_memory > MEMORY_MB << 20 and self._folder is not None:
                self._in_memory -= len(self._memory.popitem(last=False)[1])
            gone = []
            while self._sizes and (len(self._sizes) > self._number or self._size > self._bytes):
                name, size = self._sizes.popitem(last=False)
                self._size -= size
                self._in_memory -= len(self._memory.pop(name, b""))
                gone.append(name)
        for name in gone if self._folder is not None else ():
            with suppress(OSError):
                (self._folder / f"{name}.json").unlink()  # type: ignore[operator]
        return len(data)

    def get(self, id: str) -> dict[str, Any] | None:
        """Return a kept answer; None if there is none with this id, or its file cannot be read."""
        if not _ID.fullmatch(id):
            return None
        with self._lock:
            data = self._memory.get(id)
        if data is None and self._folder is not None:
            with suppress(OSError):
                data = (self._folder / f"{id}.json").read_bytes()
        with suppress(ValueError):
            found: dict[str, Any] = parse_json(data or b"", dict[str, Any])
            return found if isinstance(found.get("question"), str) else None
        return None


def _file(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".json") and bool(_ID.fullmatch(entry.name[:-5])) and entry.is_file()


class AnswerCache:
    """The last answers by what was asked; the one not used for longest is dropped. Thread-safe."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._answers: OrderedDict[Hashable, dict[str, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> dict[str, Any] | None:
        """Return the answer to the same question, if it is still known."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def put(self, key: Hashable, answer: dict[str, Any]) -> None:
        """Remember an answer."""
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > self._number:
                self._answers.popitem(last=False)
