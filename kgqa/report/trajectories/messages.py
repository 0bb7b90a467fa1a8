"""The messages of a trajectory as a chat, and texts that every file format can hold."""

from __future__ import annotations

from typing import Any

from kgqa.report.trajectories.trajectory import Trajectory, Turn
from kgqa.storage.loading import parse_json

Message = dict[str, str]


def opening(trajectory: Trajectory) -> list[Message]:
    """Return the messages before the first reply: the rules, if there are any, and the question."""
    rules = [{"role": "system", "content": plain(trajectory.system)}] if trajectory.system else []
    return [*rules, {"role": "user", "content": plain(trajectory.user)}]


def dialogue(trajectory: Trajectory) -> list[Message]:
    """Return the whole chat of the last trial: the opening, each reply as it was written, and what was shown after it.

    Only replies have the role assistant, so that a trainer can mask everything else.
    """
    found = opening(trajectory)
    for turn in trajectory.last_trial:
        found.append({"role": "assistant", "content": plain(turn.reply)})
        if turn.observation:
            found.append({"role": _role(turn), "content": plain(turn.observation)})
    return found


def tools_in(trajectory: Trajectory) -> list[dict[str, Any]]:
    """Return the schemas of the tools that the rules of a trajectory list, one per line; empty if they list none."""
    lines = [line for line in trajectory.system.splitlines() if line.startswith('{"name": ')]
    return [found for line in lines if isinstance(found := parse_json(line), dict) and "parameters" in found]


def plain(text: str) -> str:
    """Return a text that can be written as UTF-8: half of a surrogate pair becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def plain_data(value: Any) -> Any:
    """Return JSON data whose texts can all be written as UTF-8."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(str(key)): plain_data(item) for key, item in value.items()}
    return [plain_data(item) for item in value] if isinstance(value, (list, tuple)) else value


def _role(turn: Turn) -> str:
    """Return who shows the observation: a tool, after a reply with a block tool_call, or else the user."""
    return "tool" if "<tool_call" in turn.reply else "user"
