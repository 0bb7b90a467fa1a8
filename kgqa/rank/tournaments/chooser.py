"""The `Chooser` protocol for deciding between candidates, and choosers that need no language model."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np

from kgqa.model import Candidate
from kgqa.rank.embedding.encoder import CachedEncoder, cosines
from kgqa.rank.lexical import bm25

Acceptance = Literal["yes", "no", "unparsed"]
Scorer = Callable[[str, Sequence[Candidate]], np.ndarray]
"""Maps a question and n candidates to n scores, float64; higher is better, NaN means no score."""
TextScorer = Callable[[str, Sequence[str]], np.ndarray]
"""Maps a question and n strings to n scores, float64; higher is better."""

NEITHER: Final = 2
"""The preference of a chooser that finds neither candidate of a pair useful: both lose."""
ACCEPT_AT = 1e-6
_UNIT_53 = 2**-53


@dataclass(frozen=True, slots=True)
class EntityGroup:
    """Entities that one path reaches, for entity pruning (thesis, section 3.3.1).

    Attributes:
        prefix: The path in words, as shown to a language model.
        entities: The entities' names.
    """

    prefix: str
    entities: tuple[str, ...]


class AnsweringPick(list[int]):
    """The indices of entities that answer the question, so that the search can stop."""


class Chooser(Protocol):
    """Decides between candidates for a question; each call is a batch of independent decisions, one for each item.

    Decisions may contradict each other. An empty pick is a decision that no candidate is useful. `name` is the
    chooser's name in messages.
    """

    name: str

    def prefer(self, question: str, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[int]:
        """Return one number per pair.

        1: the first is better; -1: the second is better; `NEITHER`: neither is useful; 0: a tie or an unusable reply.
        """
        ...

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int] | None]:
        """Return each chunk's best candidates, at most `k` indices, best first; [] if none is useful.

        None stands for an unusable reply.
        """
        ...

    def pick_grouped(self, question: str, chunks: Sequence[Sequence[EntityGroup]], k: int) -> list[list[int] | None]:
        """Return each chunk's best entities, at most `k` indices, best first, as `pick` does.

        Indices start at 0 and run through all groups of a chunk, in order. Entities that answer the question are
        returned as an `AnsweringPick`, of any length.
        """
        ...

    def score(self, question: str, candidates: Sequence[Candidate], *, batch_size: int | None = None) -> np.ndarray:
        """Score candidates, float64 of shape (len(candidates),); higher is better, NaN means an unusable reply.

        `batch_size` is the number of candidates per prompt; if None, the chooser decides.
        """
        ...

    def accept(self, question: str, batches: Sequence[Sequence[Candidate]]) -> list[Acceptance]:
        """Decide whether each batch of evidence is enough to answer the question."""
        ...


def text_similarity(encoder: CachedEncoder | None) -> TextScorer:
    """Return a function that scores texts by the cosine between a text's vector and the question's vector.

    Without an encoder, texts are scored by BM25, scaled so that the best text scores 1.
    """

    def score(question: str, texts: Sequence[str]) -> np.ndarray:
        if texts and encoder is None:
            scores = bm25(question, texts)
            return scores / scores.max() if scores.max() > 0 else scores
        return cosines(encoder, question, texts)

    return score


class ScoringChooser:
    """A chooser that bases every decision on one score per candidate; higher is better, equal scores are ties.

    Args:
        scorer: Scores candidates. A batch is scored in one call, so a score may depend on the other candidates.
        name: Name of the chooser in messages.
        texts: Scores the strings that describe grouped entities, which are not candidates; None for BM25.
        accept_at: Evidence is accepted if the score of its best candidate is not below this value.
    """

    def __init__(
        self, scorer: Scorer, name: str, *, texts: TextScorer | None = None, accept_at: float = ACCEPT_AT
    ) -> None:
        self.name = name
        self._scorer = scorer
        self._texts = texts or text_similarity(None)
        self._accept_at = accept_at

    def score(self, question: str, candidates: Sequence[Candidate], *, batch_size: int | None = None) -> np.ndarray:
        return np.asarray(self._scorer(question, candidates), dtype=np.float64) if candidates else np.zeros(0)

    def prefer(self, question: str, pairs: Sequence[tuple[Candidate, Candidate]]) -> list[int]:
        every = list(dict.fromkeys(each for pair in pairs for each in pair))
        score_of = dict(zip(every, self.score(question, every).tolist()))
        # 0 if one of the scores is NaN
        return [int(score_of[one] > score_of[other]) - int(score_of[one] < score_of[other]) for one, other in pairs]

    def pick(self, question: str, chunks: Sequence[Sequence[Candidate]], k: int) -> list[list[int] | None]:
        scores = self.score(question, [candidate for chunk in chunks for candidate in chunk])
        return [_best(part, k) for part in _split(scores, [len(chunk) for chunk in chunks])]

    def pick_grouped(self, question: str, chunks: Sequence[Sequence[EntityGroup]], k: int) -> list[list[int] | None]:
        texts = [[f"{group.prefix} {entity}" for group in chunk for entity in group.entities] for chunk in chunks]
        flat = [text for chunk in texts for text in chunk]
        scores = np.asarray(self._texts(question, flat), dtype=np.float64) if flat else np.zeros(0)
        return [_best(part, k) for part in _split(scores, [len(chunk) for chunk in texts])]

    def accept(self, question: str, batches: Sequence[Sequence[Candidate]]) -> list[Acceptance]:
        scores = self.score(question, [candidate for batch in batches for candidate in batch])
        return [self._acceptance(part) for part in _split(scores, [len(batch) for batch in batches])]

    def _acceptance(self, scores: np.ndarray) -> Acceptance:
        known = scores[~np.isnan(scores)]
        if len(scores) and not len(known):
            return "unparsed"
        return "yes" if len(known) and known.max() >= self._accept_at else "no"


class RandomChooser(ScoringChooser):
    """A baseline with random scores from 0 to 1; seed, question and candidate determine a score.

    By default, all evidence is accepted; with `accept_at`, a candidate is accepted with probability 1 - accept_at.
    """

    def __init__(self, seed: int = 0, *, accept_at: float = 0.0) -> None:
        super().__init__(
            lambda question, candidates: random_scores(
                str(seed), question, [f"{c.words}\0{c.path!r}" for c in candidates]
            ),
            "chance",
            texts=lambda question, texts: random_scores(str(seed), question, texts),
            accept_at=accept_at,
        )


def random_scores(seed: str, question: str, texts: Sequence[str]) -> np.ndarray:
    """Draw a number from 0 to 1 for each text, float64 of shape (len(texts),); seed, question and text determine it."""
    inputs = [f"{seed}\0{question}\0{text}".encode("utf-8", "surrogatepass") for text in texts]
    digests = [hashlib.blake2b(each, digest_size=8).digest() for each in inputs]
    return np.array([(int.from_bytes(digest) >> 11) * _UNIT_53 for digest in digests])


def _best(scores: np.ndarray, k: int) -> list[int] | None:
    return [int(i) for i in np.argsort(-scores, kind="stable")[:k]]  # NaN comes last


def _split(scores: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    return np.split(scores, np.cumsum(sizes)[:-1]) if sizes else []
