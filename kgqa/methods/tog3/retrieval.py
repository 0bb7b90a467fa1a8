"""Finds evidence for the question and its sub-questions: pieces of several kinds, as one ranking of passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from kgqa.corpus.retrieve.fused import fuse
from kgqa.corpus.snapshot import statement_iri
from kgqa.methods.resources import Resources
from kgqa.methods.text.declarations import Tog3Settings
from kgqa.methods.text.path_pieces import PathOptions, PathRetriever
from kgqa.methods.text.searching import TextSearch, within_tokens
from kgqa.methods.tog3.path_tournament import best_paths
from kgqa.model import Entity, Piece, PieceKind
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.tournaments.chooser import text_similarity
from kgqa.text.words import normalise
from kgqa.trace.trace import Trace

KINDS: tuple[PieceKind, ...] = ("chunk", "statement", "community", "path")
KEPT_TOKENS = 2048
"""About how many tokens the passages that are kept for one query have: two chunks of the published length."""
PATHS = 3
"""How many paths are kept for the question."""
PATH_POOL = 20
"""How many paths take part in the tournament."""
PATH_OPTIONS = PathOptions(beam=10, walks=10, compared=8)
"""Of the best three paths, 82% are those of the default options, in 0.75 of the time (MuSiQue, 48 questions)."""
SUMMARIES = 1
"""How many summaries are kept for one query."""
NEIGHBOURS = 30
"""Most facts of the entities that keywords name."""
WEIGHTS = (8.0, 1.0, 1.0, 1.0)
"""Weights in the ranking of passages: the retriever, the passages of facts, those of paths, similarity."""
RANK_K = 10
_DEPENDENT = ("rrf", "dense", "bm25")


@dataclass(frozen=True)
class Found:
    """What was found for a query, best first. `new`: whether any of it was not known before."""

    passages: tuple[Piece, ...] = ()
    facts: tuple[Piece, ...] = ()
    summaries: tuple[Piece, ...] = ()
    new: bool = False

    def __bool__(self) -> bool:
        return bool(self.passages or self.facts or self.summaries)


@dataclass
class EvidenceSearch:
    """Searches for the evidence of one question.

    Args:
        resources: The resources of the run.
        trace: The trace of the question.
        kinds: The kinds of pieces.
    """

    resources: Resources
    trace: Trace
    kinds: Sequence[str]
    text: TextSearch = field(init=False)

    def __post_init__(self) -> None:
        self.text = TextSearch(self.resources, self.trace)
        self._own = self.resources.settings.of(Tog3Settings)
        self._encoder: CachedEncoder | None = self.resources.encoder

    @property
    def searchable(self) -> bool:
        """Whether the corpus has pieces of one of the kinds; paths are made of statements."""
        counted: Iterable[PieceKind] = ("statement" if kind == "path" else kind for kind in KINDS if kind in self.kinds)
        return any(map(self.text.count, counted))

    def search(self, queries: Sequence[str], steps: Sequence[int]) -> list[Found]:
        """Find the best passages, facts and summaries for each query.

        Raises:
            SettingsError: The index has no such retriever.
            StoreError: The graph failed.
            BudgetExhausted: The question's budget is spent.
        """
        chunks = self._pieces("chunk", queries, steps)
        statements = self._pieces("statement", queries, steps)
        communities = self._pieces("community", queries, steps)
        paths = self._paths(queries, steps)
        found = []
        for at, query in enumerate(queries):
            facts = [*statements[at], *paths[at]]
            passages = self._ranked(query, chunks[at], statements[at], paths[at])
            kept = within_tokens(passages[: self._own.keep], KEPT_TOKENS)
            found.append(Found(tuple(kept), tuple(facts), tuple(communities[at][:SUMMARIES])))
        return found

    def nodes(self, query: str, step: int) -> list[Piece]:
        """Find the best pieces for a query among all kinds, in one ranking, as published."""
        kinds: list[PieceKind] = [kind for kind in KINDS if kind != "path"]
        found = [piece for kind in kinds for (pieces,) in (self._pieces(kind, [query], [step]),) for piece in pieces]
        return sorted(found, key=lambda piece: (-piece.score, piece.iri))[: self._own.retrieve]

    def facts_of(self, names: Sequence[str], query: str, step: int) -> list[Piece]:
        """Return the facts of the entities with the given names, at most `NEIGHBOURS`."""
        graph, table = self.text.graph, self.text.corpus.index.pieces("statement")
        wanted = [normalise(name) for name in names]
        matches = graph.names.exact(wanted) if wanted else {}
        entities = dict.fromkeys(match.entity for name in wanted for match in matches.get(name, ()))
        found: dict[str, Piece] = {}
        for entity in entities:
            for step_taken, value in graph.paths.neighbours(entity, limit=NEIGHBOURS):
                subject, end = (entity, value) if step_taken.direction == "out" else (value, entity)
                if isinstance(subject, Entity) and len(found) < NEIGHBOURS:
                    piece = table.get(statement_iri(subject.iri, step_taken.relation, end))
                    if piece is not None:
                        found[piece.iri] = piece
        return self.text.record([query], [list(found.values())], [step], "keywords")[0] if names else []

    def _pieces(self, kind: PieceKind, queries: Sequence[str], steps: Sequence[int]) -> list[list[Piece]]:
        if kind not in self.kinds or not self.text.count(kind):
            return [[] for _ in queries]
        name = self._own.retriever
        name = name if kind == "chunk" or name in _DEPENDENT else "best"
        channel = "" if kind == "chunk" else kind
        return self.text.search(queries, self._own.retrieve, kind=kind, retriever=name, steps=steps, channel=channel)

    def _paths(self, queries: Sequence[str], steps: Sequence[int]) -> list[list[Piece]]:
        """Return the best paths in the facts around the entities that the question names.

        Sub-questions name what was found last; their facts are found without paths.
        """
        if "path" not in self.kinds or any(steps) or not self.text.count("statement"):
            return [[] for _ in queries]
        retriever = PathRetriever(
            self.text.graph, self.text.corpus.index, self._encoder, options=PATH_OPTIONS, trace=self.trace
        )
        every = [self.text.tolerant(partial(_only, retriever, query)) for query in queries]
        found = self.text.record(queries, every, steps, "path")
        return [best_paths(query, each, PATHS, self.resources, self.trace) for query, each in zip(queries, found)]

    def _ranked(
        self, query: str, chunks: Sequence[Piece], statements: Sequence[Piece], paths: Sequence[Piece]
    ) -> list[Piece]:
        """Return the found chunks and those in which the found facts stand, as one ranking."""
        table = self.text.corpus.index.pieces("chunk")
        known = {piece.iri: piece for piece in chunks}
        rankings = [[piece.iri for piece in chunks], _chunks_of(statements), _chunks_of(paths)]
        for iri in dict.fromkeys(iri for ranking in rankings for iri in ranking):
            if iri not in known and (piece := table.get(iri)):
                known[iri] = piece
        rankings = [[iri for iri in ranking if iri in known] for ranking in rankings]
        if self._own.rerank == "none":
            return [known[iri] for iri in dict.fromkeys(iri for ranking in rankings for iri in ranking)]
        if self._encoder is not None:
            scores = text_similarity(self._encoder)(query, [piece.text for piece in known.values()])
            rankings.append([list(known)[at] for at in np.argsort(-scores, kind="stable")])
        scored = [[(iri, -float(rank)) for rank, iri in enumerate(ranking)] for ranking in rankings]
        return [known[iri] for iri, _ in fuse(scored, WEIGHTS[: len(scored)], RANK_K)]


def _only(retriever: PathRetriever, query: str) -> list[Piece]:
    (found,) = retriever.search([query], PATH_POOL)
    return found


def _chunks_of(pieces: Iterable[Piece]) -> list[str]:
    return list(dict.fromkeys(span.chunk for piece in pieces for span in piece.spans if span.chunk))
