"""Questions for training with TRL's GRPOTrainer: rows of its data set, and the function that scores its rollouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa.evaluation.metrics.rewards import Episode, RewardForm, form_of_messages, form_of_reply, reward
from kgqa.report.trajectories.messages import opening, plain, plain_data
from kgqa.report.trajectories.trajectory import Trajectory


def trl_row(trajectory: Trajectory) -> dict[str, Any]:
    """Return the row of a question: `prompt` for the model, `gold` for the reward, the rest for the environment."""
    return {
        "prompt": opening(trajectory),
        "question": plain(trajectory.question),
        "question_id": plain(trajectory.group),
        "gold": plain_data(trajectory.gold),
    }


def rewards_of_completions(
    completions: Sequence[str | Sequence[Mapping[str, Any]]],
    gold: Sequence[Sequence[str]],
    *,
    weights: Mapping[str, float] | None = None,
    form: RewardForm = "published",
    **_: Any,
) -> list[float]:
    """Score rollouts of TRL, each from its own messages: what a tool returned is never read as a reply.

    Args:
        completions: the messages of each rollout, or its text if there were no tools.
        gold: the column `gold` of the data set: names and aliases of the gold answers of each rollout.
        weights, form: as for `reward`.
    """
    found = []
    for completion, answers in zip(completions, gold, strict=True):
        turns = (form_of_reply(completion),) if isinstance(completion, str) else form_of_messages(completion)
        found.append(reward(Episode(turns), answers, weights=weights, form=form).total)
    return found


def environments(corpus: str | Path, **options: Any) -> Callable[[], Any]:
    """Return what GRPOTrainer takes as `environment_factory`: it makes an environment with one method per tool.

    Args:
        corpus: the folder of the corpus that all environments read; each environment edits an overlay of its own.
        options: as for `kgqa.methods.evograph.environment.make_environment`.
    """
    from kgqa.methods.evograph.environment import make_environment

    return make_environment(corpus, **options)
