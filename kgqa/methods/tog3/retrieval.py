"""Finds evidence for the question and its sub-questions: pieces of several kinds, as one ranking of passages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kgqa.corpus.retrieve.fused import fuse
from kgqa.llm.replies.indices import read_indices
from kgqa.llm.replies.reply import Reply
from kgqa.methods.evidence import Exhibits
from kgqa.methods.text.path_pieces import PathOptions, PathRetriever
from kgqa.methods.text.searching import within_tokens
from kgqa.methods.tog3.exploration import Exploration
from kgqa.model import Candidate, Entity, Piece, PieceKind, RelationPath
from kgqa.rank.tournaments.chooser import ScoringChooser, text_similarity
from kgqa.rank.tournaments.listwise import chunked

KINDS: tuple[PieceKind, ...] = ("chunk", "statement", "community", "path")
KEPT_TOKENS = 2048
"""About how many tokens the passages that are kept for one query have: two chunks of the published length."""
PATHS = 3
"""How many paths are kept for the question."""
PATH_POOL = 20
"""How many paths take part in the tournament, all at once."""
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
    """What was found for a query, best first. `new`: whether any of it was not known before."""

    passages: tuple[Piece, ...] = ()
    facts: tuple[Piece, ...] = ()
    summaries: tuple[Piece, ...] = ()
    new: bool = False

    def __bool__(self) -> bool:
        return bool(self.passages or self.facts or self.summaries)


def reworded(state: Exploration) -> list[str]:
    """Ask for other words, because nothing was found for the question; empty if none can help."""
    kinds: Iterable[PieceKind] = ("statement" if kind == "path" else kind for kind in KINDS if kind in state.kinds)
    if state.own.evolve_query == "off" or not any(map(state.search.count, kinds)):
        return []
    return state.new_questions(state.evolved(Exhibits(state.corpus)))


def search(state: Exploration, queries: Sequence[str], steps: Sequence[int]) -> list[Found]:
    """Find the best passages, facts and summaries for each query.

    Raises:
        SettingsError: The index has no such retriever.
        StoreError: The graph failed.
        BudgetExhausted: The question's budget is spent.
    """
    kinds: tuple[PieceKind, ...] = ("chunk", "statement", "community")
    chunks, statements, communities = (pieces_of(state, kind, queries, steps) for kind in kinds)
    # sub-questions name what was found last; their facts are found without paths
    paths = [_paths(state, query) if not any(steps) else [] for query in queries]
    found = []
    for at, query in enumerate(queries):
        passages = _ranked(state, query, chunks[at], statements[at], paths[at])
        kept = within_tokens(passages[: state.own.keep], KEPT_TOKENS)
        found.append(Found(tuple(kept), (*statements[at], *paths[at]), tuple(communities[at][:SUMMARIES])))
    return found


def pieces_of(state: Exploration, kind: PieceKind, queries: Sequence[str], steps: Sequence[int]) -> list[list[Piece]]:
    """Find the best pieces of one kind for each query; none if the kind is not among `tog3.kinds`."""
    if kind not in state.kinds or not state.search.count(kind):
        return [[] for _ in queries]
    name = state.own.retriever
    name = name if kind == "chunk" or name in _DEPENDENT else "best"
    channel = "" if kind == "chunk" else kind
    return state.search.search(queries, state.own.retrieve, kind=kind, retriever=name, steps=steps, channel=channel)


def _paths(state: Exploration, query: str) -> list[Piece]:
    """Return the best paths in the facts around the entities that the question names."""
    if "path" not in state.kinds or not state.search.count("statement"):
        return []
    encoder, index = state.resources.encoder, state.corpus.index
    retriever = PathRetriever(state.search.graph, index, encoder, options=PATH_OPTIONS, trace=state.trace)
    found = state.search.tolerant(lambda: retriever.search([query], PATH_POOL)[0])
    return _won(state, query, state.search.record([query], [found], [0], "path")[0])


def _won(state: Exploration, question: str, pieces: Sequence[Piece]) -> list[Piece]:
    """Return the best paths by a chunked tournament (Tournament on Path, section 3.3.1)."""
    if len(pieces) <= PATHS:
        return list(pieces)
    candidates = {Candidate(RelationPath(Entity(piece.iri)), piece.text): piece for piece in pieces}
    scores = {piece.text: piece.score for piece in pieces}
    by_model = state.own.path_chooser == "llm"
    chooser = PathChooser(state, scores) if by_model else ScoringChooser(partial(_scored, scores), "similarity")
    won = chunked(question, list(candidates), chooser, k=PATHS, chunk_size=PATH_POOL, record=state.trace.record)
    return [candidates[each] for each in won]


class PathChooser(ScoringChooser):
    """A language model that picks paths by the facts along them; other decisions are made by scores."""

    def __init__(self, state: Exploration, scores: Mapping[str, float]) -> None:
        super().__init__(partial(_scored, scores), name="facts along paths")
        self._state = state

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int] | None]:
        """Pick the best `k` candidates of each chunk; None after an unusable reply."""
        shown = [[each.words for each in chunk] for chunk in chunks]
        forms = [Reply(partial(read_indices, size=len(paths), k=k)) for paths in shown]
        prompts = [
            self._state.prompt("tog3/paths", "plan", form, paths=paths, most=k) for form, paths in zip(forms, shown)
        ]
        read = self._state.ask(prompts)
        return [None if indices is None else list(indices) for indices in read]


def _scored(scores: Mapping[str, float], question: str, candidates: Sequence[Candidate]) -> np.ndarray:
    return np.array([scores[each.words] for each in candidates])


def _ranked(
    state: Exploration, query: str, chunks: Sequence[Piece], statements: Sequence[Piece], paths: Sequence[Piece]
) -> list[Piece]:
    """Return the found chunks and those in which the found facts stand, as one ranking."""
    table = state.corpus.index.pieces("chunk")
    known = {piece.iri: piece for piece in chunks}
    rankings = [[piece.iri for piece in chunks], _chunks_of(statements), _chunks_of(paths)]
    for iri in dict.fromkeys(iri for ranking in rankings for iri in ranking):
        if iri not in known and (piece := table.get(iri)):
            known[iri] = piece
    rankings = [[iri for iri in ranking if iri in known] for ranking in rankings]
    if state.own.rerank == "none":
        return [known[iri] for iri in dict.fromkeys(iri for ranking in rankings for iri in ranking)]
    if state.resources.encoder is not None:
        scores = text_similarity(state.resources.encoder)(query, [piece.text for piece in known.values()])
        rankings.append([list(known)[at] for at in np.argsort(-scores, kind="stable")])
    scored = [[(iri, -float(rank)) for rank, iri in enumerate(ranking)] for ranking in rankings]
    return [known[iri] for iri, _ in fuse(scored, WEIGHTS[: len(scored)], RANK_K)]


def _chunks_of(pieces: Iterable[Piece]) -> list[str]:
    return list(dict.fromkeys(span.chunk for piece in pieces for span in piece.spans if span.chunk))
