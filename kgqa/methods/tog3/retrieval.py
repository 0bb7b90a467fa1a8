"""Finds evidence for the question and its sub-questions: pieces of several kinds, as one ranking of passages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from kgqa.corpus.retrieve.fused import fuse
from kgqa.methods.evidence import Exhibits
from kgqa.methods.text.path_pieces import PathOptions, PathRetriever
from kgqa.methods.text.searching import within_tokens
from kgqa.methods.tog3.exploration import Exploration
from kgqa.model import Piece, PieceKind
from kgqa.rank.tournaments.chooser import text_similarity
from kgqa.trace import PiecesKept

KINDS: tuple[PieceKind, ...] = ("chunk", "statement", "community")
KEPT_TOKENS = 2048
"""About how many tokens the passages that are kept for one query have: two chunks of the published length."""
PATHS = 3
"""How many paths are kept for the question."""
PATH_POOL = 20
"""How many of the best paths are recorded."""
PATH_OPTIONS = PathOptions(beam=10, walks=10, compared=8)
"""Of the best three paths, 82% are those of the default options, in 0.75 of the time (MuSiQue, 48 questions)."""
SUMMARIES = 1
"""How many summaries are kept for one query."""
WEIGHTS = (8.0, 1.0, 1.0, 1.0)
"""Weights in the ranking of passages: the retriever, the passages of facts, those of paths, similarity."""
RANK_K = 10
_DEPENDENT = ("rrf", "dense", "bm25")


@dataclass(frozen=True)
class Found:
    """What was found for a query, best first. `step`: its number. `new`: whether any of it was not known before."""

    step: int
    passages: Sequence[Piece]
    facts: Sequence[Piece]
    summaries: Sequence[Piece]
    new: bool

    def __bool__(self) -> bool:
        return bool(self.passages or self.facts or self.summaries)


def reworded(state: Exploration) -> list[str]:
    """Ask for other words, because nothing was found for the question; empty if none can help."""
    kinds = [kind for kind in KINDS if kind in state.kinds or (kind == "statement" and "path" in state.kinds)]
    if state.own.evolve_query == "off" or not any(map(state.count, kinds)):
        return []
    return state.new_questions(state.evolved(Exhibits(state.corpus)))


def retrieve(state: Exploration, queries: Sequence[str], steps: Sequence[int]) -> list[Found]:
    """Find the best passages, facts and summaries for each query, and keep them in the evidence graph.

    Raises:
        SettingsError: The index has no such retriever.
        StoreError: The graph failed.
        BudgetExhausted: The question's budget is spent.
    """
    pieces = zip(*(pieces_of(state, kind, queries, steps) for kind in KINDS))
    # sub-questions name what was found last; their facts are found without paths
    paths = [_paths(state, query) if not any(steps) else [] for query in queries]
    found = []
    for query, step, (chunks, statements, communities), along in zip(queries, steps, pieces, paths):
        ranked = _ranked(state, query, chunks, statements, along)
        passages = within_tokens(ranked[: state.own.keep], KEPT_TOKENS)
        kept = (passages, [*statements, *along], communities[:SUMMARIES])
        state.trace.record(PiecesKept(step=step, pieces=tuple(piece.iri for piece in passages)))
        found.append(Found(step, *kept, new=state.subgraph.add(step, *kept)))
    return found


def pieces_of(state: Exploration, kind: PieceKind, queries: Sequence[str], steps: Sequence[int]) -> list[list[Piece]]:
    """Find the best pieces of one kind for each query; none if the kind is not among `tog3.kinds`."""
    if kind not in state.kinds or not state.count(kind):
        return [[] for _ in queries]
    name = state.own.retriever
    name = name if kind == "chunk" or name in _DEPENDENT else "best"
    channel = "" if kind == "chunk" else kind
    return state.search(queries, state.own.retrieve, kind=kind, retriever=name, steps=steps, channel=channel)


def _paths(state: Exploration, query: str) -> list[Piece]:
    """Return the best paths in the facts around the entities that the question names."""
    if "path" not in state.kinds or not state.count("statement"):
        return []
    encoder, index = state.resources.encoder, state.corpus.index
    retriever = PathRetriever(state.graph, index, encoder, options=PATH_OPTIONS, trace=state.trace)
    found = state.tolerant(lambda: retriever.search([query], PATH_POOL)[0])
    return state.record([query], [found], channel="path")[0][:PATHS]


def _ranked(
    state: Exploration, query: str, chunks: Sequence[Piece], statements: Sequence[Piece], paths: Sequence[Piece]
) -> list[Piece]:
    """Return the found chunks and those in which the found facts stand, as one ranking."""
    table = state.corpus.index.pieces("chunk")
    known = {piece.iri: piece for piece in chunks}
    rankings = [list(known), _chunks_of(statements), _chunks_of(paths)]
    known |= {iri: piece for iri in chain(*rankings) if iri not in known and (piece := table.get(iri))}
    rankings = [[iri for iri in ranking if iri in known] for ranking in rankings]
    if state.resources.encoder is not None:
        scores = text_similarity(state.resources.encoder)(query, [piece.text for piece in known.values()])
        rankings.append([list(known)[at] for at in np.argsort(-scores, kind="stable")])
    scored = [[(iri, -float(rank)) for rank, iri in enumerate(ranking)] for ranking in rankings]
    return [known[iri] for iri, _ in fuse(scored, WEIGHTS[: len(scored)], RANK_K)]


def _chunks_of(pieces: Iterable[Piece]) -> list[str]:
    return list(dict.fromkeys(span.chunk for piece in pieces for span in piece.spans if span.chunk))
