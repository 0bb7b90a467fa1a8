"""What a build does: how documents are split into chunks, and how facts are extracted from them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kgqa.corpus.documents.chunks import PRESETS, ChunkSize
from kgqa.errors import SettingsError

MODEL_MODES = ("triples", "hyperedges", "segments", "openie")
"""The ways of extraction that ask a language model."""
DEFAULT_CHUNKS = "1024/20"
CHARACTERS_PER_TOKEN = 4
_CHUNKS = re.compile(r"(\d{1,9})/(\d{1,9})\s*(tokens|chars|characters)?")


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The options of a build. How facts are extracted is a setting, `corpus.extract`.

    Attributes:
        chunks: How long chunks are; see `chunk_size`. None for what the corpus was built with before, or the default.
        ignore: Patterns of files that are left out, as in a `.gitignore` file.
        hidden: Whether hidden files are read.
        keys: Whether files are read that look as if they contained keys or passwords.
        community_size: Most entities of a community without communities inside, at least 2; None for what was chosen
            before, or the default.
        max_cost: The most that model calls may cost, in USD; None for no limit.
        prune: Whether documents whose file has vanished from a folder are removed.
        restore: Whether files are read again that `kgqa corpus remove` removed.
    """

    chunks: str | None = None
    ignore: tuple[str, ...] = ()
    hidden: bool = False
    keys: bool = False
    community_size: int | None = None
    max_cost: float | None = None
    prune: bool = True
    restore: bool = False


def chunk_size(text: str) -> ChunkSize:
    """Read the size of chunks: `SIZE/OVERLAP` in tokens of the embedding model, or `SIZE/OVERLAPchars`.

    Raises:
        SettingsError: The text has another form, or the overlap is too large.
    """
    found = _CHUNKS.fullmatch(text.strip().casefold())
    if text in PRESETS:
        return PRESETS[text]
    if found is None:
        raise SettingsError(
            f"{text[:40]!r} is not a size of chunks.",
            "Write SIZE/OVERLAP in tokens, such as 1024/20, or 2000/100chars.",
        )
    size, overlap, unit = int(found[1]), int(found[2]), found[3] or "tokens"
    return ChunkSize(size, overlap, "tokens" if unit == "tokens" else "characters")


def chunk_text(size: ChunkSize) -> str:
    """Return the text that `chunk_size` reads."""
    return f"{size.size}/{size.overlap}{'' if size.unit == 'tokens' else 'chars'}"


def in_characters(size: ChunkSize) -> ChunkSize:
    """Return a size in characters that is about as long as one in tokens, for a computer without an embedding model."""
    if size.unit == "characters":
        return size
    return ChunkSize(size.size * CHARACTERS_PER_TOKEN, size.overlap * CHARACTERS_PER_TOKEN, "characters")
