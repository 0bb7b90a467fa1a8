"""Questions for training with verl: rows of its parquet files, and the function that scores its rollouts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kgqa.errors import ModelUnavailable
from kgqa.evaluation.metrics.rewards import Episode, RewardForm, TurnForm, form_of_reply, reward
from kgqa.report.trajectories.messages import opening, plain, plain_data, tools_in
from kgqa.report.trajectories.trajectory import Trajectory
from kgqa.text.hints import Install

TOOL_CLASS = "kgqa.report.trajectories.verl_tools.CorpusTool"
_RESULTS = re.compile(
    r"(?:<\|im_end\|>)?\s*(?:<\|im_start\|>)?(?:user|tool)\n(?:<tool_response>.*?</tool_response>\s*)+"
    r"(?:<\|im_end\|>)?\s*(?:<\|im_start\|>)?assistant\n",
    re.DOTALL,
)
"""What the chat template writes between two replies of one rollout; special tokens may have been left out."""
_END = re.compile(r"<\|(?:im_end|endoftext)\|>\s*\Z")


def verl_row(trajectory: Trajectory, number: int) -> dict[str, Any]:
    """Return the row of a question in verl's parquet format; `number`: of the row, from 0."""
    return {
        "data_source": plain(f"kgqa/{trajectory.dataset or 'questions'}"),
        "prompt": opening(trajectory),
        "ability": "question answering",
        "agent_name": "tool_agent" if tools_in(trajectory) else "single_turn_agent",
        "reward_model": {"style": "rule", "ground_truth": plain_data(trajectory.gold)},
        "extra_info": {
            "index": number,
            "id": plain(trajectory.group),
            "question": plain(trajectory.question),
            "split": "train",
        },
    }


def tool_file(schemas: Iterable[Mapping[str, Any]]) -> str:
    """Return the file of tools that verl reads; JSON is YAML."""
    config = {"type": "native", "corpus": "corpus", "web": "none"}
    functions = ({"type": "function", "function": each} for each in schemas)
    tools = [{"class_name": TOOL_CLASS, "config": config, "tool_schema": each} for each in functions]
    return json.dumps({"tools": tools}, ensure_ascii=False, indent=1) + "\n"


def write_parquet(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows to a parquet file.

    Raises:
        ModelUnavailable: the library pyarrow is missing.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise ModelUnavailable("Parquet files need the library pyarrow.", Install("train")) from None
    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    model = pa.struct([("style", pa.string()), ("ground_truth", pa.list_(pa.string()))])
    texts = [(name, pa.string()) for name in ("id", "question", "split")]
    extra = pa.struct([("index", pa.int64()), *texts])
    schema = pa.schema(
        [
            ("data_source", pa.string()),
            ("prompt", pa.list_(message)),
            ("ability", pa.string()),
            ("agent_name", pa.string()),
            ("reward_model", model),
            ("extra_info", extra),
        ]
    )
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=schema), path)


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: Iterable[str],
    extra_info: Mapping[str, Any] | None = None,
    *,
    weights: Mapping[str, float] | None = None,
    form: RewardForm = "published",
    **_: Any,
) -> dict[str, float]:
    """Score a rollout of verl: `custom_reward_function` calls it with the text of all turns.

    verl passes one text in which replies and results follow each other, and the number of messages as
    `extra_info["num_turns"]`. A text that splits into another number of replies than the model wrote contains forged
    messages and has no good turn.

    Returns:
        The total as `score`, and each term of the reward.
    """
    del data_source
    count = (extra_info or {}).get("num_turns")
    episode = Episode(replies_in(solution_str, None if count is None else int(count) // 2))
    found = reward(episode, [str(each) for each in ground_truth], weights=weights, form=form).as_json()
    return {"score": found.pop("total"), **found}


def replies_in(text: str, replies: int | None) -> tuple[TurnForm, ...]:
    """Split the text of a rollout into replies, and read the structure of each.

    Args:
        text: replies and results, as a chat template in the style of Qwen writes them.
        replies: the number of replies; None if unknown, then only the part before the first result is read.
    """
    parts = [_END.sub("", part) for part in _RESULTS.split(text)]
    if replies is None:
        parts = parts[:1]
    elif len(parts) != replies:
        return (TurnForm(stray=True),) * max(1, replies)
    return tuple(form_of_reply(part) for part in parts)
