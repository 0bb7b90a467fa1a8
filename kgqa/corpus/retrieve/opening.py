"""Opens retrievers on the index of a corpus."""

from __future__ import annotations

from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.retrieve.lexical import LexicalRetriever
from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.model import PieceKind


def open_retriever(index: CorpusIndex, kind: PieceKind = "chunk") -> Retriever:
    """Return the retriever of one kind of pieces."""
    return LexicalRetriever(index.pieces(kind), index.bm25(kind))
