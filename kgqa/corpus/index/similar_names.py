"""Entities with nearly the same name, by the cosine of their vectors. PageRank walks between them.

Each name has a list of the names that are closest to it. After a change of the corpus only the lists of new names are
computed, and those that have lost a name; the others are taken over, with the new names added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kgqa.corpus.index.array_folder import ArrayFolder, ArrayWriter

SIMILAR = 0.8
"""Least cosine of similar names."""
MOST = 100
"""Longest list of a name."""
MAX_COMPARED = 100_000
"""With more names than this, none are compared: the time grows with the square of their number."""
_COMPARED_AT_A_TIME = 1 << 25
"""Cosines that are in memory at a time, 128 MB."""
_DIGEST = 16


@dataclass(frozen=True)
class SimilarNames:
    """The lists of all names: `names[i]` has `others[i]` in its list, with `cosines[i]`; sorted by name, closest first.

    Names are the rows of the entities.
    """

    names: np.ndarray
    others: np.ndarray
    cosines: np.ndarray

    def pairs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return each pair of similar names once, with its cosine."""
        low, high = np.minimum(self.names, self.others), np.maximum(self.names, self.others)
        first = _distinct(low, high)
        return low[first], high[first], self.cosines[first].astype(np.float64)


@dataclass(frozen=True)
class KnownNames:
    """The lists of an earlier generation, and the digest of the text of each of its names by IRI."""

    digests: dict[str, bytes]
    iris: Sequence[str]
    lists: SimilarNames


def write_similar_names(writer: ArrayWriter, found: SimilarNames, digests: Sequence[str]) -> None:
    """Write the lists, and the digests of the names' texts, for the next generation."""
    writer.add("similar.names", np.stack((found.names, found.others), axis=1).astype(np.int32))
    writer.add("similar.cosines", found.cosines.astype(np.float32))
    data = np.frombuffer(bytes.fromhex("".join(digests)), dtype=np.uint8)
    writer.add("similar.digests", data.reshape(-1, _DIGEST))


def read_known_names(folder: ArrayFolder) -> KnownNames | None:
    """Open the lists of a generation; None if it has none, or they are damaged."""
    try:
        pairs, cosines = folder.array("similar.names", "int32", 2), folder.array("similar.cosines", "float32")
        digests, iris = folder.array("similar.digests", "uint8", _DIGEST), folder.texts("entity.iris")
    except ValueError:
        return None
    count = len(iris)
    if (
        len(digests) != count
        or len(pairs) != len(cosines)
        or (len(pairs) and not 0 <= pairs.min() <= pairs.max() < count)
    ):
        return None
    known = {iris[row]: digests[row].tobytes() for row in range(count)}
    return KnownNames(known, list(known), SimilarNames(pairs[:, 0], pairs[:, 1], cosines))


def find_similar_names(
    iris: Sequence[str],
    names: Sequence[str],
    digests: Sequence[str],
    vectors: tuple[Sequence[str], np.ndarray],
    known: KnownNames | None = None,
) -> SimilarNames:
    """Find the names that are similar to each name.

    Names with different numbers are not similar, however close their vectors are: 1941 is not 1942.

    Args:
        iris: The IRIs of all entities, sorted.
        names: Their names.
        digests: The digests of their texts.
        vectors: The IRI of each vector, in the same order, and the vectors; a long text has several.
        known: The lists of an earlier generation.
    """
    rows = {iri: row for row, iri in enumerate(iris)}
    nodes = np.array([rows[iri] for iri in vectors[0]], dtype=np.int64)
    numbers: dict[str, int] = {}
    digits = np.array([numbers.setdefault(" ".join(re.findall(r"\d+", name)), len(numbers)) for name in names])
    kept = _kept(rows, digests, known)
    lists = [_taken_over(kept, rows, known)]
    new = np.flatnonzero(~kept[nodes])
    step = max(1, _COMPARED_AT_A_TIME // max(1, len(nodes)))
    for start in range(0, len(new), step):
        part = new[start : start + step]
        cosines = vectors[1][part] @ vectors[1].T
        ones, others = np.nonzero(cosines >= SIMILAR)
        found = SimilarNames(nodes[part[ones]], nodes[others], np.round(cosines[ones, others], 6))
        same = (digits[found.names] == digits[found.others]) & (found.names != found.others)
        found = SimilarNames(found.names[same], found.others[same], found.cosines[same])
        old = kept[found.others]
        lists += [_shortened(found), SimilarNames(found.others[old], found.names[old], found.cosines[old])]
    return _shortened(SimilarNames(*(np.concatenate(each) for each in zip(*map(_columns, lists)))))


def _kept(rows: dict[str, int], digests: Sequence[str], known: KnownNames | None) -> np.ndarray:
    """Return which names have a list that can be taken over: they are unchanged, and so is all of their list."""
    kept = np.zeros(len(rows), dtype=bool)
    if known is None:
        return kept
    unchanged = np.array(
        [iri in rows and bytes.fromhex(digests[rows[iri]]) == known.digests[iri] for iri in known.iris]
    )
    whole = unchanged.copy()
    sizes = np.bincount(known.lists.names, minlength=len(known.iris))
    lost = known.lists.names[~unchanged[known.lists.others]] if len(known.lists.names) else known.lists.names
    whole[[name for name in lost if sizes[name] >= MOST]] = False  # a name that was left out may follow
    for place in np.flatnonzero(whole).tolist():
        kept[rows[known.iris[place]]] = True
    return kept


def _taken_over(kept: np.ndarray, rows: dict[str, int], known: KnownNames | None) -> SimilarNames:
    if known is None or not kept.any():
        return SimilarNames(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    place = np.array([rows.get(iri, -1) for iri in known.iris], dtype=np.int64)
    names, others = place[known.lists.names], place[known.lists.others]
    # a recomputed name is compared with all others, so pairs with it are found from its side
    both = (names >= 0) & (others >= 0)
    both[both] &= kept[names[both]] & kept[others[both]]
    return SimilarNames(names[both], others[both], np.asarray(known.lists.cosines)[both])


def _columns(lists: SimilarNames) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return lists.names, lists.others, lists.cosines


def _shortened(lists: SimilarNames) -> SimilarNames:
    """Return lists that are sorted, without repetitions, and not longer than `MOST`."""
    order = np.lexsort((lists.others, -lists.cosines, lists.names))
    names, others, cosines = lists.names[order], lists.others[order], lists.cosines[order]
    first = _distinct(names, others)  # of several vectors of a name, the closest one counts
    names, others, cosines = names[first], others[first], cosines[first]
    starts = np.flatnonzero(np.r_[True, names[1:] != names[:-1]]) if len(names) else np.empty(0, np.int64)
    place = np.arange(len(names)) - np.repeat(starts, np.diff(np.r_[starts, len(names)]))
    return SimilarNames(names[place < MOST], others[place < MOST], cosines[place < MOST])


def _distinct(names: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the positions of the first of equal pairs, in their order."""
    keys = names.astype(np.int64) * (int(others.max(initial=0)) + 1) + others
    found: np.ndarray = np.sort(np.unique(keys, return_index=True)[1])
    return found
