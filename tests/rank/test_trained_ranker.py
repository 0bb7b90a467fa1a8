"""The trained ranker: its formula, its file format, and damaged or hostile files."""

from __future__ import annotations

import io
import json
import math
import pickle
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgqa.errors import ModelUnavailable, SettingsError
from kgqa.model import Candidate, Entity, RelationPath, Step
from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.trained_ranker import TrainedRanker, in_half_precision, path_table, ranker_scorer
from tests.hostile_files import as_json, hostile

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


def test_more_paths_than_one_block(ranker_384):
    random = np.random.default_rng(1)
    relations = {f"r{n}": random.normal(size=384).astype(np.float32) for n in range(60)}
    names = sorted(relations)
    paths = [
        RelationPath(TOPIC, tuple(Step(str(name)) for name in random.choice(names, random.integers(1, 5))))
        for _ in range(1300)
    ]
    question = random.normal(size=384)
    together = ranker_384.score(question, paths, lambda wanted: np.stack([relations[r] for r in wanted]))
    some = [*range(5), *range(500, 530), *range(1020, 1030), 1299]  # at the borders of blocks of 512
    alone = [
        ranker_384.score(question, [paths[i]], lambda wanted: np.stack([relations[r] for r in wanted]))[0] for i in some
    ]
    assert together[some] == pytest.approx(np.array(alone), abs=1e-5)


def test_no_paths_and_no_steps():
    assert ranker().score(np.ones(2), [], vectors_of).shape == (0,)
    assert ranker().score(np.array([1.0, 0.0]), [path(""), path("c b"), path("a")], vectors_of)[0] == -1.0
    assert ranker().score(np.ones(2), [path("")], vectors_of).shape == (1,)


def test_shared_steps_are_numbered_once():
    one, two = path("a ^b").steps
    steps, rows = path_table([RelationPath(TOPIC, (one, two)), RelationPath(TOPIC, (one,)), path("a")])
    assert steps == (one, two)
    assert rows.tolist() == [[0, 1], [0, -1], [0, -1]]


def test_paths_are_encoded_by_their_steps():
    steps, rows = path_table([path("a"), path("a ^b"), path("b b a")])
    assert steps == (Step("a"), Step("b", "in"), Step("b"))
    assert rows.tolist() == [[0, -1, -1], [0, 1, -1], [2, 2, 0]]


# ---- the file ----


@pytest.fixture
def ranker_384() -> TrainedRanker:
    random = np.random.default_rng(0)
    maps = [np.eye(384, dtype=np.float32) + 0.05 * random.normal(size=(384, 384)).astype(np.float32) for _ in range(3)]
    return TrainedRanker(*maps, 0.1 * random.normal(size=(2, 384)).astype(np.float32), 0.02, "minilm-1")


def test_saved_ranker_is_loaded_unchanged(ranker_384, tmp_path):
    kept = in_half_precision(ranker_384)
    kept.save(tmp_path / "r.npz")
    loaded = TrainedRanker.load(tmp_path / "r.npz", embeddings="minilm-1")
    for name in ("question_map", "first_map", "further_map", "directions"):
        assert np.array_equal(getattr(loaded, name), getattr(kept, name)), name
        assert getattr(loaded, name) == pytest.approx(getattr(ranker_384, name), abs=2e-4)
    assert (loaded.one_step_bias, loaded.embeddings, loaded.size) == (0.02, "minilm-1", 384)
    assert (tmp_path / "r.npz").stat().st_size < 2_000_000
    assert [file.name for file in tmp_path.iterdir()] == ["r.npz"]


def test_saving_replaces_the_file(ranker_384, tmp_path):
    file = tmp_path / "r.npz"
    file.write_text("older")
    ranker_384.save(file)
    assert TrainedRanker.load(file).size == 384


def test_unwritable_folder_is_an_error(ranker_384, tmp_path):
    with pytest.raises(SettingsError, match="Cannot write the ranker"):
        ranker_384.save(tmp_path / "no folder" / "r.npz")


def test_vectors_of_another_model_are_refused(ranker_384, tmp_path):
    ranker_384.save(tmp_path / "r.npz")
    with pytest.raises(ModelUnavailable, match="trained with the embedding model minilm-1, but .* is another"):
        TrainedRanker.load(tmp_path / "r.npz", embeddings="another")


class PickleAttack:
    def __reduce__(self):
        return pytest.fail, ("a pickle was run",)


