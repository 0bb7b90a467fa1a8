"""Rewards of trajectories of methods that act in turns, computed from the structure of the turns.

The reward of EvoGraph-R1 (Lin et al. 2026) is -1 + F + [F=1]A. F is the format: 0.5 for every turn of one thought and
one call, and 0.5 for a last turn of one thought and the answer, at most 1. A is the best token F1 between the answer
and a gold answer. No text that a tool returned takes part in F or A.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from kgqa.errors import SettingsError
from kgqa.evaluation.metrics.text_metrics import token_f1

RewardForm = Literal["published", "strict"]
WEIGHTS: Mapping[str, float] = {"format": 1.0, "answer": 1.0, "retrieval": 0.0, "edits": 0.0, "cost": 0.0}
"""The weight of each term of a reward, as published."""
MAX_TURNS = 10
"""The number of turns at which the term `cost` is -1: the maximum number of calls as published."""
_BLOCKS = ("think", "tool_call", "answer")
_MARK = re.compile(r"<(/?)\s*(think|tool_call|answer|tool_response)\s*>|<\|[^<>|]{1,40}\|>", re.IGNORECASE)
_CITED = re.compile(r"\s*[\[【]\s{0,5}\d{1,6}(?:\s{0,5}[,;–-]\s{0,5}\d{1,6}){0,50}\s{0,5}[\]】]")
"""Numbers of results that an answer cites; they are no words of it."""


@dataclass(frozen=True, slots=True)
class TurnForm:
    """The structure of one reply of a language model.

    `thoughts`, `calls`, `answers`: number of blocks of each kind. `answer`: text of the answer, without the numbers of
    results that it cites. `stray`: whether there is text outside the blocks, or a block that cannot be read.
    """

    thoughts: int = 0
    calls: int = 0
    answers: int = 0
    answer: str = ""
    stray: bool = False

    @property
    def acts(self) -> bool:
        """Whether the reply has one thought, one call and nothing else."""
        return (self.thoughts, self.calls, self.answers) == (1, 1, 0)

    @property
    def concludes(self) -> bool:
        """Whether the reply has one thought, one answer and nothing else."""
        return (self.thoughts, self.calls, self.answers) == (1, 0, 1)


@dataclass(frozen=True)
class Episode:
    """What the reward of a trajectory depends on.

    `turns`: the replies, in order. `retrieval`: share of the gold passages that the model was shown, None if the
    question has none. `accepted`, `rejected`: number of proposed edits that passed the gates, and that did not.
    """

    turns: tuple[TurnForm, ...]
    retrieval: float | None = None
    accepted: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class Reward:
    """The terms of a reward, each without its weight, and their weighted sum `total`.

    `format`: F, from 0 to 1. `answer`: A, from 0 to 1, whether or not it counts. `retrieval`: from 0 to 1. `edits`:
    (accepted - rejected) / all, from -1 to 1. `cost`: from -1 (ten turns or more) to 0.
    """

    total: float
    format: float
    answer: float
    retrieval: float
    edits: float
    cost: float

    def as_json(self) -> dict[str, float]:
        """Return the terms and the total, rounded to six digits."""
        return {name: round(value, 6) for name, value in asdict(self).items()}


def reward(
    episode: Episode,
    gold: Iterable[str],
    *,
    weights: Mapping[str, float] | None = None,
    form: RewardForm = "published",
) -> Reward:
    """Compute the reward of a trajectory.

    As published, a right answer without a call has -0.5, and two good calls excuse a last turn without an answer.

    Args:
        episode: the structure of the trajectory.
        gold: names and aliases of the gold answers; the best one counts.
        weights: weights by name of term, in place of those in `WEIGHTS`.
        form: `published`, or `strict`: F is at most 0.5 unless every turn is one thought and one call without other
            text, and the last one a thought and the answer.

    Raises:
        SettingsError: there is no such form or term.
    """
    chosen = checked_weights(weights)
    if form not in get_args(RewardForm):
        raise SettingsError(f"{form!r} is not a form of rewards.", f"Choose from: {', '.join(get_args(RewardForm))}.")
    *before, last = episode.turns or (TurnForm(),)
    calls = sum(turn.acts for turn in episode.turns)
    shape = min(1.0, 0.5 * calls + 0.5 * last.concludes)
    if form == "strict" and not (
        last.concludes and all(turn.acts for turn in before) and not any(turn.stray for turn in episode.turns)
    ):
        shape = min(0.5, shape)
    answer = token_f1(last.answer, gold) if last.answers == 1 else 0.0
    edits = episode.accepted + episode.rejected
    terms = {
        "format": shape,
        "answer": answer,
        "retrieval": episode.retrieval or 0.0,
        "edits": (episode.accepted - episode.rejected) / edits if edits else 0.0,
        "cost": -min(1.0, len(episode.turns) / MAX_TURNS),
    }
    total = chosen["format"] * (shape - 1.0) + chosen["answer"] * (answer if shape == 1.0 else 0.0)
    total += sum(chosen[name] * terms[name] for name in ("retrieval", "edits", "cost"))
    return Reward(total=total, **terms)


def checked_weights(weights: Mapping[str, float] | None) -> dict[str, float]:
    """Return the weight of every term; `weights` replaces those of `WEIGHTS`.

    Raises:
        SettingsError: there is no such term, or a weight is not a finite number.
    """
    if unknown := sorted((weights or {}).keys() - WEIGHTS.keys()):
        raise SettingsError(f"{unknown[0]!r} is not a term of rewards.", f"Choose from: {', '.join(WEIGHTS)}.")
    if wrong := [name for name, weight in (weights or {}).items() if not math.isfinite(weight)]:
        raise SettingsError(f"The weight of {wrong[0]} is not a finite number.", "Write a number such as 0.1.")
    return {**WEIGHTS, **(weights or {})}


def form_of_reply(text: str) -> TurnForm:
    """Read the structure of a reply with the blocks think, tool_call and answer.

    A reply has no block at all if one of its blocks is not closed or contains a mark of a block, of a result or of a
    chat: text that looks like further turns inside a thought or a call gains nothing. A call must be a JSON object
    with a name and arguments.
    """
    counts = dict.fromkeys(_BLOCKS, 0)
    answer, stray, end = "", False, 0
    opened: re.Match[str] | None = None
    for mark in _MARK.finditer(text):
        closing, name = mark[1], (mark[2] or "").lower()
        if opened is None:
            if closing or name not in _BLOCKS:
                return TurnForm(stray=True)
            stray = stray or bool(text[end : mark.start()].strip())
            opened = mark
        else:
            if not closing or name != opened[2].lower():
                return TurnForm(stray=True)
            content = text[opened.end() : mark.start()].strip()
            if content and (name != "tool_call" or is_call(content)):
                counts[name] += 1
            else:
                stray = True
            answer = _CITED.sub(" ", content) if name == "answer" else answer
            opened, end = None, mark.end()
    if opened is not None:
        return TurnForm(stray=True)
    stray = stray or bool(text[end:].strip())
    return TurnForm(counts["think"], counts["tool_call"], counts["answer"], answer, stray)


def is_call(content: str) -> bool:
    """Whether a text is a JSON object with a name and an object of arguments (or args)."""
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict):
        return False
    name = found.get("name") or found.get("tool")
    return isinstance(name, str) and isinstance(found.get("arguments", found.get("args")), dict)


def form_of_messages(messages: Sequence[Mapping[str, Any]]) -> tuple[TurnForm, ...]:
    """Read the structure of the assistant's messages in a chat; all other messages are ignored.

    A message may have its calls in the key `tool_calls`, as chat templates read them, and its thought in
    `reasoning_content`; a thought with marks of blocks in it counts for nothing.
    """
    found = []
    for message in messages:
        if message.get("role") != "assistant":
            continue
        content = message.get("content")
        form = form_of_reply(content if isinstance(content, str) else "")
        calls = message.get("tool_calls")
        thought = message.get("reasoning_content")
        thinks = isinstance(thought, str) and bool(thought.strip()) and not _MARK.search(thought)
        found.append(
            TurnForm(
                form.thoughts + thinks,
                form.calls + (len(calls) if isinstance(calls, (list, tuple)) else 0),
                form.answers,
                form.answer,
                form.stray,
            )
        )
    return tuple(found)
