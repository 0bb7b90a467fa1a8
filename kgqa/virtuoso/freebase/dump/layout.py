"""Assigns the lines of a dump to chunk files, independently of the number of worker processes.

    group 0                                          group 1
    part 0   part 1   part 2   part 3   part 4 ...   part p ...
    file 0   file 1   file 2   file 3   file 0 ...   file 0 of the next group

A group is cleaned, loaded and written to disk as a whole. The parts of a group are assigned to its files in turn, so
the files have similar sizes, and several processes can clean one group, each writing its own files.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

# two groups of files exist at the same time: one is being loaded, the other is being cleaned
MAX_FILES = 8
FILES_PER_GROUP = MAX_FILES // 2
LINES_PER_PART = 1 << 16
LINES_PER_CHUNK = 10_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of parts, files and groups in lines of the dump, before cleaning.

    `lines_per_chunk` is the requested number of lines per file. A file may have slightly fewer lines, because all parts
    have the same size.
    """

    lines_per_chunk: int = LINES_PER_CHUNK

    @property
    def parts_per_file(self) -> int:
        return math.ceil(self.lines_per_chunk / LINES_PER_PART)

    @property
    def lines_per_part(self) -> int:
        return max(1, self.lines_per_chunk // self.parts_per_file)

    @property
    def parts_per_group(self) -> int:
        return self.parts_per_file * FILES_PER_GROUP

    def group_of(self, part: int) -> int:
        return part // self.parts_per_group


def file_of(part: int) -> int:
    """Return which file of its group gets a part, as a number from 0."""
    return part % FILES_PER_GROUP


def files_of_worker(worker: int, workers: int) -> range:
    """Return the files of each group that this worker writes."""
    return range(worker, FILES_PER_GROUP, workers)


def chunk_file(folder: Path, group: int, file: int) -> Path:
    """Return the path of a chunk file; the numbers in file names start at 1."""
    return folder / f"freebase-{group * FILES_PER_GROUP + file + 1:06}.nt"


def chunk_files(folder: Path) -> list[Path]:
    """Return all chunk files of a folder, including unfinished files."""
    return sorted(path for path in folder.glob("freebase-*.nt*") if path.name[9:15].isdigit())
