"""Pairs of names with similar embeddings, as questions for a language model; nearness alone decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kgqa.corpus.resolution.evidence import Evidence
from kgqa.corpus.resolution.names import Name
from kgqa.corpus.resolution.normal_forms import distinguishing_words
from kgqa.corpus.resolution.variants import Encoder

NEAR = 0.85
"""Smallest cosine of names about which a model is asked. Below, few pairs mean the same."""
_NEIGHBOURS = 5
_ROWS = 1024


def near_names(evidence: Evidence, encoder: Encoder, *, near: float = NEAR) -> list[tuple[float, Name, Name]]:
    """Return pairs of names with a cosine of at least `near`, with the cosine, nearest first.

    Each name is compared with all, and its nearest few are looked at. Numbers and types of both names agree, and no
    fact connects them.
    """
    names = evidence.names
    if len(names) < 2:
        return []
    vectors = np.concatenate([encoder.encode([name.text for name in part]) for part in _parts(names)]).astype(
        np.float32
    )
    rows = np.array([at for at, name in enumerate(names) if evidence.is_new(name)], dtype=np.int64)
    found: dict[tuple[str, str], tuple[float, Name, Name]] = {}
    for begin in range(0, len(rows), _ROWS):
        part = rows[begin : begin + _ROWS]
        cosines = vectors[part] @ vectors.T
        cosines[np.arange(len(part)), part] = -1.0
        count = min(_NEIGHBOURS, len(names) - 1)
        nearest = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
        for row, (at, others) in enumerate(zip(part, nearest)):
            for other_at in others:
                cosine = float(cosines[row, other_at])
                one, other = sorted((names[at], names[int(other_at)]), key=lambda name: name.iri)
                if cosine >= near and (one.iri, other.iri) not in found and _may_be_same(evidence, one, other):
                    found[one.iri, other.iri] = (cosine, one, other)
    return sorted(found.values(), key=lambda pair: (-pair[0], pair[1].iri, pair[2].iri))


def _may_be_same(evidence: Evidence, one: Name, other: Name) -> bool:
    return (
        distinguishing_words(one.text) == distinguishing_words(other.text)
        and evidence.types_allow(one, other)
        and not evidence.are_related(one, other)
    )


def _parts(names: Sequence[Name]) -> list[Sequence[Name]]:
    return [names[begin : begin + _ROWS] for begin in range(0, len(names), _ROWS)]
