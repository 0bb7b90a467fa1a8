"""Retrieval by personalised PageRank over facts and mentions (after HippoRAG 2, Gutiérrez et al. 2025)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kgqa.corpus.index.best_rows import best_rows
from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.retrieve.dense import DenseRanker
from kgqa.corpus.retrieve.rows import Hit, Ranker, RowRetriever
from kgqa.model import PieceKind

TOLERANCE = 1e-4
"""Largest share of the walks that the last step still moves."""
FACTS: tuple[PieceKind, ...] = ("statement", "hyperedge")
"""The kinds of pieces that connect entities."""
_FACTS = 100
"""Facts, the closest to the query by embeddings, among which the shared words decide."""


@dataclass(frozen=True, slots=True)
class PageRankOptions:
    """Settings of PageRank. The defaults were chosen on the MuSiQue questions of `benchmarks/retrieval.py`.

    Attributes:
        damping: The probability of a further step; else a walk starts again.
        facts: How many facts, the closest to the query, the walks start from.
        fact_words: Weight of the shared words (BM25, 0 to 1) beside the cosine, when facts are compared with the query.
        chunk_share: The share of walks that start from chunks instead of the entities of facts.
        chunks: How many chunks, the closest to the query, the walks start from.
        chunk_rank: The chunk of rank r (from 0) is started from with weight `chunk_rank` / (`chunk_rank` + r).
    """

    damping: float = 0.7
    facts: int = 5
    fact_words: float = 0.2
    chunk_share: float = 0.4
    chunks: int = 100
    chunk_rank: float = 10.0

    def __post_init__(self) -> None:
        within = 0 < self.damping < 1 and 0 <= self.chunk_share <= 1 and self.chunk_rank > 0
        if not within or self.facts < 0 or self.chunks < 0:
            raise ValueError(f"invalid settings of PageRank: {self}")


DEFAULT_OPTIONS = PageRankOptions()


class PageRankRanker:
    """Ranks chunks, or entities, by how often random walks visit them that start close to the query.

    Walks start at the entities of the facts that are closest to the query, the more often the better the fact fits and
    the fewer chunks mention the entity, and at the chunks that another ranker finds, the more often the better their
    rank. They go along facts, mentions and similar names.
    """

    def __init__(
        self,
        index: CorpusIndex,
        chunks: Ranker,
        *,
        kind: PieceKind = "chunk",
        options: PageRankOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Prepare the ranker.

        Args:
            index: The index.
            chunks: Ranks the chunks from which walks start.
            kind: What is ranked: `chunk` or `entity`.
            options: The settings.
        """
        self._graph = index.graph
        self._chunks = chunks
        self._kind = kind
        self._options = options
        kinds: list[PieceKind] = [kind for kind in FACTS if len(index.pieces(kind))]
        self._words = {kind: index.bm25(kind) for kind in kinds}
        self._first = {"statement": 0, "hyperedge": len(index.pieces("statement"))}
        self._close: dict[PieceKind, DenseRanker] = {}
        if index.vectors is not None and index.encoder is not None:
            self._close = {kind: DenseRanker(index.pieces(kind), index.vectors, index.encoder) for kind in kinds}

    def rank(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """Return the best rows for each query; see `Ranker`."""
        graph, damping = self._graph, np.float32(self._options.damping)
        starts = self._starts(queries)
        visited = starts
        for _ in range(math.ceil(math.log(TOLERANCE) / math.log(damping))):
            visited = damping * (graph.transitions @ visited) + (1 - damping) * starts
        part = slice(graph.entities, None) if self._kind == "chunk" else slice(graph.entities)
        return [best_rows(scores, k, above=0.0) for scores in np.round(visited[part].T, 9)]

    def _starts(self, queries: Sequence[str]) -> np.ndarray:
        """Return the distribution from which the walks of each query start, of shape (nodes, queries)."""
        graph, options = self._graph, self._options
        starts = np.zeros((graph.entities + graph.chunks, len(queries)), dtype=np.float32)
        found = self._chunks.rank(queries, options.chunks)
        for column, (facts, chunks) in enumerate(zip(self._best_facts(queries), found)):
            entities = self._entities(facts)
            ranked = {
                graph.entities + row: options.chunk_rank / (options.chunk_rank + rank)
                for rank, (row, _) in enumerate(chunks)
            }
            for nodes, share in ((entities, 1 - options.chunk_share), (ranked, options.chunk_share)):
                if nodes:
                    weights = np.array(list(nodes.values()))
                    starts[list(nodes), column] = share * weights / weights.sum()
        return starts

    def _entities(self, facts: Sequence[Hit]) -> Mapping[int, float]:
        """Return the entities of facts with their weights: the mean score of an entity's facts over its mentions."""
        graph = self._graph
        scores: dict[int, list[float]] = {}
        for row, score in facts:
            for node in graph.entities_of(row):
                scores.setdefault(node, []).append(score)
        return {node: sum(each) / len(each) / max(1, int(graph.mentions[node])) for node, each in scores.items()}

    def _best_facts(self, queries: Sequence[str]) -> Iterator[list[Hit]]:
        """Yield the facts that are closest to each query, by their rows in the graph."""
        options = self._options
        close = {kind: ranker.rank(queries, _FACTS) for kind, ranker in self._close.items()}
        for number, query in enumerate(queries):
            found: list[Hit] = []
            shared = {kind: words.scores(query) for kind, words in self._words.items()}
            most = max((float(scores.max()) for scores in shared.values()), default=0.0) or 1.0
            for kind, scores in shared.items():
                words = scores / most
                rows = close[kind][number] if close else best_rows(words, options.facts, above=0.0)
                found += [
                    (self._first[kind] + row, round(score + options.fact_words * float(words[row]), 6))
                    for row, score in rows
                ]
            found = [hit for hit in found if hit[1] > 0]
            yield sorted(found, key=lambda hit: (-hit[1], hit[0]))[: options.facts]


class PageRankRetriever(RowRetriever):
    """Finds chunks, or entities, by PageRank; see `PageRankRanker`."""

    def __init__(
        self,
        index: CorpusIndex,
        chunks: Ranker,
        *,
        kind: PieceKind = "chunk",
        options: PageRankOptions = DEFAULT_OPTIONS,
    ) -> None:
        super().__init__(index.pieces(kind), PageRankRanker(index, chunks, kind=kind, options=options))
