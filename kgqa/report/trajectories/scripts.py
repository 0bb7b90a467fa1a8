"""The Python files of an export, with which a trainer scores rollouts."""

from __future__ import annotations

import json
from collections.abc import Mapping

from kgqa.evaluation.metrics.rewards import RewardForm

_VERL = """\
# The reward of kgqa for verl: custom_reward_function.path=reward.py custom_reward_function.name=compute_score

from kgqa.report.trajectories import verl

WEIGHTS = {weights}
FORM = {form}


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **more):
    return verl.compute_score(data_source, solution_str, ground_truth, extra_info, weights=WEIGHTS, form=FORM)
"""
_TRL = """\
# The reward and the environments of kgqa for GRPOTrainer of TRL:
# GRPOTrainer(..., reward_funcs=reward, environment_factory=environments("corpus/"))

from kgqa.report.trajectories import trl

WEIGHTS = {weights}
FORM = {form}


def reward(completions, gold, **more):
    return trl.rewards_of_completions(completions, gold, weights=WEIGHTS, form=FORM)


def environments(corpus, **settings):
    return trl.environments(corpus, **settings)
"""


def reward_script(trainer: str, form: RewardForm, weights: Mapping[str, float]) -> str:
    """Return the Python file for a trainer, `verl` or `trl`."""
    template = _VERL if trainer == "verl" else _TRL
    return template.format(weights=json.dumps(dict(weights)), form=json.dumps(form))
