"""Where the vectors of a corpus are kept and searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from kgqa.model import PieceKind

VectorRows = Mapping[PieceKind, Sequence[tuple[str, str]]]
"""What can be found: for each kind of pieces pairs (IRI of a piece, digest of its text), sorted by IRI."""


class VectorSnapshot(Protocol):
    """One published version of the vectors; later versions do not change it. Thread-safe."""

    def search(self, kind: PieceKind, queries: np.ndarray, k: int) -> list[list[tuple[str, float]]]:
        """Find the pieces of one kind that are closest to each query.

        Args:
            kind: The kind of pieces.
            queries: Unit vectors, float32 of shape (queries, size).
            k: How many pieces for each query.

        Returns:
            For each query at most k pairs (IRI, cosine), best first, equal cosines in the order of the IRIs. The cosine
            of a piece is that of its best vector: a long text has several.
        """
        ...

    def vectors(self, kind: PieceKind) -> tuple[Sequence[str], np.ndarray]:
        """Return all vectors of one kind: the IRI of each row, and float32 of shape (rows, size)."""
        ...

    def close(self) -> None: ...


class VectorStore(Protocol):
    """Keeps the vectors of texts by a digest of the text, and publishes which pieces are found by them.

    A digest names the text and the encoder, so equal digests mean equal vectors. What was put stays, also after a
    crash, until `discard`; a build that was interrupted embeds no text twice.
    """

    @property
    def location(self) -> str:
        """The folder or URI."""
        ...

    def known(self, digests: Sequence[str]) -> set[str]:
        """Return those digests whose vectors were put."""
        ...

    def put(self, vectors: Sequence[tuple[str, np.ndarray]]) -> None:
        """Keep vectors: pairs of a digest and its vectors, float32 of shape (windows of the text, size)."""
        ...

    def publish(self, rows: VectorRows) -> str:
        """Make a new version in which exactly these pieces are found; return its name.

        Raises:
            ValueError: The vectors of a digest were not put.
        """
        ...

    def snapshot(self, version: str) -> VectorSnapshot:
        """Open a published version.

        Raises:
            ValueError: There is no such version, or it is damaged.
        """
        ...

    def discard(self, keep: str) -> None:
        """Remove all other versions, and the vectors that this version does not use."""
        ...

    def close(self) -> None: ...
