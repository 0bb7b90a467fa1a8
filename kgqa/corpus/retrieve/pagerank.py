"""Retrieval by personalised PageRank over facts and mentions (after HippoRAG 2, Gutiérrez et al. 2025)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kgqa.corpus.index.best_rows import best_rows
from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.retrieve.dense import DenseRetriever
from kgqa.corpus.retrieve.retriever import Ranking, RankingRetriever
from kgqa.model import Piece, PieceKind
from kgqa.rank.fusion import RRF_K

TOLERANCE = 1e-7
_FACT_DEPTH = 100


@dataclass(frozen=True, slots=True)
class PageRankOptions:
    """Settings of PageRank.

    Attributes:
        damping: The probability of a further step; else the walk starts again.
        facts: How many facts, the closest to the query, the walks start from.
        fact_words: Weight of the shared words (BM25, 0 to 1) beside the cosine, when facts are compared with the query.
        chunk_share: The share of walks that start from chunks instead of entities.
        chunks: How many chunks, the closest to the query, the walks start from.
    """

    damping: float = 0.5
    facts: int = 5
    fact_words: float = 0.2
    chunk_share: float = 0.5
    chunks: int = 500

    def __post_init__(self) -> None:
        if not (0 < self.damping < 1 and 0 <= self.chunk_share <= 1 and self.facts >= 0 and self.chunks >= 0):
            raise ValueError(f"invalid settings of PageRank: {self}")


DEFAULT_OPTIONS = PageRankOptions()


class PageRankRetriever:
    """Ranks chunks, or entities, by how often random walks visit them that start close to the query.

    Walks start at the entities of the facts that are closest to the query, the more often the better the fact fits and
    the fewer chunks mention the entity, and at the chunks that another retriever finds, the more often the better their
    rank. They go along facts, mentions and similar names.
    """

    def __init__(
        self,
        index: CorpusIndex,
        chunks: RankingRetriever,
        *,
        kind: PieceKind = "chunk",
        options: PageRankOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Prepare the retriever.

        Args:
            index: The index.
            chunks: The retriever that finds the chunks from which walks start.
            kind: What is ranked: `chunk` or `entity`.
            options: The settings.
        """
        self._index = index
        self._chunks = chunks
        self._kind: PieceKind = kind
        self._options = options
        self._facts: DenseRetriever | None = None
        if index.vectors is not None and index.encoder is not None:
            self._facts = DenseRetriever(index.pieces("statement"), index.vectors, index.encoder)

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best pieces for each query; see `Retriever`."""
        pieces = self._index.pieces(self._kind)
        return [[pieces.piece(row, score) for row, score in rows] for rows in self._rows(queries, k)]

    def rank(self, queries: Sequence[str], k: int) -> list[Ranking]:
        iris = self._index.pieces(self._kind).iris
        return [[(iris[row], score) for row, score in rows] for rows in self._rows(queries, k)]

    def piece(self, iri: str, score: float) -> Piece | None:
        return self._index.pieces(self._kind).get(iri, score)

    def _rows(self, queries: Sequence[str], k: int) -> list[list[tuple[int, float]]]:
        graph = self._index.graph
        if not queries or not len(self._index.pieces(self._kind)):
            return [[] for _ in queries]
        starts = self._starts(queries)
        visited = starts * (1 - self._options.damping)
        for _ in range(math.ceil(math.log(TOLERANCE) / math.log(self._options.damping))):
            visited = self._options.damping * (graph.transitions @ visited) + (1 - self._options.damping) * starts
        part = slice(graph.entities, None) if self._kind == "chunk" else slice(graph.entities)
        scores = np.round(visited[part].T, 9)
        return [best_rows(each, k, above=0.0) for each in scores]

    def _starts(self, queries: Sequence[str]) -> np.ndarray:
        """Return the distribution from which the walks of each query start, of shape (nodes, queries)."""
        graph, share = self._index.graph, self._options.chunk_share
        starts = np.zeros((graph.entities + graph.chunks, len(queries)))
        found = self._chunks.rank(queries, self._options.chunks) if share else [[] for _ in queries]
        table = self._index.pieces("chunk")
        for column, (facts, chunks) in enumerate(zip(self._best_facts(queries), found)):
            entities = self._entities(facts)
            ranked = {
                row: RRF_K / (RRF_K + rank)
                for rank, (iri, _) in enumerate(chunks)
                if (row := table.row(iri)) is not None
            }
            for nodes, part, first in ((entities, 1 - share, 0), (ranked, share, graph.entities)):
                total = sum(nodes.values())
                for row, weight in nodes.items():
                    starts[first + row, column] = part * weight / total
        return starts

    def _entities(self, facts: Sequence[tuple[int, float]]) -> dict[int, float]:
        """Return the entities of facts with their weights: the mean score of an entity's facts over its mentions."""
        graph = self._index.graph
        scores: dict[int, list[float]] = {}
        for row, score in facts:
            for node in {int(node) for node in graph.facts[row]} - {-1}:
                scores.setdefault(node, []).append(score)
        return {node: sum(each) / len(each) / max(1, graph.mentions[node]) for node, each in scores.items()}

    def _best_facts(self, queries: Sequence[str]) -> Iterable[list[tuple[int, float]]]:
        """Yield the rows and scores of the facts that are closest to each query."""
        table, words = self._index.pieces("statement"), self._index.bm25("statement")
        close = self._facts.rank(queries, _FACT_DEPTH) if self._facts is not None else [None for _ in queries]
        for query, ranking in zip(queries, close):
            shared = words.scores(query)
            shared /= max(float(shared.max(initial=0.0)), 1e-9)
            if ranking is None:
                yield best_rows(shared, self._options.facts, above=0.0)
                continue
            found = [(row, score) for iri, score in ranking if (row := table.row(iri)) is not None]
            rows = [row for row, _ in found]
            scores = np.array([score for _, score in found]) + self._options.fact_words * shared[rows]
            yield [(rows[at], score) for at, score in best_rows(np.round(scores, 6), self._options.facts, above=0.0)]
