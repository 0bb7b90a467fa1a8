"""Relation paths as pieces of a corpus: paths from the entities that a query names, with the chunks that state them.

No language model is asked: paths are compared with the query by shared words and embeddings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.index.corpus_index import CorpusIndex
from kgqa.corpus.inspection.searching import Found, sources_of
from kgqa.corpus.items import digest
from kgqa.corpus.retrieve.fused import FusedRetriever
from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.corpus.snapshot import statement_iri
from kgqa.errors import PartialResult, QueryRejected, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.graph.opening import open_graph
from kgqa.model import Candidate, Entity, Piece, RelationPath, Span, Triple, Value
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import bm25
from kgqa.rank.prefilter import prefilter
from kgqa.search.beam import BeamSettings, explore
from kgqa.search.linking import Mention, find_mentions
from kgqa.search.masking import drop_mentions
from kgqa.storage.cache import Cache
from kgqa.text.words import relation_words
from kgqa.trace.trace import Trace

PATH = "urn:kgqa:path:"
"""Prefix of the IRIs of paths."""
Walk = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class PathOptions:
    """Settings of the search for paths.

    Attributes:
        depth: Most hops of a path.
        beam: How many paths of each length are kept and extended.
        topics: Most entities at which paths start.
        walks: How many walks of a path are looked up.
        shown: How many of them, the closest to the query, are in the piece.
        compared: How many walks are compared with the query by embeddings.
    """

    depth: int = 2
    beam: int = 20
    topics: int = 5
    walks: int = 20
    shown: int = 3
    compared: int = 32


DEFAULT_OPTIONS = PathOptions()
BESIDE = (4.0, 1.0)
BESIDE_K = 10
"""Weights of another ranking of chunks and of paths in their fusion, and its constant (benchmarks/retrieval.py)."""


class PathRetriever:
    """Finds paths in the facts of a corpus that start at the entities a query names; a `Retriever`.

    The score of a path is the similarity of its best walk to the query. The spans of a piece are the places of the
    statements along its walks.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        index: CorpusIndex,
        encoder: CachedEncoder | None = None,
        *,
        options: PathOptions = DEFAULT_OPTIONS,
        trace: Trace | None = None,
    ) -> None:
        """Prepare the retriever.

        Args:
            graph: The view of the graph in which paths are searched, such as `facts`.
            index: The index of the corpus.
            encoder: The embedding model; None to compare by words only.
            options: The settings.
            trace: The trace of the question, if `graph` is charged to one; the search for paths is recorded in it.
        """
        self._graph = graph
        self._trace = trace
        self._index = index
        self._encoder = encoder
        self._options = options

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best paths for each query; see `Retriever`."""
        return [self._search(query)[:k] for query in queries]

    def _search(self, query: str) -> list[Piece]:
        trace = self._trace or Trace()
        graph = self._graph if self._trace else self._graph.for_question(trace)
        mentions: list[Mention] = []
        if query.strip():
            mentions = find_mentions(graph, query, whole_only=True) or find_mentions(graph, query)
        topics = list(dict.fromkeys(mention.matches[0].entity for mention in mentions))[: self._options.topics]
        asked = drop_mentions(query, [mention.text for mention in mentions])
        paths = self._find_paths(graph, topics, asked, trace)
        return path_pieces(graph, paths, query, self._index, self._encoder, options=self._options)

    def _find_paths(self, graph: KnowledgeGraph, topics: Sequence[Entity], asked: str, trace: Trace) -> list[Candidate]:
        """Return the paths from topics whose relations are closest to a question without its topics."""

        def best(pool: Sequence[Candidate]) -> list[Candidate]:
            return prefilter(asked, pool, keep=self._options.beam, encoder=self._encoder)

        settings = BeamSettings(depth=self._options.depth, mediator_hop="free", kinds=False)
        try:
            start = [Candidate(RelationPath(topic)) for topic in topics]
            hops = explore(graph, start, settings, prefilter=best, tournament=best, trace=trace)
        except StoreTimeout:
            return []
        return list(dict.fromkeys(candidate for hop in hops for candidate in hop.shortlist))


def path_pieces(
    graph: KnowledgeGraph,
    paths: Sequence[Candidate],
    query: str,
    index: CorpusIndex,
    encoder: CachedEncoder | None,
    *,
    options: PathOptions = DEFAULT_OPTIONS,
) -> list[Piece]:
    """Return paths as pieces, those with a walk close to the query first, equal ones in the order of their IRIs."""
    failures = (StoreTimeout, PartialResult, QueryRejected)
    found = graph.paths.walks(paths, limit=options.walks, tolerated=failures) if paths else []
    walks = [(path, walk) for path, each in zip(paths, found) if not isinstance(each, Exception) for walk in each]
    triples = [_triples(path, walk) for path, walk in walks]
    names = {each.value: each.name for each in graph.named({node for _, walk in walks for node in walk})}
    texts = [_words(each, names, graph) for each in triples]
    best: dict[Candidate, list[int]] = {}
    scores = _similarity(query, texts, encoder, options.compared)
    for at in sorted(range(len(walks)), key=lambda at: (-scores[at], texts[at])):
        if scores[at] > 0:
            best.setdefault(walks[at][0], []).append(at)
    pieces = []
    for path, places in best.items():
        kept = list(dict.fromkeys(triple for at in places[: options.shown] for triple in triples[at]))
        text = " | ".join(dict.fromkeys(texts[at] for at in places[: options.shown]))
        steps = (f"{step.direction} {step.relation}" for step in path.path.steps)
        iri = f"{PATH}{digest(path.path.topic.iri, *steps, length=24)}"
        score = float(scores[places[0]])
        pieces.append(Piece(iri, "path", text, score, _spans(kept, index), tuple(kept)))
    return sorted(pieces, key=lambda piece: (-piece.score, piece.iri))


def _triples(path: Candidate, walk: Walk) -> list[Triple]:
    along = path.path.triples_along(walk)
    return [Triple(subject, relation, value) for subject, relation, value in along if isinstance(subject, Entity)]


def _words(triples: Iterable[Triple], names: dict[Value, str], graph: KnowledgeGraph) -> str:
    labels = graph.tables.relation_labels
    parts = (
        f"{names[each.subject]} {relation_words(each.relation, graph.schema, labels)} {names[each.object]}"
        for each in triples
    )
    return "; ".join(parts)


def _similarity(query: str, texts: Sequence[str], encoder: CachedEncoder | None, compared: int) -> np.ndarray:
    """Return the similarity of each text to the query, 0 for texts that the shared words rank too low to compare."""
    scores = bm25(query, texts) if texts else np.zeros(0)
    scores = scores / max(float(scores.max(initial=0.0)), 1e-9)
    if encoder is None or not texts:
        return scores
    kept = np.argsort(-scores, kind="stable")[:compared]
    cosines = encoder.encode_once([texts[at] for at in kept]) @ encoder.encode_questions([query])[0]
    found = np.zeros(len(texts))
    found[kept] = np.round(np.maximum(cosines, 0.0), 6)
    return found


def _spans(triples: Iterable[Triple], index: CorpusIndex) -> tuple[Span, ...]:
    """Return the places of the statements and hyperedges that triples belong to."""
    spans: dict[Span, None] = {}
    for triple in triples:
        iri = statement_iri(triple.subject.iri, triple.relation, triple.object)
        stated = index.pieces("statement").get(iri) or index.pieces("hyperedge").get(triple.subject.iri)
        spans.update(dict.fromkeys(stated.spans if stated else ()))
    return tuple(spans)


def search_paths(
    folder: Path | str, text: str, *, k: int = 10, encoder: Any = None, cache: Cache | None = None
) -> Found:
    """Find paths in the facts of a corpus folder once, for the command line; see `search_corpus`.

    Raises:
        CorpusError: There is no corpus.
        StoreError: Its graph cannot be opened.
    """
    with Corpus.open(folder, encoder=encoder, cache=cache) as corpus, open_graph(folder, cache=cache) as graph:
        (pieces,) = PathRetriever(graph, corpus.index, encoder).search([text], k)
        return Found(tuple(pieces), sources_of(pieces, corpus), (*corpus.index.notes, *graph.tables.notes))


def with_paths(
    chunks: Retriever,
    graph: KnowledgeGraph,
    index: CorpusIndex,
    encoder: CachedEncoder | None = None,
    *,
    trace: Trace | None = None,
) -> Retriever:
    """Return a retriever of chunks that fuses the ranking of another one with the chunks along paths."""
    paths = PathChunkRetriever(PathRetriever(graph, index, encoder, trace=trace), index)
    return FusedRetriever([chunks, paths], BESIDE, BESIDE_K)


class PathChunkRetriever:
    """Finds the chunks in which the statements along the best paths stand, each with the score of its best path.

    A `Retriever`.
    """

    def __init__(self, paths: PathRetriever, index: CorpusIndex, *, depth: int = 50) -> None:
        """Prepare the retriever.

        Args:
            paths: Finds the paths.
            index: The index of the corpus.
            depth: How many paths give their chunks.
        """
        self._paths = paths
        self._index = index
        self._depth = depth

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best chunks for each query; see `Retriever`."""
        return [self._chunks(paths)[:k] for paths in self._paths.search(queries, self._depth)]

    def _chunks(self, paths: Sequence[Piece]) -> list[Piece]:
        scores: dict[str, float] = {}
        for path in paths:
            for span in path.spans:
                scores[span.chunk] = max(scores.get(span.chunk, 0.0), path.score)
        table = self._index.pieces("chunk")
        ordered = sorted(scores.items(), key=lambda each: (-each[1], each[0]))
        return [piece for iri, score in ordered if (piece := table.get(iri, score))]
