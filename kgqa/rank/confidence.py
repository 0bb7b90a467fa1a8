"""The confidence in an answer that was found without a language model: the share of such answers that were right.

`confidence.toml` contains what benchmarks/calibration.py measured on development sets: the coefficients of a logistic
regression on these features:

- `score`: the score of the path; `margin`: how far it is above the best other path
- `explained`: how well the words of the path explain those of the question; `least`: the one that is explained least
- `agrees`: 1 if the answers are of the kind that is asked for, -1 if they are not, 0 if unknown
- `type`: how similar the type of the answers is to the type that is asked for, less 0.25; 0 if one is unknown
- `joined`: the share of the other topics whose paths the path meets
- `inexact`: 1 if a topic's name was not found literally, else 0
- `backward`: the number of steps against the direction of a relation
- `many`: the logarithm of the number of answers
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from kgqa.rank.embedding.encoder import CachedEncoder
from kgqa.rank.lexical import terms

Features = dict[str, float]
"""The features of an answer by name."""
Basis = Literal["embeddings", "words"]
"""What compares question and paths; each has its own coefficients."""
MARGIN = 0.3
"""Largest margin that counts; a path without a rival has this margin."""
LONG = 5
"""Least letters of a word that explains longer words which begin with it: birth, and birthplace."""
NO_WORDS = 0.5
"""Share of explained words of a question that has no words beside the topic, such as "who is X"."""


def root(stem: str) -> str:
    """Remove the ending of a noun from a verb: "operate", "operator" and "operation" have the same root."""
    return re.sub(r"(?<=\w{3})(?:at)?(?:ion|[eo]r|ment|e)$", "", stem)


@dataclass(frozen=True, slots=True)
class Calibration:
    """A logistic regression: coefficients by the names of features."""

    intercept: float
    weights: Mapping[str, float]

    def confidence(self, features: Mapping[str, float]) -> float:
        """Return the share of right answers (0 to 1) among answers with these features, in steps of one percent."""
        total = self.intercept + sum(weight * features[name] for name, weight in self.weights.items())
        share = 1 / (1 + math.exp(-min(max(total, -50.0), 50.0)))
        return min(max(round(share, 2), 0.01), 0.99)


@cache
def calibration(basis: Basis) -> Calibration:
    """Return the measured calibration of `confidence.toml`."""
    return Calibration(**_measured()[basis])


def is_calibrated(encoder: str) -> bool:
    """Return whether the coefficients for embeddings were measured with the embedding model of this name."""
    return str(_measured()["model"]) in encoder and "-prompt-" not in encoder


@cache
def _measured() -> dict[str, Any]:
    return tomllib.loads((files("kgqa.rank") / "confidence.toml").read_text(encoding="utf-8"))


def margin(scores: Sequence[float]) -> float:
    """Return how far the first score is above the largest of the others, from -MARGIN to MARGIN."""
    if len(scores) < 2:
        return MARGIN
    return min(max(scores[0] - max(scores[1:]), -MARGIN), MARGIN)


def explained(
    words: Mapping[str, str],
    texts: Sequence[str],
    encoder: CachedEncoder | None,
    others: Container[str] = (),
) -> dict[str, float]:
    """Return how well each word of a question occurs in the texts of a path, from 0 to 1.

    `words` maps each word to what it may mean, itself included. A word counts 1 if a text contains one of these, or
    another form of it; otherwise its largest cosine with a text or a word of a text, or 0 without an encoder. The words
    in `others` name relations that the path has not, and count 0.
    """
    if not words:
        return {}
    known = {root(term) for text in texts for term in terms(text)}

    def is_known(meant: str) -> bool:
        return any(
            each in known or (len(each) >= LONG and any(word.startswith(each) for word in known))
            for each in map(root, terms(meant))
        )

    share = np.array([float(is_known(meant)) for meant in words.values()])
    parts = list(dict.fromkeys([*texts, *(word for text in texts for word in text.split())]))
    if encoder is not None and parts and not share.all():
        close = (encoder.encode_questions(list(words)) @ encoder.encode(parts).T).max(axis=1)
        share = np.maximum(share, np.where([word in others for word in words], 0.0, close))
    return dict(zip(words, map(float, np.clip(share, 0, 1))))
