"""A small trained ranker over frozen sentence embeddings: no path is embedded when a question is asked.

The score of a path of steps s1, ..., sn is cosine(Wq q, W1 x1 + W2 mean(x2, ..., xn)), plus a bias where n is 1;
q is the vector of the question without its topic's mention, xi that of the relation's words plus a vector for the
direction. Three square maps, which began as the identity, are all that was learned but for these. Steps count
edges: a mediator's exit is the second. Beyond two edges the further ones share W2 by their mean, not their sum, so
that a long path is not all its end.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.model import Candidate, RelationPath, Step
from kgqa.rank.embedding.encoder import CachedEncoder

MAGIC = "kgqa-ranker"
VERSION = 1
MAX_BYTES = 64 << 20
MAX_SIZE = 4096
MAX_BIAS = 1e6
MAX_VALUE = 1e5
"""Of what 16 bits can hold, and a little more, so that no score overflows."""
_ROWS = 512  # a block of path vectors stays in the processor's cache
_ARRAYS = ("question_map", "first_map", "further_map", "directions")
# what zipfile, zlib, json and numpy raise when they read something else than they wrote
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    LookupError,
    ValueError,
    TypeError,
    EOFError,
    MemoryError,
    RuntimeError,
)


@dataclass(frozen=True)
class PathTable:
    """Paths by number: `steps` are the distinct ones, `rows` an int32 array (paths, longest), padded with -1."""

    steps: tuple[Step, ...]
    rows: np.ndarray

    @classmethod
    def of(cls, paths: Sequence[RelationPath]) -> PathTable:
        numbers: dict[Step, int] = {}
        seen: dict[int, int] = {}  # the same object again need not be hashed again
        flat: list[int] = []
        for path in paths:
            for step in path.steps:
                number = seen.get(id(step))
                if number is None:
                    number = seen[id(step)] = numbers.setdefault(step, len(numbers))
                flat.append(number)
        lengths = np.array([len(path.steps) for path in paths], dtype=np.intp)
        rows = np.full((len(paths), lengths.max(initial=0)), -1, dtype=np.int32)
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = flat
        return cls(tuple(numbers), rows)


@dataclass(frozen=True, eq=False)
class TrainedRanker:
    """Maps of shape (d, d), `directions` of shape (2, d) for out and in, all float32; `embeddings` names the model
    whose vectors of length d they were trained on. What the file keeps has 16 bits, and so has what is used.
    """

    question_map: np.ndarray
    first_map: np.ndarray
    further_map: np.ndarray
    directions: np.ndarray
    one_step_bias: float
    embeddings: str

    @classmethod
    def identity(cls, size: int, embeddings: str) -> TrainedRanker:
        """A ranker that has learned nothing: the cosine of the question and the sum of the relations' vectors."""
        eye = np.eye(size, dtype=np.float32)
        return cls(eye, eye, eye, np.zeros((2, size), dtype=np.float32), 0.0, embeddings)

    @property
    def size(self) -> int:
        """The length of the vectors it takes."""
        return len(self.question_map)

    # --- scores

    def score(
        self,
        question_vector: np.ndarray,
        paths: Sequence[RelationPath],
        relation_vector: Callable[[Sequence[str]], np.ndarray],
    ) -> np.ndarray:
        """A score for each path, float64 of shape (len(paths),), comparable over all lengths within one question.

        Args:
            question_vector: shape (d,).
            relation_vector: gives the vectors, shape (n, d), of n relations by their IRIs.
        """
        table = PathTable.of(paths)
        relations = list(dict.fromkeys(step.relation for step in table.steps))
        vectors = relation_vector(relations) if relations else np.empty((0, self.size))
        place = {relation: number for number, relation in enumerate(relations)}
        return self.score_rows(
            question_vector,
            np.asarray(vectors, dtype=np.float32)[[place[step.relation] for step in table.steps]],
            np.array([step.direction == "in" for step in table.steps], dtype=np.intp),
            table.rows,
        )

    def score_rows(
        self, question_vector: np.ndarray, vectors: np.ndarray, directions: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """As `score`, for steps by number.

        Args:
            vectors: of the steps' relations, shape (steps, d). directions: 0 out, 1 in, shape (steps,).
            rows: the rows of a `PathTable`.
        """
        scores = np.zeros(len(rows))
        if not rows.size:
            return scores
        asked = self.question_map @ np.asarray(question_vector, dtype=np.float32)
        asked /= max(float(np.linalg.norm(asked)), 1e-12)
        moved = vectors + self.directions[directions]
        first, first_of = _used(rows[:, 0])
        second, second_of = _used(rows[:, 1] if rows.shape[1] > 1 else np.full(len(rows), -1))
        # the last row stands for a step that is not there
        nowhere = np.zeros((1, self.size), dtype=np.float32)
        begun = np.vstack([moved[first] @ self.first_map.T, nowhere])
        gone_on = np.vstack([moved[second] @ self.further_map.T, nowhere])
        lengths = (rows >= 0).sum(axis=1)
        longer = np.flatnonzero(lengths > 2)
        further = moved @ self.further_map.T if longer.size else None
        for start in range(0, len(rows), _ROWS):
            block = slice(start, start + _ROWS)
            paths = begun[first_of[block]] + gone_on[second_of[block]]
            for row in longer[(longer >= start) & (longer < start + _ROWS)] if further is not None else ():
                rest = rows[row, 1 : lengths[row]]
                paths[row - start] = begun[first_of[row]] + further[rest].mean(axis=0)
            norms = np.sqrt(np.einsum("ij,ij->i", paths, paths))
            scores[block] = (paths @ asked) / np.maximum(norms, 1e-12)
        scores[lengths == 0] = -1.0  # a path that leads nowhere is no candidate, and the worst one
        return scores + np.where(lengths == 1, self.one_step_bias, 0.0)

    # --- files

    def save(self, path: Path) -> None:
        """Write it as .npz, whole or not at all.

        Raises:
            SettingsError: it cannot be written.
        """
        header = {
            "kind": MAGIC,
            "version": VERSION,
            "size": self.size,
            "embeddings": self.embeddings,
            "one_step_bias": self.one_step_bias,
        }
        arrays = {name: _stored(name, getattr(self, name)) for name in _ARRAYS}
        temporary = ""
        try:
            path = Path(path)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
                temporary = file.name
                np.savez(file, header=np.array(json.dumps(header)), **arrays)
            # a temporary file is its owner's alone; this one is as any other that the user writes
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, path)
        except OSError as error:
            if temporary:
                Path(temporary).unlink(missing_ok=True)
            raise SettingsError(f"The ranker cannot be written to {path}: {error.strerror or error}.") from error

    @classmethod
    def load(cls, path: str | Path, *, embeddings: str | None = None) -> TrainedRanker:
        """Read what `save` wrote. Nothing in the file is ever run.

        Args:
            embeddings: name of the model that is going to give the vectors.

        Raises:
            SettingsError: missing, damaged, or no ranker.
            ModelUnavailable: it was trained on the vectors of another model.
        """
        header, arrays = _read(Path(path))
        size = header["size"]
        ranker = cls(
            *(_loaded(name, arrays[name]) for name in _ARRAYS),
            one_step_bias=float(header["one_step_bias"]),
            embeddings=header["embeddings"],
        )
        shapes = [getattr(ranker, name).shape for name in _ARRAYS]
        if shapes != [(size, size)] * 3 + [(2, size)]:
            raise _no_ranker(path, f"its arrays have the shapes {shapes}")
        if not all((np.abs(getattr(ranker, name)) <= MAX_VALUE).all() for name in _ARRAYS):
            raise _no_ranker(path, "it holds values that are no numbers, or too large")
        if embeddings is not None:
            ranker.check_embeddings(embeddings, str(path))
        return ranker

    def check_embeddings(self, name: str, where: str = "This ranker") -> None:
        """Raises ModelUnavailable where vectors come from another model than the one it was trained on."""
        if name != self.embeddings:
            raise ModelUnavailable(
                f"{where} was trained on the vectors of {self.embeddings}, but the embedding model here is {name}: "
                "use that model, or train again with `kgqa rank train`."
            )


