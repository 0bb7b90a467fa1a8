"""Training of the ranker: what it learns, reproducibility, and agreement with scoring."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from kgqa.rank.trained_ranker import TrainedRanker
from kgqa.text.installation import install_command
from kgqa.training.fitting import (
    Example,
    TrainingSettings,
    Vectors,
    fit_ranker,
    hits,
    scores_of,
)

SIZE = 16
STEPS = 60


@pytest.fixture(scope="module")
def torch():
    import torch

    return torch


def rotated_examples(examples: int, seed: int = 0) -> tuple[list[Example], Vectors]:
    """Return examples whose question vectors are rotated gold path vectors, which only trained maps can match."""
    random = np.random.default_rng(seed)
    turn = np.linalg.qr(np.random.default_rng(99).normal(size=(SIZE, SIZE)))[0]
    relations = np.random.default_rng(7).normal(size=(STEPS, SIZE)).astype(np.float32)
    relations /= np.linalg.norm(relations, axis=1, keepdims=True)
    pairs = [(a, b) for a in range(STEPS) for b in random.choice(STEPS, 5, replace=False)]
    pool = np.array([(a, -1) for a in range(STEPS)] + pairs, dtype=np.int32)
    made, questions = [], {}
    for number in range(examples):
        gold = int(random.integers(len(pool)))
        first, second = pool[gold]
        vector = turn @ (relations[first] + (0.5 * relations[second] if second >= 0 else 0))
        questions[f"q{seed}-{number}"] = (vector / np.linalg.norm(vector)).astype(np.float32)
        made.append(Example(f"q{seed}-{number}", pool, gold))
    return made, Vectors(relations, np.zeros(STEPS, dtype=np.intp), questions, "m")


def hit_rate(ranker: TrainedRanker, examples: list[Example], vectors: Vectors) -> float:
    scored = [(scores_of(ranker, e.question, e.pool, vectors), e.gold) for e in examples]
    return float(np.mean([(scores >= scores[gold]).sum() == 1 for scores, gold in scored]))


def path_vector(one: Vectors, other: Vectors) -> Vectors:
    return Vectors(one.relations, one.directions, {**one.questions, **other.questions}, "m")


def test_rotation_is_learned_and_generalises(torch):
    seen, vectors = rotated_examples(300)
    unseen, others = rotated_examples(50, seed=1)
    vectors = path_vector(vectors, others)
    before = hit_rate(TrainedRanker.identity(SIZE, "m"), unseen, vectors)
    ranker = fit_ranker(seen, vectors, TrainingSettings(epochs=15, rate=2e-2, batch=16))
    after = hit_rate(ranker, unseen, vectors)
    assert before < 0.1 and after > 0.6


def test_directions_are_learned(torch):
    """Two steps along one relation differ in direction only."""
    relations = np.tile(np.eye(4, dtype=np.float32)[:1], (2, 1))
    pool = np.array([[0], [1]], dtype=np.int32)
    question_vectors = {
        "who made it?": np.eye(4, dtype=np.float32)[1],
        "what did it make?": np.eye(4, dtype=np.float32)[2],
    }
    vectors = Vectors(relations, np.array([0, 1]), question_vectors, "m")
    examples = [Example("who made it?", pool, 0), Example("what did it make?", pool, 1)] * 20
    assert hit_rate(TrainedRanker.identity(4, "m"), examples, vectors) == 0.0, "a tie with another path is no hit"
    ranker = fit_ranker(examples, vectors, TrainingSettings(epochs=60, rate=1e-2))
    assert hit_rate(ranker, examples, vectors) == 1.0


def test_training_is_reproducible_by_seed(torch):
    examples, vectors = rotated_examples(150)
    settings = [TrainingSettings(epochs=2, negatives=20, seed=seed) for seed in (3, 3, 4)]
    one, again, other = (fit_ranker(examples, vectors, each) for each in settings)
    assert np.array_equal(one.first_map, again.first_map) and one.one_step_bias == again.one_step_bias
    assert not np.array_equal(one.first_map, other.first_map)


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "torch" else find(name, *more)
import numpy as np
from kgqa.errors import ModelUnavailable
from kgqa.training.fitting import Example, Vectors, fit_ranker
pool = np.array([[0], [1]], dtype=np.int32)
try:
    fit_ranker([Example("q", pool, 0)], Vectors(np.eye(2), np.zeros(2, int), {"q": np.ones(2)}, "m"))
except ModelUnavailable as error:
    print(error)
"""


def test_missing_torch_is_an_error():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, timeout=60)
    assert install_command("sbert") in done.stdout, done.stderr


class Words:
    """An encoder of two dimensions that knows two words."""

    def encode_once(self, texts):
        return np.array([{"good": [1.0, 0.0], "bad": [0.0, 1.0]}[text] for text in texts])


@pytest.mark.parametrize(
    ("question", "share", "expected"),
    [
        ([1, 0], 0.5, (1.0, 0.0, 0.5)),  # the ranker has learned the opposite
        ([1, 0], 0.25, (1.0, 0.0, 1.0)),
        ([0, 1], 0.75, (0.0, 1.0, 1.0)),
        ([1, 1], 0.5, (0.5, 0.5, 0.5)),  # of two equal scores, each is a half
    ],
)
def test_hits_by_hand(question, share, expected):
    questions = {"q": np.array(question, dtype=np.float32)}
    vectors = Vectors(np.eye(2, dtype=np.float32), np.zeros(2, dtype=np.intp), questions, "m")
    turned = replace(TrainedRanker.identity(2, "m"), question_map=np.array([[0, 1], [1, 0]], dtype=np.float32))
    example = Example("q", np.array([[1], [0]], dtype=np.int32), 1)
    found = hits(turned, [example] * 3, vectors, ["good", "bad"], Words(), share=share, seed=0)
    assert (found.examples, found.cosine, found.head, found.mixed) == (3, *expected)
    assert hits(turned, [], vectors, [], Words(), share=share, seed=0).examples == 0
