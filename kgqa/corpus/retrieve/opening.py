"""Opens retrievers on the index of a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.index.entries import INDEXED
from kgqa.corpus.retrieve.dense import DenseRanker
from kgqa.corpus.retrieve.fused import FusedRanker
from kgqa.corpus.retrieve.lexical import LexicalRanker
from kgqa.corpus.retrieve.pagerank import DEFAULT_OPTIONS, FACTS, PageRankOptions, PageRankRanker
from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.corpus.retrieve.rows import Ranker, RowRetriever
from kgqa.errors import SettingsError
from kgqa.model import PieceKind

CHANNELS = ("bm25", "dense", "pagerank")
"""How pieces are found: by words, by embeddings, by PageRank (chunks and entities only)."""
RANKED: tuple[PieceKind, ...] = ("chunk", "entity")
"""The kinds that PageRank ranks."""
DENSE_FACTS = 3.0
"""Facts per chunk from which PageRank finds more chunks than words and embeddings do.

Recall@5 with 9 facts per chunk, by a model: 70.1, words and embeddings 63.0; with 1.5, by rules: 65.6 and 82.2.
"""


def open_retriever(
    index: CorpusIndex,
    kind: PieceKind = "chunk",
    channels: Sequence[str] = (),
    *,
    weights: Mapping[str, float] = {},
    pagerank: PageRankOptions = DEFAULT_OPTIONS,
) -> Retriever:
    """Return the retriever of one kind of pieces.

    Args:
        index: The index.
        kind: The kind of pieces.
        channels: Some of `CHANNELS`; several are fused. By default PageRank for the chunks of a corpus with at least
            `DENSE_FACTS` facts per chunk, and words and embeddings for the rest. PageRank starts at what words and
            embeddings find, so it is itself a fusion of all three; fused with them once more, it finds less (see
            `benchmarks/retrieval.py`).
        weights: Weights of channels in the fusion; 1 if not given.
        pagerank: Settings of PageRank.

    Raises:
        SettingsError: There is no such kind or channel in the index.
    """
    if kind not in INDEXED:
        raise SettingsError(f"The index contains no {kind}.", f"Choose from {', '.join(INDEXED)}.")
    if unknown := set(channels) - set(CHANNELS):
        raise SettingsError(f"{min(unknown)} is not a channel.", f"Choose from {', '.join(CHANNELS)}.")
    available = {"bm25"} | ({"dense"} if index.vectors is not None else set())
    usual = [name for name in CHANNELS if name in available]
    facts = sum(len(index.pieces(each)) for each in FACTS)
    if kind in RANKED and facts:
        available.add("pagerank")
        dense = facts >= DENSE_FACTS * len(index.pieces("chunk"))
        usual = ["pagerank"] if kind == "chunk" and dense else usual
    if missing := set(channels) - available:
        why = "facts, and ranks chunks or entities" if "pagerank" in missing else "an embedding model"
        raise SettingsError(f"The channel {max(missing)} needs {why}.")
    chosen = [name for name in CHANNELS if name in (channels or usual)]
    opened = [_ranker(index, kind, name, pagerank) for name in chosen]
    fused = FusedRanker(opened, [weights.get(name, 1.0) for name in chosen])
    return RowRetriever(index.pieces(kind), opened[0] if len(opened) == 1 else fused)


def _ranker(index: CorpusIndex, kind: PieceKind, channel: str, options: PageRankOptions) -> Ranker:
    if channel == "bm25":
        return LexicalRanker(index.bm25(kind))
    if channel == "dense":
        assert index.vectors is not None and index.encoder is not None
        return DenseRanker(index.pieces(kind), index.vectors, index.encoder)
    names = ("bm25", "dense") if index.vectors is not None else ("bm25",)
    chunks = [_ranker(index, "chunk", name, options) for name in names]
    return PageRankRanker(index, FusedRanker(chunks), kind=kind, options=options)
