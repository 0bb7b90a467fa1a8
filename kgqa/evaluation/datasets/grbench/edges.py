"""Compares the edges that nodes list at both of their ends, with flat memory.

Edges are 64-bit hashes. Up to `BUFFER` of them are in memory, the others in files by their first byte, which are
compared one at a time. A hash belongs to one process; the probability that two of n edges share one is about
n² / 2^65 (313 million edges: 0.3 %).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
BUFFER = 1 << 20
_RECORD = np.dtype([("edge", "<u8"), ("end", "<u8"), ("link", "<u4"), ("inverse", "?")])
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


def hashes_of(texts: Iterable[str]) -> Hashes:
    """Hash texts, for use within this process."""
    return np.fromiter(map(hash, texts), dtype=np.int64).view(np.uint64)


def link_hash(link: str) -> int:
    """Hash the name of a link to 32 bits."""
    return hash(link) & 0xFFFFFFFF


def edge_hashes(subjects: Hashes, objects: Hashes, link: str) -> Hashes:
    """Hash edges from the hashes of their subjects and objects and the name of their link."""
    return subjects * _FACTORS[0] + objects * _FACTORS[1] + np.uint64(link_hash(link) << 31)


def is_member(values: Hashes, ordered: Hashes) -> npt.NDArray[np.bool_]:
    """Return which values are among ordered ones."""
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    return np.equal(ordered[np.searchsorted(ordered, values) % len(ordered)], values)


class EdgeSides:
    """The edges of links as both ends list them.

    Args:
        folder: an empty folder for temporary files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: list[npt.NDArray[np.void]] = []
        self._count = 0

    def add(self, edges: Hashes, ends: Hashes, link: str, *, inverse: bool) -> None:
        """Add edges of a link.

        Args:
            edges: see `edge_hashes`.
            ends: hashes of the listed ids; edges to nodes that do not exist are not compared.
            inverse: whether the inverse of the link lists them.
        """
        records = np.empty(len(edges), dtype=_RECORD)
        records["edge"], records["end"], records["link"], records["inverse"] = edges, ends, link_hash(link), inverse
        self._kept.append(records)
        self._count += len(records)
        if self._count >= BUFFER:
            self._spill()

    def _spill(self) -> None:
        records = np.concatenate(self._kept)
        self._kept, self._count = [], 0
        buckets = records["edge"] >> np.uint64(56)
        order = np.argsort(buckets, kind="stable")
        names, starts = np.unique(buckets[order], return_index=True)
        for name, piece in zip(names.tolist(), np.split(records[order], starts[1:])):
            with open(self._folder / str(name), "ab") as file:
                file.write(piece.tobytes())

    def one_sided(self, nodes: Hashes) -> tuple[Hashes, Counter[tuple[int, bool]]]:
        """Return the edges that only the inverse of a link has, in order, and how many only one side has.

        Args:
            nodes: ordered hashes of all ids.

        Returns:
            The edges, and the counts by link (see `link_hash`) and whether only its inverse has them.
        """
        if self._kept:
            self._spill()
        only_inverse: list[Hashes] = [np.empty(0, dtype=np.uint64)]
        counts: Counter[tuple[int, bool]] = Counter()
        for file in sorted(self._folder.iterdir(), key=lambda file: int(file.name)):
            records = np.fromfile(file, dtype=_RECORD)
            records = records[is_member(np.ascontiguousarray(records["end"]), nodes)]
            sides = {}
            for inverse in (False, True):
                side = records[records["inverse"] == inverse]
                sides[inverse] = side[np.unique(side["edge"], return_index=True)[1]]
            for inverse, side in sides.items():
                alone = side[~is_member(side["edge"], np.ascontiguousarray(sides[not inverse]["edge"]))]
                links, lengths = np.unique(alone["link"], return_counts=True)
                counts.update({(link, inverse): count for link, count in zip(links.tolist(), lengths.tolist())})
                if inverse:
                    only_inverse.append(alone["edge"])
        # the buckets are in the order of the hashes
        return np.concatenate(only_inverse), counts
