"""A small trained ranker that scores paths from embeddings of relations, without embeddings of whole paths.

The score of a path with steps s1, ..., sn is cosine(Wq q, W1 x1 + W2 mean(x2, ..., xn)), plus a bias if n is 1. Here q
is the vector of the question without the topic's mention, and xi is the sum of two vectors: one for the step's relation
in words, one for the step's direction. Training starts with identity matrices for Wq, W1 and W2, and changes these
matrices, the two direction vectors and the bias; the embedding model stays fixed. A step is one edge, so a path through
a mediator has two steps. The formula uses the mean of the steps after the first, because their sum would outweigh the
first step in a long path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.model import Candidate, RelationPath, Step
from kgqa.rank.embedding.encoder import CachedEncoder, cosines
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.loading import parse_json, read_bytes

MAX_BYTES = 128 << 20
_ROWS = 512  # path vectors per block; a block of this size fits into the processor's cache


class _Header(msgspec.Struct):
    """The first line of a ranker's file; the values follow it, 16 bits each."""

    size: Annotated[int, Meta(ge=1, le=4096)]
    embeddings: str
    one_step_bias: Annotated[float, Meta(ge=-1e6, le=1e6)]
    kind: Literal["kgqa-ranker"] = "kgqa-ranker"
    version: Literal[2] = 2


