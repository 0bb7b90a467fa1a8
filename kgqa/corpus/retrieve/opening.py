"""Opens retrievers on the index of a corpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.retrieve.dense import DenseRetriever
from kgqa.corpus.retrieve.fused import FusedRetriever
from kgqa.corpus.retrieve.lexical import LexicalRetriever
from kgqa.corpus.retrieve.pagerank import DEFAULT_OPTIONS, PageRankOptions, PageRankRetriever
from kgqa.corpus.retrieve.retriever import RankingRetriever
from kgqa.errors import SettingsError
from kgqa.model import PieceKind

CHANNELS = ("bm25", "dense", "pagerank")
"""How pieces are found: by words, by embeddings, by PageRank (chunks and entities only)."""
WEIGHTS = {"bm25": 1.0, "dense": 1.0, "pagerank": 8.0}
"""Weights of the channels in the fusion. The walks of PageRank start at what the other channels find, so its ranking
contains theirs."""


def open_retriever(
    index: CorpusIndex,
    kind: PieceKind = "chunk",
    channels: Sequence[str] = (),
    *,
    weights: Mapping[str, float] = {},
    pagerank: PageRankOptions = DEFAULT_OPTIONS,
) -> RankingRetriever:
    """Return the retriever of one kind of pieces.

    Args:
        index: The index.
        kind: The kind of pieces.
        channels: Some of `CHANNELS`, which are fused; empty for all that the index has, PageRank for chunks only.
        weights: Weights of channels, instead of those in `WEIGHTS`.
        pagerank: Settings of PageRank.

    Raises:
        SettingsError: There is no such channel, or the index has no vectors for it.
    """
    if unknown := set(channels) - set(CHANNELS):
        raise SettingsError(f"{min(unknown)} is not a channel.", f"Choose from {', '.join(CHANNELS)}.")
    pieces = index.pieces(kind)
    available: dict[str, Callable[[], RankingRetriever]] = {"bm25": lambda: LexicalRetriever(pieces, index.bm25(kind))}
    vectors, encoder = index.vectors, index.encoder
    if vectors is not None and encoder is not None:
        available["dense"] = lambda: DenseRetriever(pieces, vectors, encoder)
    if kind in ("chunk", "entity") and len(index.pieces("statement")):
        found = ("bm25", "dense") if "dense" in available else ("bm25",)
        available["pagerank"] = lambda: PageRankRetriever(
            index, open_retriever(index, "chunk", found), kind=kind, options=pagerank
        )
    if missing := set(channels) - available.keys():
        why = "an embedding model" if "dense" in missing else "statements about entities, and kind chunk or entity"
        raise SettingsError(f"The channel {min(missing)} needs {why}.")
    usual = available.keys() - ({"pagerank"} if kind == "entity" else set())
    chosen = [name for name in CHANNELS if name in (channels or usual)]
    opened = [available[name]() for name in chosen]
    return opened[0] if len(opened) == 1 else FusedRetriever(opened, [{**WEIGHTS, **weights}[name] for name in chosen])