def rewrite_file(file, **changes):
    """Rewrite the file with changed arrays or header keys; an array that is None is omitted."""
    with np.load(file) as old:
        arrays = {name: old[name] for name in old.files}
    header = json.loads(str(arrays["header"]))
    for name, value in changes.items():
        if name in arrays:
            arrays[name] = value
        else:
            header[name] = value
    if "header" not in changes:
        arrays["header"] = np.array(json.dumps(header))
    np.savez(file, **{name: value for name, value in arrays.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "else"}, "header has another format"),
        ({"version": 2}, "version 2, but this kgqa reads version 1"),
        ({"version": "1"}, "no version"),
        ({"size": 100}, "shapes"),
        ({"size": None}, "no size"),
        ({"embeddings": 3}, "no embeddings"),
        ({"one_step_bias": float("nan")}, "NaN or values"),
        ({"one_step_bias": True}, "no one_step_bias"),
        ({"header": np.array("no json")}, "damaged"),
        ({"header": np.array("[]")}, "header has another format"),
        ({"header": np.array(PickleAttack(), dtype=object)}, "damaged"),
        ({"header": None}, "damaged"),
        ({"first_map": None}, "damaged"),
        ({"first_map": np.zeros((3, 3))}, "shapes"),
        ({"first_map": np.zeros(384)}, "shapes"),
        ({"first_map": np.full((384, 384), np.inf)}, "NaN or values"),
        ({"first_map": np.array([[PickleAttack()]], dtype=object)}, "damaged"),
        ({"first_map": np.array([["text"]])}, "damaged"),
        ({"directions": np.zeros((1, 384))}, "shapes"),
    ],
)
def test_wrong_file_is_an_error(ranker_384, tmp_path, changes, message):
    file = tmp_path / "r.npz"
    ranker_384.save(file)
    rewrite_file(file, **changes)
    with pytest.raises(SettingsError, match=message) as error:
        TrainedRanker.load(file)
    assert str(file) in str(error.value)


@pytest.mark.parametrize("content", [b"", b"no zip", pickle.dumps(PickleAttack()), b"PK\x03\x04" + bytes(100)])
def test_file_of_another_kind_is_an_error(tmp_path, content):
    (tmp_path / "r.npz").write_bytes(content)
    with pytest.raises(SettingsError, match="damaged or not a ranker"):
        TrainedRanker.load(tmp_path / "r.npz")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated_file_is_an_error(ranker_384, tmp_path, share):
    file = tmp_path / "r.npz"
    ranker_384.save(file)
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    with pytest.raises(SettingsError, match="damaged"):
        TrainedRanker.load(file)


def test_flipped_byte_is_detected_or_harmless(ranker_384, tmp_path):
    file = tmp_path / "r.npz"
    ranker_384.save(file)
    data = bytearray(file.read_bytes())
    for path_vector in range(0, len(data), len(data) // 60):
        damaged = bytearray(data)
        damaged[path_vector] ^= 0xFF
        file.write_bytes(damaged)
        try:
            loaded = TrainedRanker.load(file)
        except SettingsError:
            continue
        assert np.isfinite(loaded.first_map).all()


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(SettingsError, match="There is no ranker .*kgqa rank train"):
        TrainedRanker.load(tmp_path / "r.npz")
    with pytest.raises(SettingsError, match="Cannot read"):
        TrainedRanker.load(tmp_path)


def test_compression_bomb_is_refused(tmp_path):
    file = tmp_path / "r.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("first_map.npy", bytes(65 << 20))
    assert file.stat().st_size < 100_000
    with pytest.raises(SettingsError, match="unpacks to more than"):
        TrainedRanker.load(file)


def test_array_with_huge_shape_is_refused(ranker_384, tmp_path):
    file = tmp_path / "r.npz"
    ranker_384.save(file)
    claimed = io.BytesIO()
    np.lib.format.write_array_header_1_0(claimed, {"descr": "<f2", "fortran_order": False, "shape": (1 << 40, 1 << 20)})
    with zipfile.ZipFile(file) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(file, "w") as new:
        for name, content in members.items():
            new.writestr(name, claimed.getvalue() if name == "first_map.npy" else content)
    with pytest.raises(SettingsError, match="damaged"):
        TrainedRanker.load(file)


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
        TrainedRanker.identity(384, counting.name), CachedEncoder(counting, None), lambda relation: f"the {relation}"
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
        ranker_scorer(TrainedRanker.identity(384, "another-model"), encoder, str)


@given(hostile({"kind": "kgqa-ranker", "version": 1, "size": 4, "embeddings": "m", "one_step_bias": 0.0}))
def test_any_header_is_read_or_refused(tmp_path_factory, damaged):
    file = tmp_path_factory.mktemp("headers") / "r.npz"
    text = as_json(damaged).replace("\0", "")
    arrays = {
        name: np.zeros((2 if name == "directions" else 4, 4), dtype="<f2")
        for name in ("question_map", "first_map", "further_map", "directions")
    }
    np.savez(file, header=np.array(text), **arrays)
    try:
        ranker = TrainedRanker.load(file)
    except SettingsError as error:
        assert "Train the ranker again" in str(error)  # noqa: PT017  # both outcomes are allowed
    else:
        assert np.isfinite(ranker.one_step_bias)


@pytest.mark.parametrize("bias", [10**400, 1e308, -1e308])
def test_bias_out_of_range_is_refused(tmp_path, bias):
    TrainedRanker.identity(4, "m").save(tmp_path / "r.npz")
    with np.load(tmp_path / "r.npz") as kept:
        arrays = {name: kept[name] for name in kept.files if name != "header"}
    header = {"kind": "kgqa-ranker", "version": 1, "size": 4, "embeddings": "m", "one_step_bias": bias}
    np.savez(tmp_path / "r.npz", header=np.array(json.dumps(header)), **arrays)
    with pytest.raises(SettingsError, match="too large"):
        TrainedRanker.load(tmp_path / "r.npz")
