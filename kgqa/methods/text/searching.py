"""Retrieval for one question over a corpus: opens retrievers by name, and records what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from kgqa.corpus.corpus import Corpus
from kgqa.corpus.retrieve.retriever import Retriever
from kgqa.errors import PartialResult, QueryRejected, StoreCrashed, StoreTimeout
from kgqa.graph.graph import KnowledgeGraph
from kgqa.methods.resources import Resources
from kgqa.methods.text.path_pieces import with_paths
from kgqa.methods.text.retriever_names import RETRIEVERS
from kgqa.model import Piece, PieceKind
from kgqa.trace import GaveUp, Retrieved
from kgqa.trace.trace import Trace

BYTES_PER_TOKEN = 4


class TextSearch:
    """The retrievers of one question.

    Args:
        resources: The resources of the run, with a corpus.
        trace: The trace of the question.
    """

    def __init__(self, resources: Resources, trace: Trace) -> None:
        assert isinstance(resources.corpus, Corpus)
        self.corpus = resources.corpus
        self.graph: KnowledgeGraph = resources.graph.for_question(trace)
        self.encoder = resources.encoder
        self._trace = trace
        self._opened: dict[tuple[PieceKind, str], Retriever] = {}

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
        return self.record(queries, self._retriever(kind, retriever).search(queries, k), steps, channel)

    def record(
        self, queries: Sequence[str], found: list[list[Piece]], steps: Sequence[int] = (), channel: str = ""
    ) -> list[list[Piece]]:
        """Record what was found for each query as `Retrieved` events, and return it; arguments as in `search`."""
        for number, (query, pieces) in enumerate(zip(queries, found)):
            iris = tuple(piece.iri for piece in pieces)
            step = steps[number] if steps else 0
            self._trace.record(Retrieved(query=query, pieces=iris, step=step, channel=channel))
        return found

    def tolerant(self, search: Callable[[], list[Piece]]) -> list[Piece]:
        """Return what a search of the graph finds; nothing, with an event, if a query fails or takes too long.

        Passages are found without the graph, so an answer does not depend on it.
        """
        try:
            return search()
        except (StoreTimeout, PartialResult, QueryRejected, StoreCrashed) as error:
            self._trace.remaining()  # raises BudgetExhausted if it is the time of the question that is over
            self._trace.record(GaveUp(error=str(error)))
            return []

    def count(self, kind: PieceKind) -> int:
        """Return how many pieces of a kind the index contains."""
        return len(self.corpus.index.pieces(kind))

    def _retriever(self, kind: PieceKind, name: str) -> Retriever:
        if (kind, name) not in self._opened:
            opened = self.corpus.retriever(kind, RETRIEVERS[name])
            if name == "paths":
                opened = with_paths(opened, self.graph, self.corpus.index, self.encoder, trace=self._trace)
            self._opened[kind, name] = opened
        return self._opened[kind, name]


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
