"""Evaluation: data sets, runs over questions, metrics, and analysis of the steps at which right answers are lost.

The names below are imported when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgqa.evaluation.datasets.registry import dataset_questions
    from kgqa.evaluation.runs.plan import RunPlan
    from kgqa.evaluation.runs.progress import RunObserver, RunProgress, RunResult, StopSignal
    from kgqa.evaluation.runs.resume import Changes, resume
    from kgqa.evaluation.runs.run_files import Run, RunError, open_run, open_runs
    from kgqa.evaluation.runs.start import run, run_several

_MODULES = {
    "dataset_questions": "kgqa.evaluation.datasets.registry",
    "RunPlan": "kgqa.evaluation.runs.plan",
    "RunObserver": "kgqa.evaluation.runs.progress",
    "RunProgress": "kgqa.evaluation.runs.progress",
    "RunResult": "kgqa.evaluation.runs.progress",
    "StopSignal": "kgqa.evaluation.runs.progress",
    "Changes": "kgqa.evaluation.runs.resume",
    "resume": "kgqa.evaluation.runs.resume",
    "Run": "kgqa.evaluation.runs.run_files",
    "RunError": "kgqa.evaluation.runs.run_files",
    "open_run": "kgqa.evaluation.runs.run_files",
    "open_runs": "kgqa.evaluation.runs.run_files",
    "run": "kgqa.evaluation.runs.start",
    "run_several": "kgqa.evaluation.runs.start",
}
__all__ = [
    "Changes",
    "Run",
    "RunError",
    "RunObserver",
    "RunPlan",
    "RunProgress",
    "RunResult",
    "StopSignal",
    "dataset_questions",
    "open_run",
    "open_runs",
    "resume",
    "run",
    "run_several",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'kgqa.evaluation' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
