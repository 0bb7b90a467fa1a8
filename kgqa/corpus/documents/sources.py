"""Finds the files to read in folders, and names the files that are left out."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING

from kgqa.corpus.documents.credentials import credential_in, named_like_key
from kgqa.corpus.documents.file_types import PLAIN_TEXT, FileType, file_type, is_binary
from kgqa.corpus.documents.limits import DEFAULT_LIMITS, Limits
from kgqa.corpus.items import digest
from kgqa.errors import DocumentError, SettingsError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

READER_VERSION = "1"
"""Changes when the same file gives another text or other elements, so that files are read again."""
IGNORE_FILE = ".kgqaignore"
_HEAD = 1 << 16
_MAX_IGNORE_FILE = 1 << 16
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read. `name`: its path in the corpus. `size`: in bytes. `type`: None if its name says the type."""

    name: str
    path: Path
    size: int
    type: FileType | None = None

    @property
    def file_type(self) -> FileType:
        """How the file is read."""
        return self.type or file_type(self.name) or PLAIN_TEXT

    def open(self) -> BufferedReader:
        """Open the file.

        Raises:
            DocumentError: It cannot be read, or is no longer a regular file.
        """
        try:
            return self.path.open("rb")
        except OSError as error:
            raise DocumentError(_reason(error), self.name) from error

    def digest(self) -> str:
        """Return the hash of the file's content; equal to that of the document that is read from it.

        Raises:
            DocumentError: The file cannot be read.
        """
        with self.open() as file:
            try:
                return content_digest(hashlib.file_digest(file, "sha256").hexdigest())
            except OSError as error:
                raise DocumentError(_reason(error), self.name) from error


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that were found, by name, and the files and folders that were left out, with the reason."""

    sources: tuple[Source, ...]
    skipped: tuple[tuple[str, str], ...]


def content_digest(*parts: str) -> str:
    """Return the digest of a document from the SHA-256 hash of its file, or from its texts."""
    return digest(READER_VERSION, *parts, length=32)


def find_sources(
    paths: Sequence[str | Path],
    *,
    ignore: Iterable[str] = (),
    hidden: bool = False,
    keys: bool = False,
    max_bytes: int | None = None,
    names_from: str | Path | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Sources:
    """Find the files to read.

    Left out are hidden files, links, files that match a pattern, that have an unknown type, that are too large, or that
    look like keys or passwords. A folder may contain a file `.kgqaignore` with patterns, as may its subfolders.

    Args:
        paths: Files and folders.
        ignore: Patterns as in a `.gitignore` file, for paths relative to each folder.
        hidden: Whether to read files and folders whose names begin with a dot.
        keys: Whether to read files that look like keys or passwords.
        max_bytes: Size of the largest file, except for JSON Lines; None for that of `limits`.
        names_from: The folder to which names are relative; None for the folder that contains the path.
        limits: The largest sizes.

    Raises:
        DocumentError: A path does not exist, or there are too many files.
        SettingsError: A pattern is not valid.
    """
    if max_bytes is not None:
        limits = replace(limits, file_bytes=max_bytes)
    finder = _Finder(list(ignore), hidden, keys, limits)
    for path in map(Path, paths):
        finder.add(path, Path(names_from) if names_from is not None else None)
    return Sources(
        tuple(sorted(finder.sources.values(), key=lambda each: each.name)), tuple(sorted(set(finder.skipped)))
    )


@dataclass
class _Finder:
    ignore: list[str]
    hidden: bool
    keys: bool
    limits: Limits
    sources: dict[str, Source] = field(default_factory=dict)
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def add(self, path: Path, names_from: Path | None) -> None:
        """Add a file, or the files of a folder, that the caller names; links among the given paths are followed."""
        try:
            real = path.resolve(strict=True)
            status = real.stat()
        except (OSError, RuntimeError) as error:
            reason = _reason(error) if isinstance(error, OSError) else "the link leads to itself"
            raise DocumentError(reason, str(path)) from error
        base = (
            names_from.resolve()
            if names_from is not None and real.is_relative_to(names_from.resolve())
            else real.parent
        )
        name = _printable(real.relative_to(base).as_posix())
        if stat.S_ISDIR(status.st_mode):
            self._folder(real, "" if name == "." else name)
        elif _matches([(len(real.parent.parts), _spec(self.ignore, "--ignore"))], real, is_folder=False):
            self.skipped.append((name, "it matches an ignore pattern"))
        else:
            self._file(real, name, status, named=True)

    def _folder(self, root: Path, root_name: str) -> None:
        pending = [(root, root_name, [(len(root.parts), _spec(self.ignore, "--ignore"))])]
        while pending:
            folder, name, specs = pending.pop()
            try:
                if patterns := _ignore_file(folder):
                    specs = [*specs, (len(folder.parts), _spec(patterns, f"{name}/{IGNORE_FILE}"))]
                with os.scandir(folder) as entries:
                    ordered = sorted(entries, key=lambda entry: entry.name)
            except OSError as error:
                self.skipped.append((f"{name}/", _reason(error)))
                continue
            folders = []
            for entry in ordered:
                path = folder / entry.name
                entry_name = f"{name}/{_printable(entry.name)}" if name else _printable(entry.name)
                if self._enters(entry, path, entry_name, root, specs):
                    folders.append((path, entry_name, specs))
            pending += reversed(folders)

    def _enters(
        self, entry: os.DirEntry[str], path: Path, name: str, root: Path, specs: list[tuple[int, GitIgnoreSpec]]
    ) -> bool:
        """Add a file of a folder, or return True for a folder whose files are to be found."""
        if entry.name == IGNORE_FILE:
            return False
        is_folder = entry.is_dir(follow_symlinks=False)
        shown = f"{name}/" if is_folder else name
        if entry.is_symlink():
            self.skipped.append((shown, _link_reason(path, root)))
        elif not self.hidden and entry.name.startswith("."):
            self.skipped.append((shown, "hidden"))
        elif _matches(specs, path, is_folder=is_folder):
            self.skipped.append((shown, "it matches an ignore pattern"))
        elif is_folder:
            if not (path / "corpus.sqlite").exists():
                return True
            self.skipped.append((shown, "a corpus of kgqa"))
        else:
            try:
                self._file(path, name, entry.stat(follow_symlinks=False), named=False)
            except OSError as error:
                self.skipped.append((name, _reason(error)))
        return False

    def _file(self, path: Path, name: str, status: os.stat_result, *, named: bool) -> None:
        type_, reason = self._check(path, name, status, named)
        if reason or type_ is None:
            self.skipped.append((name, reason))
        elif name in self.sources and self.sources[name].path != path:
            self.skipped.append((name, f"another file has the same name in the corpus: {self.sources[name].path}"))
        elif len(self.sources) >= self.limits.files:
            raise DocumentError(f"there are more than {self.limits.files:,} files")
        else:
            self.sources[name] = Source(name, path, status.st_size, type_)

    def _check(self, path: Path, name: str, status: os.stat_result, named: bool) -> tuple[FileType | None, str]:
        """Return the type of a file, and the reason for leaving it out; the reason is "" for a file to read."""
        type_ = file_type(path.name) or (PLAIN_TEXT if named or not path.suffix else None)
        largest = self.limits.stream_bytes if type_ and type_.format == "json_records" else self.limits.file_bytes
        if not stat.S_ISREG(status.st_mode):
            return None, "not a regular file"
        if not self.keys and named_like_key(path.name):
            return None, "it looks like a file with keys or passwords"
        if type_ is None:
            return None, f"unknown type {_printable(path.suffix)[:20]}"
        if status.st_size == 0:
            return None, "the file is empty"
        if status.st_size > largest:
            return None, f"larger than {largest:,} bytes"
        if not type_.is_text:
            return type_, ""
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD)
        except OSError as error:
            return None, _reason(error)
        if is_binary(head) and path.suffix.lower() != ".gz":
            return None, "not a text file"
        # records are checked one by one when they are read
        if (
            not self.keys
            and type_.format != "json_records"
            and (found := credential_in(head.decode("utf-8", "replace")))
        ):
            return None, f"it contains {found}"
        return type_, ""


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _link_reason(path: Path, root: Path) -> str:
    try:
        inside = path.resolve().is_relative_to(root)
    except (OSError, RuntimeError):
        return "a link that leads nowhere"
    return "a link to a file or folder that is read under its own name" if inside else "a link out of the folder"


def _printable(name: str) -> str:
    r"""Return a name in which bytes that are not UTF-8, and control characters, are written as `\xff`."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return _UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _ignore_file(folder: Path) -> list[str]:
    try:
        with (folder / IGNORE_FILE).open("rb") as file:
            return file.read(_MAX_IGNORE_FILE).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []


def _spec(patterns: Sequence[str], origin: str) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise SettingsError(f"{origin}: an ignore pattern is not valid: {error}") from error


def _matches(specs: Iterable[tuple[int, GitIgnoreSpec]], path: Path, *, is_folder: bool) -> bool:
    """Return whether patterns exclude a path. The last patterns that name it decide, as in Git."""
    for depth, spec in reversed(list(specs)):
        relative = "/".join(path.parts[depth:]) + ("/" if is_folder else "")
        found = spec.check_file(relative).include
        if found is not None:
            return bool(found)
    return False
