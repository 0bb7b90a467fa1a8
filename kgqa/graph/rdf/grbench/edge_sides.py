"""Compares the edges that nodes list at both of their ends, with flat memory.

Edges are 64-bit hashes. They are kept in memory up to `BUFFER` edges a side, and above that in files by their first
byte, which are compared one at a time. A hash belongs to one process; the probability that two of n edges share one is
about n² / 2^65 (313 million edges: 0.3 %).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
BUFFER = 1 << 20
BUCKETS = 256
_RECORD = np.dtype([("edge", "<u8"), ("other", "<u8"), ("link", "<u2")])
_SHIFT = np.uint64(56)
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))
_HALF = np.uint64(29)


def hashes_of(texts: Sequence[str]) -> Hashes:
    """Hash texts, for use within this process."""
    return np.fromiter(map(hash, texts), dtype=np.int64, count=len(texts)).view(np.uint64)


def edge_hashes(subjects: Hashes, objects: Hashes, link: int) -> Hashes:
    """Hash edges from their subjects, their objects and the number of their link."""
    mixed = subjects * _FACTORS[0] + np.uint64(link + 1) * _FACTORS[2]
    mixed = (mixed ^ (mixed >> _HALF)) * _FACTORS[1] + objects * _FACTORS[2]
    mixed = (mixed ^ (mixed >> _HALF)) * _FACTORS[0]
    return mixed ^ (mixed >> _HALF)


def is_member(values: Hashes, ordered: Hashes) -> npt.NDArray[np.bool_]:
    """Return which values are among ordered ones."""
    if not len(ordered):
        return np.zeros(len(values), dtype=np.bool_)
    places = np.searchsorted(ordered, values)
    places[places == len(ordered)] = 0
    found: npt.NDArray[np.bool_] = ordered[places] == values
    return found


class EdgeSides:
    """The edges of links as both ends list them: `written`, and `inverse` for the other end.

    Args:
        folder: an empty folder for temporary files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[str, list[npt.NDArray[np.void]]] = {"written": [], "inverse": []}
        self._count = {"written": 0, "inverse": 0}
        self._spilled = False

    def add(self, side: str, edges: Hashes, others: Hashes, link: int) -> None:
        """Add edges.

        Args:
            edges: see `edge_hashes`.
            others: hashes of the listed ids; edges to nodes that do not exist are not compared.
        """
        records = np.empty(len(edges), dtype=_RECORD)
        records["edge"], records["other"], records["link"] = edges, others, link
        self._kept[side].append(records)
        self._count[side] += len(records)
        if self._count[side] >= BUFFER:
            self._spill(side)

    def _spill(self, side: str) -> None:
        self._spilled = True
        records = np.concatenate(self._kept[side])
        self._kept[side], self._count[side] = [], 0
        buckets = (records["edge"] >> _SHIFT).astype(np.int64)
        order = np.argsort(buckets, kind="stable")
        records, ends = records[order], np.searchsorted(buckets[order], np.arange(BUCKETS + 1))
        for bucket in range(BUCKETS):
            if piece := records[ends[bucket] : ends[bucket + 1]].tobytes():
                with open(self._folder / f"{side}-{bucket}", "ab") as file:
                    file.write(piece)

    def alone(self, nodes: Hashes) -> tuple[Hashes, dict[int, int], dict[int, int]]:
        """Return the edges that only `inverse` has, in order, and how many only `written` or `inverse` has, by link.

        Args:
            nodes: ordered hashes of all ids.
        """
        only_inverse: list[Hashes] = []
        counts: dict[str, Counter[int]] = {"written": Counter(), "inverse": Counter()}
        if self._spilled:
            self._spill_rest()
        for bucket in range(BUCKETS if self._spilled else 1):
            written, inverse = (_existing(self._bucket(side, bucket), nodes) for side in counts)
            for side, records, others in (("written", written, inverse), ("inverse", inverse, written)):
                alone = records[~is_member(records["edge"], np.ascontiguousarray(others["edge"]))]
                links, found = np.unique(alone["link"], return_counts=True)
                counts[side].update(dict(zip(links.tolist(), found.tolist(), strict=True)))
                if side == "inverse":
                    only_inverse.append(np.ascontiguousarray(alone["edge"]))
        # the buckets are in the order of the hashes
        return np.concatenate(only_inverse), counts["written"], counts["inverse"]

    def _spill_rest(self) -> None:
        for side, kept in self._kept.items():
            if kept:
                self._spill(side)

    def _bucket(self, side: str, bucket: int) -> npt.NDArray[np.void]:
        if not self._spilled:
            return np.concatenate(self._kept[side]) if self._kept[side] else np.empty(0, dtype=_RECORD)
        file = self._folder / f"{side}-{bucket}"
        return np.fromfile(file, dtype=_RECORD) if file.exists() else np.empty(0, dtype=_RECORD)


def _existing(records: npt.NDArray[np.void], nodes: Hashes) -> npt.NDArray[np.void]:
    """Return the records whose listed node exists, ordered by edge, each edge once."""
    records = records[is_member(np.ascontiguousarray(records["other"]), nodes)]
    _, places = np.unique(records["edge"], return_index=True)
    return records[places]
