"""Relation paths as pieces of a corpus: paths from the entities that a query names, with the chunks that state them.

No language model is asked: paths are compared with the query by shared words and embeddings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from kgqa.rank.prefilter import prefilter
from kgqa.rank.tournaments.chooser import text_similarity
from kgqa.search.beam import BeamSettings, HopResult, RankCandidates, explore
from kgqa.search.linking import Mention, find_mentions
from kgqa.search.masking import drop_mentions
from kgqa.storage.cache import Cache
from kgqa.text.words import relation_words
from kgqa.trace.trace import Trace

PATH = "urn:kgqa:path:"
"""Prefix of the IRIs of paths."""
Walk = tuple[Value, ...]


DEPTH = 2
"""Most hops of a path."""
TOPICS = 5
"""Most entities at which paths start."""
SHOWN = 3
"""How many walks of a path, the closest to the query, are in its piece."""
PATHS = 50
"""How many paths give their chunks to a ranking of chunks."""
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
        trace: Trace | None = None,
        beam: int = 20,
        walks: int = 20,
        compared: int = 32,
    ) -> None:
        """Prepare the retriever.

        Args:
            graph: The view of the graph in which paths are searched, such as `facts`.
            index: The index of the corpus.
            encoder: The embedding model; None to compare by words only.
            trace: The trace of the question, if `graph` is charged to one; the search for paths is recorded in it.
            beam: How many paths of each length are kept and extended.
            walks: How many walks of a path are looked up.
            compared: How many walks are compared with the query by embeddings.
        """
        self._trace = trace or Trace()
        self._graph = graph if trace else graph.for_question(self._trace)
        self._index = index
        self._encoder = encoder
        self._beam = beam
        self._limits = (walks, compared)

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best paths for each query; see `Retriever`."""
        return [self._search(query)[:k] for query in queries]

    def _search(self, query: str) -> list[Piece]:
        mentions: list[Mention] = []
        if query.strip():
            mentions = find_mentions(self._graph, query, whole_only=True) or find_mentions(self._graph, query)
        topics = list(dict.fromkeys(mention.matches[0].entity for mention in mentions))[:TOPICS]
        asked = drop_mentions(query, [mention.text for mention in mentions])

        def best(pool: Sequence[Candidate]) -> list[Candidate]:
            return prefilter(asked, pool, keep=self._beam, encoder=self._encoder)

        hops = explored(self._graph, topics, DEPTH, best, best, self._trace)
        paths = list(dict.fromkeys(candidate for hop in hops for candidate in hop.shortlist))
        return path_pieces(self._graph, paths, query, self._index, self._encoder, *self._limits)


def explored(
    graph: KnowledgeGraph,
    topics: Iterable[Entity],
    depth: int,
    best: RankCandidates,
    win: RankCandidates,
    trace: Trace,
) -> list[HopResult]:
    """Search for paths from topics hop by hop (see `beam.explore`); nothing if the first hop takes too long."""
    settings = BeamSettings(depth=depth, mediator_hop="free", kinds=False)
    start = [Candidate(RelationPath(topic)) for topic in topics]
    try:
        return explore(graph, start, settings, prefilter=best, tournament=win, trace=trace)
    except StoreTimeout:
        return []


def path_pieces(
    graph: KnowledgeGraph,
    paths: Sequence[Candidate],
    query: str,
    index: CorpusIndex,
    encoder: CachedEncoder | None,
    limit: int = 20,
    compared: int = 32,
) -> list[Piece]:
    """Return paths as pieces, those with a walk close to the query first, equal ones in the order of their IRIs."""
    failures = (StoreTimeout, PartialResult, QueryRejected)
    found = graph.paths.walks(paths, limit=limit, tolerated=failures) if paths else []
    walks = [(path, walk) for path, each in zip(paths, found) if not isinstance(each, Exception) for walk in each]
    triples = [_triples(path, walk) for path, walk in walks]
    names = {each.value: each.name for each in graph.named({node for _, walk in walks for node in walk})}
    texts = [_words(each, names, graph) for each in triples]
    best: dict[Candidate, list[int]] = {}
    scores = _similarity(query, texts, encoder, compared)
    for at in sorted(range(len(walks)), key=lambda at: (-scores[at], texts[at])):
        if scores[at] > 0:
            best.setdefault(walks[at][0], []).append(at)
    pieces = []
    for path, places in best.items():
        shown = places[:SHOWN]
        kept = list(dict.fromkeys(triple for at in shown for triple in triples[at]))
        text = " | ".join(dict.fromkeys(texts[at] for at in shown))
        steps = (f"{step.direction} {step.relation}" for step in path.path.steps)
        iri = f"{PATH}{digest(path.path.topic.iri, *steps, length=24)}"
        pieces.append(Piece(iri, "path", text, float(scores[places[0]]), _spans(kept, index), tuple(kept)))
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
    if not texts:
        return np.zeros(0)
    scores = text_similarity(None)(query, texts)
    if encoder is None:
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

    def __init__(self, paths: PathRetriever, index: CorpusIndex) -> None:
        self._paths = paths
        self._chunks = index.pieces("chunk")

    def search(self, queries: Sequence[str], k: int) -> list[list[Piece]]:
        """Find the best chunks for each query; see `Retriever`."""
        found = []
        for paths in self._paths.search(queries, PATHS):
            scores: dict[str, float] = {}
            for path in paths:  # best first
                for span in path.spans:
                    scores.setdefault(span.chunk, path.score)
            ordered = sorted(scores.items(), key=lambda each: (-each[1], each[0]))
            found.append([piece for iri, score in ordered if (piece := self._chunks.get(iri, score))][:k])
        return found