def ranker_scorer(
    ranker: TrainedRanker, encoder: CachedEncoder, relation_text: Callable[[str], str]
) -> Callable[[str, Sequence[Candidate]], np.ndarray]:
    """A function that scores candidates for a question whose mentions are left out; see `TrainedRanker.score`.

    Args:
        relation_text: the words of a relation by its IRI, see `words.relation_words`.

    Raises:
        ModelUnavailable: the ranker was trained on the vectors of another model.
    """
    ranker.check_embeddings(encoder.name)
    texts: dict[str, str] = {}

    def vectors(relations: Sequence[str]) -> np.ndarray:
        for relation in relations:
            if relation not in texts:
                texts[relation] = relation_text(relation)
        return encoder.encode([texts[relation] for relation in relations])

    def score(question: str, candidates: Sequence[Candidate]) -> np.ndarray:
        if not candidates:
            return np.zeros(0)
        return ranker.score(encoder.encode_questions([question])[0], [each.path for each in candidates], vectors)

    return score


def _used(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers of a column, and for each row the place of its own; the place after them for -1."""
    used, places = np.unique(column, return_inverse=True)
    if used.size and used[0] < 0:
        return used[1:], np.where(places == 0, len(used) - 1, places - 1)
    return used, places


def _stored(name: str, array: np.ndarray) -> np.ndarray:
    """What the file keeps of an array: of a map, how it differs from the identity, which 16 bits hold best."""
    if name.endswith("_map"):
        array = array - np.eye(len(array), dtype=np.float32)
    return array.astype("<f2")


def _loaded(name: str, array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):  # `load` looks for what is too large
        array = array.astype(np.float32)
    return array + np.eye(*array.shape, dtype=np.float32) if name.endswith("_map") and array.ndim == 2 else array


def in_half_precision(ranker: TrainedRanker) -> TrainedRanker:
    """The ranker that its file will give back."""
    arrays = [_loaded(name, _stored(name, getattr(ranker, name))) for name in _ARRAYS]
    return TrainedRanker(*arrays, one_step_bias=ranker.one_step_bias, embeddings=ranker.embeddings)


def _read(path: Path) -> tuple[dict, dict[str, np.ndarray]]:
    try:
        with zipfile.ZipFile(path) as members:
            if sum(member.file_size for member in members.infolist()) > MAX_BYTES:
                raise _no_ranker(path, f"it unpacks to more than {MAX_BYTES:,} bytes")
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            arrays = {name: file[name] for name in _ARRAYS}
        _check_header(header)
        if wrong := [name for name in _ARRAYS if arrays[name].dtype.kind != "f"]:
            raise ValueError(f"{wrong[0]} holds no numbers")
    except SettingsError:
        raise
    except FileNotFoundError:
        raise SettingsError(f"There is no ranker {path}. Train one: kgqa rank train QUESTIONS --out {path}") from None
    except OSError as error:
        raise SettingsError(f"The ranker {path} cannot be read: {error.strerror or error}.") from error
    except _DAMAGE as error:
        raise _no_ranker(path, str(error)) from error
    if header["version"] != VERSION:
        raise SettingsError(
            f"{path} is a ranker of version {header['version']}, this kgqa reads version {VERSION}: train it again."
        )
    return header, arrays


def _check_header(header: object) -> None:
    wanted = {"version": int, "size": int, "embeddings": str, "one_step_bias": (int, float)}
    if not isinstance(header, dict) or header.get("kind") != MAGIC:
        raise ValueError("its header is another one")
    for name, kind in wanted.items():
        if not isinstance(header.get(name), kind) or isinstance(header.get(name), bool):
            raise ValueError(f"its header has no {name}")
    if not abs(header["one_step_bias"]) <= MAX_BIAS or not 1 <= header["size"] <= MAX_SIZE:
        raise ValueError("it holds values that are no numbers, or too large")


def _no_ranker(path: str | Path, why: str) -> SettingsError:
    return SettingsError(
        f"{path} is damaged, or no ranker that `kgqa rank train` wrote ({why}). Train it again, or get another copy."
    )
