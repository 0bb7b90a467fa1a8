"""Exports the trajectories of runs as files for training; each export is written completely or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from kgqa.evaluation.metrics.rewards import Reward, RewardForm, checked_weights, reward
from kgqa.evaluation.runs.run_files import Run
from kgqa.methods.evograph.tools import SCHEMAS
from kgqa.report.files import ReportError
from kgqa.report.trajectories.messages import plain_data, tools_in
from kgqa.report.trajectories.scripts import reward_script
from kgqa.report.trajectories.sft import sft_row
from kgqa.report.trajectories.trajectory import Trajectory, trajectory_of
from kgqa.report.trajectories.trl import trl_row
from kgqa.report.trajectories.verl import tool_file, verl_row, write_parquet
from kgqa.text.hints import Option
from kgqa.text.words import counted
from kgqa.version import __version__

ExportFormat = Literal["verl", "trl", "sft", "jsonl"]
INFO = "export.json"
PER_TRAJECTORY = ("sft", "jsonl")
"""The formats with a row for each trajectory; the others have one for each question."""
SEPARATE_PROMPTS = ("counselor",)
"""Methods whose replies are no tool calls: a trainer could neither run nor score rollouts."""
FILES: Mapping[str, tuple[str, ...]] = {
    "verl": ("questions.parquet", "reward.py", "tools.yaml"),
    "trl": ("questions.jsonl", "training.py"),
    "sft": ("chats.jsonl",),
    "jsonl": ("trajectories.jsonl",),
}
"""The files of each format, beside export.json."""


@dataclass(frozen=True)
class ExportPlan:
    """The options of an export.

    `min_reward`: only trajectories with this reward or more. `form`, `weights`: as for `reward`.
    """

    format: ExportFormat
    min_reward: float | None = None
    form: RewardForm = "published"
    weights: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class ExportResult:
    """An export: its folder, how many trajectories the runs have, how many rows were written, and the mean reward."""

    folder: Path
    trajectories: int
    rows: int
    mean_reward: float

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {
            "folder": str(self.folder),
            "trajectories": self.trajectories,
            "rows": self.rows,
            "mean_reward": round(self.mean_reward, 6),
        }


def rewarded(
    runs: Iterable[Run], form: RewardForm = "published", weights: Mapping[str, float] | None = None
) -> Iterator[tuple[Trajectory, Reward]]:
    """Yield every trajectory of some runs with its reward."""
    for run in runs:
        for record in run.records():
            if trajectory := trajectory_of(record):
                yield trajectory, reward(trajectory.episode, trajectory.gold, weights=weights, form=form)


def export_trajectories(
    runs: Sequence[Run],
    folder: str | Path,
    plan: ExportPlan,
    *,
    on_progress: Callable[[int], None] = lambda done: None,
) -> ExportResult:
    """Write the trajectories of runs, or their questions, to a folder.

    Args:
        runs: the runs.
        folder: a folder that does not exist, is empty, or contains an older export.
        plan: what to write.
        on_progress: called with the number of trajectories that were read.

    Raises:
        ReportError: no question has a trajectory, no trajectory is good enough, or the folder cannot be written.
        RunError: a run cannot be read.
        ModelUnavailable: a library is missing.
        SettingsError: there is no such form or term of rewards.
    """
    folder = Path(folder)
    checked_weights(plan.weights)
    if plan.min_reward is not None and plan.format not in PER_TRAJECTORY:
        raise ReportError(
            f"The format {plan.format} has one row per question, whatever its rewards.",
            "Leave out ",
            Option("min-reward"),
            ", or choose sft or jsonl",
        )
    _check_folder(folder)
    rows: list[dict[str, Any]] = []
    seen: set[tuple[str, str]] = set()
    tools: dict[str, Mapping[str, Any]] = {}
    total, count = 0.0, 0
    for count, (trajectory, found) in enumerate(rewarded(runs, plan.form, plan.weights), 1):
        total += found.total
        on_progress(count)
        if plan.format not in PER_TRAJECTORY and trajectory.method in SEPARATE_PROMPTS:
            raise ReportError(
                f"{plan.format} trains methods that call tools in one chat; {trajectory.method} has a prompt for each "
                "line of a step.",
                "Choose sft or jsonl",
            )
        if plan.format in PER_TRAJECTORY:
            if plan.min_reward is None or found.total >= plan.min_reward:
                make = sft_row(trajectory, found) if plan.format == "sft" else _whole(trajectory, found)
                rows.append(make)
            continue
        key = (trajectory.dataset, trajectory.group)
        if key not in seen:
            seen.add(key)
            new = verl_row(trajectory, len(rows)) if plan.format == "verl" else trl_row(trajectory)
            tools |= {each["name"]: each for each in tools_in(trajectory)}
            rows.append(new)
    ours = {each["name"]: each["parameters"] for each in SCHEMAS}
    if foreign := [name for name, each in tools.items() if each["parameters"] != ours.get(name)]:
        raise ReportError(
            f"Rollouts of {plan.format} run our tools, and the prompts of this run tell of others: "
            f"{', '.join(foreign)}.",
            "Choose sft or jsonl, or export a run that is not as published",
        )
    if not count:
        raise ReportError(
            "No question of the run has a trajectory: its method does not act in turns.",
            "Use a run of a method that calls functions or tools",
        )
    if not rows:
        raise ReportError(
            f"None of {counted(count, 'trajectory', 'trajectories')} has a reward of {plan.min_reward:g} or more.",
            "Lower ",
            Option("min-reward"),
        )
    info = {
        "format": plan.format,
        "kgqa": __version__,
        "runs": [str(run.manifest.get("id") or "") for run in runs],
        "methods": sorted({run.name for run in runs}),
        "trajectories": count,
        "rows": len(rows),
        "reward": {"form": plan.form, "weights": checked_weights(plan.weights)},
        "min_reward": plan.min_reward,
    }
    _write(folder, plan, rows, info, tools_yaml=tool_file(tools.values()) if tools else "")
    return ExportResult(folder, count, len(rows), total / count)


def _whole(trajectory: Trajectory, found: Reward) -> dict[str, Any]:
    """Return everything that is known of a trajectory as JSON data."""
    turns = [
        {
            "trial": turn.trial,
            "step": turn.step,
            "reply": turn.reply,
            "thought": turn.thought,
            "calls": list(turn.calls),
            "observation": turn.observation,
            "problem": turn.problem,
            "form": {"thoughts": turn.form.thoughts, "calls": turn.form.calls, "answers": turn.form.answers},
        }
        for turn in trajectory.turns
    ]
    edits = [
        {"kind": edit.kind, "content": edit.content, "target": edit.target, "rule": edit.rule, "state": edit.state}
        for edit in trajectory.edits
    ]
    row = {
        "id": trajectory.id,
        "group": trajectory.group,
        "rollout": trajectory.rollout,
        "dataset": trajectory.dataset,
        "method": trajectory.method,
        "question": trajectory.question,
        "system": trajectory.system,
        "user": trajectory.user,
        "gold": list(trajectory.gold),
        "status": trajectory.status,
        "answers": list(trajectory.answers),
        "reward": found.as_json(),
        "turns": turns,
        "edits": edits,
        "usage": dict(trajectory.usage),
    }
    plain: dict[str, Any] = plain_data(row)
    return plain


def _write(
    folder: Path, plan: ExportPlan, rows: Sequence[Mapping[str, Any]], info: Mapping[str, Any], *, tools_yaml: str
) -> None:
    """Write all files into a new folder beside `folder`, then put them in its place."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise _unwritable(folder, error) from error
    old = new.with_name(f"{new.name}.old")
    try:
        data, script = FILES[plan.format][0], FILES[plan.format][1:2]
        if plan.format == "verl":
            write_parquet(rows, new / data)
        else:
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (new / data).write_text("".join(lines), encoding="utf-8")
        if plan.format == "verl" and tools_yaml:
            (new / "tools.yaml").write_text(tools_yaml, encoding="utf-8")
        for name in script:
            (new / name).write_text(reward_script(plan.format, plan.form, checked_weights(plan.weights)), "utf-8")
        (new / INFO).write_text(json.dumps(info, indent=1) + "\n", encoding="utf-8")
        new.chmod(0o777 & ~_umask())
        if folder.exists():
            os.replace(folder, old)
        os.replace(new, folder)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        for each in (new, old):
            shutil.rmtree(each, ignore_errors=True)


def _check_folder(folder: Path) -> None:
    """Raise ReportError if a folder contains anything but an older export."""
    if folder.exists() and not folder.is_dir():
        raise ReportError(f"{folder} is not a folder.", "Choose another folder: ", Option("out"))
    if folder.is_dir() and len(_own_files(folder)) != sum(1 for _ in folder.iterdir()):
        raise ReportError(f"{folder} contains other files.", "Choose an empty or new folder: ", Option("out"))


def _own_files(folder: Path) -> list[Path]:
    names = {INFO, *(name for each in FILES.values() for name in each)}
    return [path for path in folder.iterdir() if path.name in names and path.is_file()]


def _unwritable(folder: Path, error: OSError) -> ReportError:
    return ReportError(f"{folder} cannot be written: {error.strerror}.", "Choose another folder: ", Option("out"))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
