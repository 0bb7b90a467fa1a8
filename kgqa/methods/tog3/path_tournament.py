"""The tournament of evidence paths: only the best paths from the entities of a question are shown to the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from kgqa.llm.replies.indices import read_indices
from kgqa.methods.resources import Resources
from kgqa.methods.text.declarations import Tog3Settings
from kgqa.model import Candidate, Entity, Piece, RelationPath
from kgqa.rank.tournaments.chooser import ScoringChooser
from kgqa.rank.tournaments.listwise import chunked
from kgqa.trace.trace import Trace

CHUNK = 20
"""How many paths are compared at once; there are seldom more, so that a language model is asked once."""


class WalkChooser(ScoringChooser):
    """A language model that picks paths by the facts along them; other decisions are made by scores.

    Args:
        resources: The resources of the run.
        trace: The trace of the question.
        scores: The score of each path, by its words.
    """

    def __init__(self, resources: Resources, trace: Trace, scores: Mapping[str, float]) -> None:
        super().__init__(partial(_scored, scores), name="facts along paths")
        self._resources = resources
        self._trace = trace

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int] | None]:
        """Pick the best `k` candidates of each chunk; None after an unusable reply."""
        shown = [[each.words for each in chunk] for chunk in chunks]
        prompts = [
            self._resources.prompts.prompt("tog3/paths", "plan", question=question, paths=paths, most=k)
            for paths in shown
        ]
        readers = [partial(read_indices, size=len(paths), k=k) for paths in shown]
        read = self._resources.ask_model(prompts, readers, self._trace)
        return [None if indices is None else list(indices) for indices in read]


def best_paths(question: str, pieces: Sequence[Piece], k: int, resources: Resources, trace: Trace) -> list[Piece]:
    """Return at most `k` paths, best first, by a chunked tournament (Tournament on Path, section 3.3.1).

    Args:
        question: The question.
        pieces: Paths with the facts along them and their scores, best first.
        k: How many win.
        resources: `tog3.path_chooser` says who decides: the scores, or the language model.
        trace: The trace of the question, in which the matches are recorded.
    """
    if len(pieces) <= k:
        return list(pieces)
    candidates = {Candidate(RelationPath(Entity(piece.iri)), piece.text): piece for piece in pieces}
    scores = {piece.text: piece.score for piece in pieces}
    by_model = resources.settings.of(Tog3Settings).path_chooser == "llm"
    chooser = (
        WalkChooser(resources, trace, scores) if by_model else ScoringChooser(partial(_scored, scores), "similarity")
    )
    won = chunked(question, list(candidates), chooser, k=k, chunk_size=CHUNK, record=trace.record)
    return [candidates[each] for each in won]


def _scored(scores: Mapping[str, float], question: str, candidates: Sequence[Candidate]) -> np.ndarray:
    return np.array([scores[each.words] for each in candidates])
