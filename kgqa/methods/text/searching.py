"""Retrieval for one question over a corpus: opens retrievers by name, and records what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.errors import PartialResult, QueryRejected, StoreCrashed, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.resources import Resources
from kgqa.methods.text.declarations import RETRIEVERS
from kgqa.methods.text.path_pieces import with_paths
from kgqa.model import Piece, PieceKind
from kgqa.trace import GaveUp, Retrieved
from kgqa.trace.trace import Trace

T = TypeVar("T")
BYTES_PER_TOKEN = 4


@dataclass
class TextSearch:
    """The retrievers of one question.

    Attributes:
        resources: The resources of the run, with a corpus.
        trace: The trace of the question.
        corpus: The corpus.
        graph: Its graph, charged to the question.
    """

    resources: Resources
    trace: Trace
    corpus: Corpus = field(init=False)
    graph: KnowledgeGraph = field(init=False)
    _opened: dict[tuple[PieceKind, str], Retriever] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        assert isinstance(self.resources.corpus, Corpus)
        self.corpus = self.resources.corpus
        self.graph = self.resources.graph.for_question(self.trace)

    def search(
        self,
        queries: Sequence[str],
        k: int,
        *,
        kind: PieceKind = "chunk",
        retriever: str = "best",
        steps: Sequence[int] = (),
        channel: str = "",
    ) -> list[list[Piece]]:
        """Find the best pieces of one kind for each query, and record them as `Retrieved` events.

        Args:
            queries: The queries.
            k: How many pieces are found for each of them.
            kind: The kind of pieces.
            retriever: A key of `RETRIEVERS`; `paths` only for chunks, `pagerank` only for chunks and entities.
            steps: The number of the sub-question of each query; empty for the question itself.
            channel: The name of the channel in the events.

        Raises:
            SettingsError: The index has no such retriever.
            StoreError: The graph failed.
            BudgetExhausted: The question's budget is spent.
        """
        if not queries:
            return []
        if (kind, retriever) not in self._opened:
            opened = self.corpus.retriever(kind, RETRIEVERS[retriever])
            if retriever == "paths":
                opened = with_paths(opened, self.graph, self.corpus.index, self.resources.encoder, trace=self.trace)
            self._opened[kind, retriever] = opened
        return self.record(queries, self._opened[kind, retriever].search(queries, k), steps, channel)

    def record(
        self, queries: Sequence[str], found: list[list[Piece]], steps: Sequence[int] = (), channel: str = ""
    ) -> list[list[Piece]]:
        """Record what was found for each query as `Retrieved` events, and return it; arguments as in `search`."""
        for query, pieces, step in zip(queries, found, steps or [0] * len(queries)):
            iris = tuple(piece.iri for piece in pieces)
            self.trace.record(Retrieved(query=query, pieces=iris, step=step, channel=channel))
        return found

    def tolerant(self, search: Callable[[], list[T]]) -> list[T]:
        """Return what a search of the graph finds; nothing, with an event, if a query fails or takes too long.

        Passages are found without the graph, so an answer does not depend on it.
        """
        try:
            return search()
        except (StoreTimeout, PartialResult, QueryRejected, StoreCrashed) as error:
            self.trace.remaining()  # raises BudgetExhausted if it is the time of the question that is over
            self.trace.record(GaveUp(error=str(error)))
            return []

    def count(self, kind: PieceKind) -> int:
        """Return how many pieces of a kind the index contains."""
        return len(self.corpus.index.pieces(kind))


@contextmanager
def within_budget(trace: Trace) -> Iterator[None]:
    """Raise `BudgetExhausted` in place of a timeout of the graph, if it is the time of the question that is over."""
    try:
        yield
    except StoreTimeout:
        trace.remaining()
        raise


def within_tokens(pieces: Sequence[Piece], tokens: int) -> list[Piece]:
    """Return the first pieces that have about this many tokens together; at least one."""
    kept: list[Piece] = []
    for piece in pieces:
        tokens -= len(piece.text.encode()) // BYTES_PER_TOKEN
        if kept and tokens < 0:
            break
        kept.append(piece)
    return kept
