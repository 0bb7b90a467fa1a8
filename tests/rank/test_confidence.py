"""The confidence in an answer, and the features that determine it."""

from __future__ import annotations

import numpy as np
import pytest

from kgqa.rank.confidence import MARGIN, Calibration, calibration, explained, is_calibrated, margin

FEATURES = {"score": 0.6, "margin": 0.1, "explained": 0.8, "least": 0.8}


def test_logistic_by_hand():
    used = Calibration(-1.0, {"score": 2.0, "many": -0.5})
    assert used.confidence({"score": 0.5, "many": 0.0}) == 0.5
    assert used.confidence({"score": 1.0, "many": 0.0}) == 0.73  # 1 / (1 + exp(-1))
    assert used.confidence({"score": 99.0, "many": 0.0}) == 0.99 and used.confidence({"score": 0, "many": 99.0}) == 0.01


@pytest.mark.parametrize("basis", ["embeddings", "words"])
def test_better_matches_have_a_higher_score(basis):
    measured = calibration(basis)
    usual = dict.fromkeys(measured.weights, 0.0) | FEATURES
    weak, strong = (
        measured.confidence(usual | {"margin": margin, "explained": share, "least": share})
        for margin, share in ((0.0, 0.2), (0.2, 1.0))
    )
    assert weak < 0.5 < strong
    assert measured.confidence(usual | {"many": 5.0}) < measured.confidence(usual)


def test_margin_is_limited():
    assert margin([0.5]) == MARGIN
    assert margin([0.5, 0.1, 0.4]) == pytest.approx(0.1)
    assert margin([0.9, 0.1]) == MARGIN and margin([0.1, 0.9]) == -MARGIN


def test_explained_counts_other_forms_of_a_word():
    assert by_word("directed film director", ["film directed by"]) == [1.0, 1.0, 1.0]
    assert by_word("directs population", ["film directed by"]) == [1.0, 0.0]
    assert by_word("owner operates", ["owned by", "operator"]) == [1.0, 1.0]
    assert by_word("population", []) == [0.0] and by_word("birth own", ["birthplace ownership"]) == [1.0, 0.0]
    assert explained({"born": "born birth", "when": "when"}, ["date of birth"], None) == {"born": 1.0, "when": 0.0}


def by_word(words, texts, encoder=None, others=()):
    return list(explained({each: each for each in words.split()}, texts, encoder, others).values())


class CloseWords:
    """An encoder for which all texts are the same."""

    def encode(self, texts):
        return np.ones((len(texts), 1), dtype=np.float32)

    encode_questions = encode


def test_word_of_another_relation_is_not_explained():
    assert by_word("directed filmed", ["film directed by"], CloseWords(), {"directed"}) == [1.0, 1.0]
    assert by_word("wrote made", ["film directed by"], CloseWords()) == [1.0, 1.0]
    assert by_word("wrote made", ["film directed by"], CloseWords(), {"wrote"}) == [0.0, 1.0]


def test_other_embedding_models_are_not_calibrated():
    assert is_calibrated("all-minilm-l6-v2-7649f7894475")
    assert not is_calibrated("all-minilm-l6-v2-7649f7894475-prompt-0123abcd") and not is_calibrated("bge-small-en")