def path_table(paths: Sequence[Sequence[Step]], numbers: dict[Step, int], *, width: int = 0) -> np.ndarray:
    """Return paths as rows of step numbers, int32 of shape (paths, length of the longest path), padded with -1.

    Args:
        paths: The steps of each path.
        numbers: The number of each step; new steps are added, numbered in their order.
        width: Smallest number of columns.
    """
    distinct = {id(step): step for path in paths for step in path}  # hashing a step is slow
    number_of = {key: numbers.setdefault(step, len(numbers)) for key, step in distinct.items()}
    lengths = np.array([len(path) for path in paths], dtype=np.intp)
    rows = np.full((len(paths), lengths.max(initial=width)), -1, dtype=np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = [number_of[id(step)] for path in paths for step in path]
    return rows


def directions_of(steps: Iterable[Step]) -> np.ndarray:
    """Return the directions of steps, 0 for out and 1 for in."""
    return np.array([step.direction == "in" for step in steps], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class TrainedRanker:
    """A trained ranker for vectors of length d; the formula is in the module's docstring.

    The file stores 16 bits per value.

    Attributes:
        question_map: Wq, float32 of shape (d, d).
        first_map: W1, float32 of shape (d, d).
        further_map: W2, float32 of shape (d, d).
        directions: Vectors for the directions "out" and "in", float32 of shape (2, d).
        one_step_bias: Added to the score of a path of one step.
        embeddings: Name of the embedding model on whose vectors the ranker was trained.
    """

    question_map: np.ndarray
    first_map: np.ndarray
    further_map: np.ndarray
    directions: np.ndarray
    one_step_bias: float
    embeddings: str

    @classmethod
    def identity(cls, size: int, embeddings: str) -> TrainedRanker:
        """Return an untrained ranker, with identity matrices, zero direction vectors and no bias."""
        eye = np.eye(size, dtype=np.float32)
        return cls(eye, eye, eye, np.zeros((2, size), dtype=np.float32), 0.0, embeddings)

    @property
    def size(self) -> int:
        """The length d of the embedding model's vectors."""
        return len(self.question_map)

    # --- scores

    def score(
        self,
        question_vector: np.ndarray,
        paths: Sequence[RelationPath],
        relation_vector: Callable[[Sequence[str]], np.ndarray],
    ) -> np.ndarray:
        """Score paths, float64 of shape (len(paths),); within a question, paths of different lengths are comparable.

        Args:
            question_vector: Vector of the question without the topic's mention, shape (d,).
            paths: The paths.
            relation_vector: Maps n relation IRIs to vectors of shape (n, d).
        """
        steps: dict[Step, int] = {}
        rows = path_table([path.steps for path in paths], steps)
        vectors = np.asarray(relation_vector([step.relation for step in steps]), dtype=np.float32)
        return self.score_rows(question_vector, vectors, directions_of(steps), rows)

    def score_rows(
        self, question_vector: np.ndarray, vectors: np.ndarray, directions: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Score the rows of a `path_table` from the vectors of its steps; see `score`.

        Args:
            question_vector: Vector of the question without the topic's mention, shape (d,).
            vectors: Vectors of the steps' relations, shape (steps, d).
            directions: Directions of the steps, 0 for out and 1 for in, shape (steps,).
            rows: The rows of a `path_table`.
        """
        scores = np.zeros(len(rows))
        if not rows.size:
            return scores
        query: np.ndarray = self.question_map @ np.asarray(question_vector, dtype=np.float32)
        query /= max(float(np.linalg.norm(query)), 1e-12)
        step_vectors = vectors + self.directions[directions]
        # the number -1 of a missing step refers to the last row, which is zero
        missing = np.zeros((1, self.size), dtype=np.float32)
        first = np.vstack([step_vectors @ self.first_map.T, missing])
        further = np.vstack([step_vectors @ self.further_map.T, missing])
        lengths = (rows >= 0).sum(axis=1)
        for start in range(0, len(rows), _ROWS):
            block = slice(start, start + _ROWS)
            rest = further[rows[block, 1:]].sum(axis=1) / np.maximum(lengths[block] - 1, 1)[:, None].astype(np.float32)
            paths = first[rows[block, 0]] + rest
            norms = np.sqrt(np.einsum("ij,ij->i", paths, paths))
            scores[block] = (paths @ query) / np.maximum(norms, 1e-12)
        scores[lengths == 0] = -1.0  # an empty path is the worst candidate
        biased: np.ndarray = scores + np.where(lengths == 1, self.one_step_bias, 0.0)
        return biased

    # --- files

    def save(self, path: Path) -> None:
        """Write the ranker to a file, completely or not at all.

        Raises:
            SettingsError: The file cannot be written.
        """
        header = msgspec.json.encode(_Header(self.size, self.embeddings, self.one_step_bias))
        eye = np.eye(self.size, dtype=np.float32)  # subtracted for better precision
        maps = [each - eye for each in (self.question_map, self.first_map, self.further_map)]
        values = np.concatenate([each.ravel() for each in (*maps, self.directions)]).astype("<f2")
        try:
            replace_file(Path(path), [header, b"\n", values.tobytes()])
        except OSError as error:
            raise SettingsError(f"Cannot write the ranker to {path}: {error.strerror or error}.") from error

    @classmethod
    def load(cls, path: str | Path) -> TrainedRanker:
        """Read a ranker that `save` wrote.

        Raises:
            SettingsError: The file is missing, damaged or not a ranker.
        """
        try:
            first, _, rest = read_bytes(Path(path), MAX_BYTES).partition(b"\n")
            return cls._from_values(parse_json(first, _Header), np.frombuffer(rest, dtype="<f2"))
        except FileNotFoundError:
            raise SettingsError(
                f"There is no ranker {path}.", f"Train one: kgqa rank train QUESTIONS --out {path}"
            ) from None
        except OSError as error:
            raise SettingsError(f"Cannot read the ranker {path}: {error.strerror or error}.") from error
        except ValueError as error:
            raise SettingsError(
                f"{path} is damaged or not a ranker written by `kgqa rank train` ({error}).",
                "Train the ranker again, or get another copy of the file.",
            ) from error

    @classmethod
    def _from_values(cls, header: _Header, values: np.ndarray) -> TrainedRanker:
        """Return a ranker from the values of its file. Raises ValueError for wrong values."""
        size = header.size
        if len(values) != 3 * size * size + 2 * size or not np.isfinite(values).all():
            raise ValueError("it has too many or too few values, or NaN")
        maps, directions = np.split(values.astype(np.float32), [3 * size * size])
        question_map, first_map, further_map = maps.reshape(3, size, size) + np.eye(size, dtype=np.float32)
        turns = directions.reshape(2, size)
        return cls(question_map, first_map, further_map, turns, header.one_step_bias, header.embeddings)


def ranker_scorer(
    ranker: TrainedRanker, encoder: CachedEncoder, relation_text: Callable[[str], str], share: float
) -> Callable[[str, Sequence[Candidate]], np.ndarray]:
    """Return a function that scores candidates for a question without its topic mentions.

    The score is share * head + (1 - share) * cosine, where head is the ranker's score, and cosine is that of the
    question and the words of the path, as without a ranker. The head is a cosine of the same embedding model, plus the
    bias for one step, so both are used as they are.

    Args:
        ranker: The ranker.
        encoder: The embedding model with which the ranker was trained.
        relation_text: Maps a relation's IRI to words, see `words.relation_words`.
        share: Weight of the head, 0 to 1. With 1, no path is embedded.

    Raises:
        ModelUnavailable: The ranker was trained on the vectors of a different embedding model.
    """
    if encoder.name != ranker.embeddings:
        raise ModelUnavailable(
            f"The ranker was trained with the embedding model {ranker.embeddings}, but this one is {encoder.name}.",
            f"Set rank.model to the model of the ranker, or train a ranker for {encoder.name}: kgqa rank train",
        )

    def score(question: str, candidates: Sequence[Candidate]) -> np.ndarray:
        head = ranker.score(
            encoder.encode_questions([question])[0],
            [each.path for each in candidates],
            lambda relations: encoder.encode(list(map(relation_text, relations))),
        )
        if share == 1.0:
            return head
        return share * head + (1.0 - share) * cosines(encoder, question, [each.words for each in candidates])

    return score
