"""Which files a build has to read, and which documents it has to remove."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kgqa.corpus.building.feeds import Feed, path_of
from kgqa.corpus.storage.ledger import FileEntry
from kgqa.errors import DocumentError, SettingsError
from kgqa.text.hints import Option


@dataclass(frozen=True, slots=True)
class ToRead:
    """A feed whose content or whose results may have changed. `digest`: hash of its content when it was planned."""

    feed: Feed
    digest: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a build has to do.

    Attributes:
        read: Files to read.
        unchanged: Names of files that need not be read.
        vanished: Names of files that are no longer in their folder, or have another name now.
        kept_out: Names of files that the user removed from the corpus.
        skipped: Files that cannot be read, with the reason, by root.
        moved: Unchanged files whose folder has moved, with the new folder.
    """

    read: tuple[ToRead, ...]
    unchanged: tuple[str, ...]
    vanished: tuple[str, ...]
    kept_out: tuple[str, ...]
    skipped: dict[str, list[tuple[str, str]]]
    moved: tuple[FileEntry, ...]


def make_plan(
    found: Mapping[str, Sequence[Feed]],
    known: Mapping[str, FileEntry],
    *,
    key: str,
    retry: Iterable[str] = (),
    prune: bool = True,
    restore: bool = False,
) -> Plan:
    """Compare the files that were found with those that the corpus was read from.

    Args:
        found: The files below each root.
        known: What the corpus was read from.
        key: Hash of what results depend on beside the files.
        retry: Names of files that are read again, because a part of their results is missing.
        prune: Whether files that vanished from a root are planned for removal.
        restore: Whether files that the user removed are read again.

    Raises:
        SettingsError: All files of a root have vanished, which looks like a mistake.
    """
    retried = set(retry)
    read: list[ToRead] = []
    unchanged, kept_out, vanished = [], [], []
    skipped: dict[str, list[tuple[str, str]]] = {root: [] for root in found}
    chosen: dict[str, Feed] = {}
    moved: list[FileEntry] = []
    by_path = {path_of(entry): entry for entry in known.values()}
    for root, feeds in found.items():
        names = {feed.name for feed in feeds}
        gone = [entry.name for entry in known.values() if entry.root == root and entry.name not in names]
        if prune and gone and not names:
            raise SettingsError(
                f"{root} has no files to read, but the corpus has files from there ({len(gone):,}).",
                "Is the folder complete? Remove the files with `kgqa corpus remove`, or add ",
                Option("keep-missing", True),
            )
        vanished += gone if prune else []
        for feed in feeds:
            if feed.name in chosen:
                if chosen[feed.name].path != feed.path:
                    skipped[root].append((feed.name, f"a file of this name was read from {chosen[feed.name].path}"))
                continue
            chosen[feed.name] = feed
            entry = known.get(feed.name) or (by_path.get(feed.path) if feed.path else None)
            if entry is not None and _is_other_file(feed, entry):
                skipped[root].append((feed.name, f"a file of this name was read from {path_of(entry)}"))
                continue
            if entry is not None and entry.removed and not restore:
                kept_out.append(feed.name)
                continue
            try:
                content = feed.digest()
            except DocumentError as error:
                skipped[root].append((feed.name, error.reason))
                continue
            if entry is not None and entry.name != feed.name:  # a folder around that of an earlier build is read
                vanished.append(entry.name)
                entry = None
            same = entry is not None and (entry.digest, entry.key) == (content, key_of(feed, key)) and not entry.removed
            if same and feed.name not in retried:
                unchanged.append(feed.name)
                if entry is not None and entry.root != feed.root:
                    moved.append(replace(entry, root=feed.root))
            else:
                read.append(ToRead(feed, content))
    # a file may have moved from one root to another
    vanished = [name for name in dict.fromkeys(vanished) if name not in chosen]
    return Plan(tuple(read), tuple(unchanged), tuple(vanished), tuple(kept_out), skipped, tuple(moved))


def _is_other_file(feed: Feed, entry: FileEntry) -> bool:
    """Return whether the corpus contains another file of the same name, which still exists."""
    before = path_of(entry)
    return not entry.removed and before is not None and before != feed.path and before.exists()


def key_of(feed: Feed, key: str) -> str:
    """Return what the results of a feed depend on, beside its content; `key` is that of the build."""
    return "extracted" if feed.extracted else key
