"""Trajectories for supervised fine-tuning: one chat per line, of trajectories whose reward is high enough."""

from __future__ import annotations

from typing import Any

from kgqa.evaluation.metrics.rewards import Reward
from kgqa.report.trajectories.messages import dialogue, plain_data
from kgqa.report.trajectories.trajectory import Trajectory


def sft_row(trajectory: Trajectory, reward: Reward) -> dict[str, Any]:
    """Return the chat of a trajectory with its reward.

    `messages` is the form in which TRL's SFTTrainer reads chats. What tools returned has the role tool, so
    `assistant_only_loss=True` trains on replies only.
    """
    return {
        "messages": dialogue(trajectory),
        "id": plain_data(trajectory.id),
        "group": plain_data(trajectory.group),
        "rollout": trajectory.rollout,
        "reward": round(reward.total, 6),
    }
