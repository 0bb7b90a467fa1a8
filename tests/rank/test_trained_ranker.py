"""The trained ranker: its formula, its file format, and damaged or hostile files."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.trained_ranker import TrainedRanker, ranker_scorer

TOPIC = Entity("http://ex.org/topic")
RELATIONS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, 0.0], "d": [0.6, 0.8]}


def path(text: str) -> RelationPath:
    """Build a path; `a ^b` follows a, then b backwards."""
    steps = (Step(name.removeprefix("^"), "in" if name.startswith("^") else "out") for name in text.split())
    return RelationPath(TOPIC, tuple(steps))


def vectors_of(relations) -> np.ndarray:
    return np.array([RELATIONS[relation] for relation in relations], dtype=np.float32)


def ranker(**changes) -> TrainedRanker:
    return replace(TrainedRanker.identity(2, "m"), **{k: np.asarray(v, np.float32) for k, v in changes.items()})


def by_hand(model: TrainedRanker, question, steps) -> float:
    """Compute the formula of the module for one path."""
    moved = [np.array(RELATIONS[s.relation]) + model.directions[int(s.direction == "in")] for s in steps]
    path_vector = model.first_map @ moved[0]
    if len(moved) > 1:
        path_vector = path_vector + model.further_map @ np.mean(moved[1:], axis=0)
    question_vector = model.question_map @ np.asarray(question)
    length = np.linalg.norm(path_vector) * np.linalg.norm(question_vector)
    return (float(path_vector @ question_vector / length) if length > 1e-9 else 0.0) + (
        model.one_step_bias if len(moved) == 1 else 0.0
    )


HALF = math.sqrt(0.5)


@pytest.mark.parametrize(
    ("model", "text", "score"),
    [
        (ranker(), "a", 1.0),
        (ranker(), "b", 0.0),
        (ranker(), "c", -1.0),
        (ranker(), "a b", HALF),  # cosine of (1, 0) and (1, 1)
        (ranker(), "a c", 0.0),  # the vectors cancel out, so there is no direction
        (ranker(), "a b b", HALF),  # further steps contribute their mean, not their sum
        (ranker(), "a b c", 0.5 / math.hypot(0.5, 0.5)),  # (1, 0) + (-0.5, 0.5)
        (ranker(first_map=[[0, 1], [1, 0]]), "b", 1.0),
        (ranker(further_map=np.zeros((2, 2))), "a b", 1.0),
        (ranker(further_map=[[0, 1], [-1, 0]]), "a b", 1.0),  # b turned to (1, 0)
        (ranker(question_map=[[0, 1], [1, 0]]), "b", 1.0),
        (ranker(directions=[[0, 0], [0, 1]]), "a", 1.0),
        (ranker(directions=[[0, 0], [0, 1]]), "^a", HALF),
        (replace(ranker(), one_step_bias=0.25), "a", 1.25),
        (replace(ranker(), one_step_bias=0.25), "a b", HALF),
    ],
)
def test_formula_by_hand(model, text, score):
    assert model.score(np.array([1.0, 0.0]), [path(text)], vectors_of) == pytest.approx([score], abs=1e-6)


a_step = st.builds(Step, st.sampled_from(sorted(RELATIONS)), st.sampled_from(["out", "in"]))
steps_of = st.lists(a_step, min_size=1, max_size=4)
numbers = st.floats(-2, 2, width=32)
matrices = st.lists(numbers, min_size=4, max_size=4).map(lambda four: np.array(four, np.float32).reshape(2, 2))
rankers = st.builds(TrainedRanker, matrices, matrices, matrices, matrices, st.floats(-1, 1), st.just("m"))


@given(rankers, st.lists(steps_of, max_size=8), st.tuples(st.floats(0.1, 2), st.floats(-2, 2)))
def test_batch_scores_equal_single_scores(model, many, question):
    paths = [RelationPath(TOPIC, tuple(steps)) for steps in many]
    scores = model.score(np.array(question), paths, vectors_of)
    assert scores.shape == (len(paths),) and scores.dtype == np.float64
    for each, score in zip(many, scores):
        expected = by_hand(model, question, each)
        moved = [np.array(RELATIONS[s.relation]) + model.directions[int(s.direction == "in")] for s in each]
        path_vector = model.first_map @ moved[0] + (model.further_map @ np.mean(moved[1:], axis=0) if moved[1:] else 0)
        # 32 bits are too few if vectors nearly cancel out
        if np.linalg.norm(path_vector) > 1e-2 and np.linalg.norm(model.question_map @ np.array(question)) > 1e-2:
            assert score == pytest.approx(expected, abs=1e-3)
        assert abs(score) <= 1 + abs(model.one_step_bias) + 1e-3


class TableEncoder:
    """An encoder of two dimensions that knows a few texts by heart."""

    name = "m"

    def encode(self, texts):
        known = RELATIONS | {"question": [1.0, 0.0], "far": [0.0, 1.0], "near": [0.8, 0.6], "opposite": [-1.0, 0.0]}
        return np.array([known[text] for text in texts], dtype=np.float32)

    encode_questions = encode


@pytest.mark.parametrize(
    ("share", "scores"),
    [
        (0.0, [0.0, 0.8, 1.0, -1.0]),  # the cosines of the words
        (1.0, [1.5, 1.1, 0.5, HALF]),  # the head, with its bias for one step
        (0.25, [0.375, 0.875, 0.875, 0.25 * HALF - 0.75]),
    ],
)
def test_share_mixes_head_and_cosine(share, scores):
    score = ranker_scorer(replace(ranker(), one_step_bias=0.5), TableEncoder(), str, share)
    pool = [Candidate(path(p), w) for p, w in [("a", "far"), ("d", "near"), ("b", "a"), ("a b", "opposite")]]
    assert score("question", pool) == pytest.approx(scores, abs=1e-6)


# ---- the file ----


@pytest.fixture
def ranker_384() -> TrainedRanker:
    random = np.random.default_rng(0)
    maps = [np.eye(384, dtype=np.float32) + 0.05 * random.normal(size=(384, 384)).astype(np.float32) for _ in range(3)]
    return TrainedRanker(*maps, 0.1 * random.normal(size=(2, 384)).astype(np.float32), 0.02, "minilm-1")


def test_saved_ranker_is_loaded_unchanged(ranker_384, tmp_path):
    ranker_384.save(tmp_path / "my.ranker")
    loaded = TrainedRanker.load(tmp_path / "my.ranker")
    for name in ("question_map", "first_map", "further_map", "directions"):
        assert getattr(loaded, name) == pytest.approx(getattr(ranker_384, name), abs=2e-4)
    assert (loaded.one_step_bias, loaded.embeddings, loaded.size) == (0.02, "minilm-1", 384)
    assert (tmp_path / "my.ranker").stat().st_size < 2_000_000
    assert [file.name for file in tmp_path.iterdir()] == ["my.ranker"]


HEADER = {"kind": "kgqa-ranker", "version": 2, "size": 4, "embeddings": "m", "one_step_bias": 0.0}


@pytest.mark.parametrize(
    ("header", "values", "message"),
    [
        ({"kind": "else"}, bytes(112), "kind"),
        ({"version": 3}, bytes(112), "version"),
        ({"size": 100}, bytes(112), "too few values"),
        ({"size": 1 << 40}, bytes(112), "size"),
        ({"embeddings": 3}, bytes(112), "embeddings"),
        ({"one_step_bias": True}, bytes(112), "one_step_bias"),
        ({"one_step_bias": 1e308}, bytes(112), "one_step_bias"),
        ({"one_step_bias": float("nan")}, bytes(112), "damaged"),
        ({}, bytes(113), "damaged"),
        ({}, b"\xff" * 112, "NaN"),
    ],
)
def test_wrong_file_is_an_error(tmp_path, header, values, message):
    file = tmp_path / "my.ranker"
    file.write_bytes(json.dumps(HEADER | header).encode() + b"\n" + values)
    with pytest.raises(SettingsError, match=message) as error:
        TrainedRanker.load(file)
    assert str(file) in str(error.value)


@pytest.mark.parametrize("share", [0, 1e-5, 0.5, 0.999])
def test_truncated_file_is_an_error(ranker_384, tmp_path, share):
    file = tmp_path / "my.ranker"
    ranker_384.save(file)
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(SettingsError, match="damaged"):
        TrainedRanker.load(file)


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(SettingsError, match="There is no ranker .*kgqa rank train"):
        TrainedRanker.load(tmp_path / "my.ranker")
    with pytest.raises(SettingsError, match="not an ordinary file"):
        TrainedRanker.load(tmp_path)


# ---- with the real embeddings ----


class CountingEncoder:
    """An encoder that counts the texts it computes."""

    def __init__(self, encoder) -> None:
        self.name = encoder.name
        self.texts: list[str] = []
        self._encoder = encoder

    def encode(self, texts):
        self.texts += texts
        return self._encoder.encode(texts)


@pytest.mark.slow
def test_only_relations_and_the_question_are_embedded(encoder):
    counting = CountingEncoder(encoder._encoder)
    score = ranker_scorer(
        TrainedRanker.identity(384, counting.name),
        CachedEncoder(counting, None),
        lambda relation: f"the {relation}",
        1.0,
    )
    pool = [Candidate(path(text), "words of a path") for text in ("capital", "mascot", "capital mascot", "^mascot")]
    first = score("which city is the seat of government?", pool)
    assert sorted(counting.texts) == ["the capital", "the mascot", "which city is the seat of government?"]
    assert np.argmax(first) == 0 and first[1] == first[3] < first[2]
    assert np.array_equal(score("which city is the seat of government?", pool), first)
    assert len(counting.texts) == 3  # nothing is embedded again
    assert score("anything", []).shape == (0,)


def test_ranker_of_other_embeddings_is_refused(encoder):
    with pytest.raises(ModelUnavailable, match="another-model"):
        ranker_scorer(TrainedRanker.identity(384, "another-model"), encoder, str, 0.5)
